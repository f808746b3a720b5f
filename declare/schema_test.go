package declare_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
)

var update = flag.Bool("update", false, "write the shipped schema anew")

func TestSchemaIsShipped(t *testing.T) {
	const file = "../schema/subscription.schema.json"
	if *update {
		if err := os.WriteFile(file, declare.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(declare.Schema()), string(got)); d != "" {
		t.Errorf("%s is out of date: run go test ./declare -update: -want +got\n%s", file, d)
	}
}
