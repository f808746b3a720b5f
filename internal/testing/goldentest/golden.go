// Package goldentest compares test results with golden files in Git. The flag -update writes these
// files. 'make golden' runs the tests whose names start with TestGolden, with this flag.
//
// Start from [Compare].
package goldentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files") //nolint:gochecknoglobals // a flag

// Update reports whether the test writes golden files.
func Update() bool { return *update }

// Compare fails the test if got differs from the content of a file. With -update, it writes the
// file instead.
func Compare(t testing.TB, file string, got []byte) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestGolden") {
		t.Fatal("make golden runs only tests with names that begin with TestGolden")
	}
	want, err := os.ReadFile(file)
	if err == nil && string(want) == string(got) {
		return
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is out of date: run make golden, or this test with -update (-committed +new):\n%s", file, cmp.Diff(string(want), string(got)))
}
