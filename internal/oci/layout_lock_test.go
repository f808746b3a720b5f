package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/internal/oci"
)

// TestLayoutParallel adds images to one layout from many writers at once. The layout must
// contain all of them.
func TestLayoutParallel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	const writers = 24
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			packed, err := oci.Pack(fstest.MapFS{"a": {Data: fmt.Appendf(nil, "%d", i)}}, oci.PackOptions{})
			if err == nil {
				err = packed.WriteLayout(dir, fmt.Sprintf("v%d", i))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range writers {
		if name := fmt.Sprintf("\"v%d\"", i); !strings.Contains(string(index), name) {
			t.Errorf("%s is lost", name)
		}
	}
}

// TestLayoutLeftovers writes to a layout with leftover files of a killed process.
func TestLayoutLeftovers(t *testing.T) {
	dir := t.TempDir()
	packed, err := oci.Pack(fstest.MapFS{"a": {Data: []byte("a")}}, oci.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if err := packed.WriteLayout(dir, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	write()
	left := []string{filepath.Join(dir, ".new-1"), filepath.Join(dir, "blobs", "sha256", ".new-2")}
	for _, name := range left {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for _, name := range left {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s still exists", name)
		}
	}
}
