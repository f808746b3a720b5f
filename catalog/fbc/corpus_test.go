package fbc

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
)

var whole = flag.Bool("whole", false, "decode every file of the corpus in both ways, not only some") //nolint:gochecknoglobals // a flag

// isSampled reports whether to test item n of the corpus. With the flag -whole it returns true for all items.
// Otherwise, it returns true for one of every `of` items.
func isSampled(n, of int) bool { return *whole || n%of == 0 }

// corpusCatalog returns the files in an archive of the corpus.
func corpusCatalog(tb testing.TB, archive string) fs.FS {
	tb.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		tb.Skip("QUAYSIDE_CORPUS is not set")
	}
	f, err := os.Open(filepath.Join(root, "catalogs", archive))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	files := fstest.MapFS{}
	in := tar.NewReader(z)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(in)
		if err != nil {
			tb.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "./")] = &fstest.MapFile{Data: data}
	}
}

func TestCorpusCatalogs(t *testing.T) {
	for _, tt := range []struct {
		archive                    string
		packages, bundles, entries int // minimum; 0 if the corpus does not specify it
	}{
		{"community-v4.20.tar.zst", 37, 0, 929},
		{"deps.tar.zst", 0, 0, 243},
		{"full.tar.zst", 320, 0, 7689},
		{"full-slim.tar.zst", 328, 6971, 8900},
	} {
		t.Run(tt.archive, func(t *testing.T) {
			c, err := LoadFS(corpusCatalog(t, tt.archive))
			if err != nil {
				t.Fatal(err)
			}
			cat, err := catalog.New(c)
			if err != nil {
				t.Fatal(err)
			}
			var bundles, entries, known, modes int
			for _, p := range cat.Packages() {
				for _, b := range p.Bundles() {
					bundles++
					if b.Metadata().Known {
						known++
					}
					if len(b.Metadata().InstallModes) > 0 {
						modes++
					}
					if b.Unusable() != "" {
						t.Logf("%s: %s", b.Name(), b.Unusable())
					}
				}
				for _, ch := range p.Channels() {
					entries += len(ch.Entries())
				}
			}
			t.Logf("%d packages, %d bundles (%d with metadata, %d with install modes), %d entries", len(cat.Packages()), bundles, known, modes, entries)
			if len(cat.Packages()) < tt.packages || bundles < tt.bundles || entries < tt.entries {
				t.Errorf("want at least %d packages, %d bundles, %d entries", tt.packages, tt.bundles, tt.entries)
			}
		})
	}
}

// TestCorpusProblems loads the catalogs of the problems in QUAYSIDE_CONFORMANCE. Loading must fail for the
// catalogs that a problem lists as invalid, and only for them.
func TestCorpusProblems(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is not set")
	}
	for _, file := range []string{"handmade.jsonl", "random.jsonl"} {
		data, err := os.ReadFile(filepath.Join(root, "resolve", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var p struct {
				ID              string
				InvalidCatalogs []string
				Catalogs        map[string]struct{ FBC []json.RawMessage }
			}
			if err := json.Unmarshal(line, &p); err != nil {
				t.Fatal(err)
			}
			for name, c := range p.Catalogs {
				_, err := load(name, bytes.Join(rawBytes(c.FBC), []byte("\n")))
				broken := strings.Contains(strings.Join(p.InvalidCatalogs, " "), name)
				if broken != (err != nil) {
					t.Errorf("%s: catalog %s: broken %t, got %v", p.ID, name, broken, err)
				}
			}
		}
	}
}

func rawBytes(in []json.RawMessage) [][]byte {
	out := make([][]byte, len(in))
	for i, r := range in {
		out[i] = r
	}
	return out
}

// load decodes and validates a catalog.
func load(name string, data []byte) (*catalog.Catalog, error) {
	c, err := Decode(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return catalog.New(c)
}
