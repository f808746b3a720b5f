package lockfile_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

var update = flag.Bool("update", false, "write the shipped schema anew")

func TestSchemaIsShipped(t *testing.T) {
	const file = "../schema/lock.schema.json"
	if *update {
		if err := os.WriteFile(file, lockfile.JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(lockfile.JSONSchema()), string(got)); d != "" {
		t.Errorf("%s is out of date: run go test ./lockfile -update: -want +got\n%s", file, d)
	}
}
