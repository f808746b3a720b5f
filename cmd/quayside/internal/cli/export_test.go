package cli

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update, which rewrites the golden files.
var Update = flag.Bool("update", false, "rewrite the golden files")

// Parts are the parts of the program.
var Parts []Part //nolint:gochecknoglobals // set by the external tests, because this package must not import them

// golden compares got with a committed file, or writes it under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if *Update {
		if bytes.Equal(want, got) {
			return
		}
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is out of date: run make golden (-committed +new):\n%s", file, d)
	}
}
