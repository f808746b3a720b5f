package resolve_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
)

// index returns the index of the problem's catalogs. It returns false if the corpus of a catalog is missing.
func (p *problem) index(t *testing.T, corpora map[string]*catalog.Content) (*catalog.Index, bool) {
	t.Helper()
	var cats []*catalog.Catalog
	broken := map[catalog.ID]error{}
	for name, c := range p.Catalogs {
		id := catalog.ID{Namespace: c.Namespace, Name: name}
		var content catalog.Content
		var err error
		if c.Corpus != "" {
			shared, ok := corpus(t, corpora, c.Corpus)
			if !ok {
				return nil, false
			}
			content = *shared
		} else {
			var objects []json.RawMessage
			if err := json.Unmarshal(c.FBC, &objects); err != nil {
				t.Fatal(err)
			}
			content, err = fbc.Decode(p.ID+"/"+name+".json", bytes.NewReader(bytes.Join(bytesOf(objects), []byte("\n"))))
		}
		content.ID, content.Priority, content.Source = id, c.Priority, "dir:"+name
		var cat *catalog.Catalog
		if err == nil {
			cat, err = catalog.New(content)
		}
		if err != nil {
			if !slices.Contains(p.InvalidCatalogs, name) {
				t.Errorf("%s: catalog %s: %v", p.ID, name, err)
			}
			broken[id] = err
			continue
		}
		cats = append(cats, cat)
	}
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		t.Fatal(err)
	}
	for id, err := range broken {
		x = x.WithBroken(id, err)
	}
	return x, true
}

func bytesOf(raw []json.RawMessage) [][]byte {
	out := make([][]byte, len(raw))
	for i, r := range raw {
		out[i] = r
	}
	return out
}

// corpus returns one of the published catalogs, cached in corpora. It returns false if
// QUAYSIDE_CORPUS is unset.
func corpus(t testing.TB, corpora map[string]*catalog.Content, name string) (*catalog.Content, bool) {
	t.Helper()
	if c, ok := corpora[name]; ok {
		return c, c != nil
	}
	corpora[name] = nil
	dir := os.Getenv("QUAYSIDE_CORPUS")
	if dir == "" {
		return nil, false
	}
	archive := name
	if name == "v4.20" {
		archive = "community-v4.20"
	}
	root := unpack(t, filepath.Join(dir, "catalogs", archive+".tar.zst"))
	content, err := fbc.LoadFS(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if name == "v4.20" {
		content.Packages = slices.DeleteFunc(content.Packages, func(p catalog.PackageData) bool { return p.Name == "stackgres-community" })
	}
	corpora[name] = &content
	return &content, true
}

func unpack(t testing.TB, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	root := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		to := filepath.Join(root, h.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
