package clitest

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Corpus returns the directory with real operators, $QUAYSIDE_CORPUS. If the variable is not set, or with
// -short, it skips the test.
func Corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("QUAYSIDE_CORPUS")
	if dir == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to test with")
	}
	if testing.Short() {
		t.Skip("-short: the tests over real operators take long")
	}
	return dir
}

// Unpack unpacks an archive of the corpus into dir.
func Unpack(t testing.TB, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	check(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	check(t, err)
	defer z.Close()
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check(t, err)
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		data, err := io.ReadAll(r)
		check(t, err)
		name := filepath.Join(dir, h.Name)
		check(t, os.MkdirAll(filepath.Dir(name), 0o777))
		check(t, os.WriteFile(name, data, 0o666))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
