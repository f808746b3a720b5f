package resolve_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// workspace reads a txtar: catalogs/<namespace>/<name>.yaml and declarations/.
func workspace(t *testing.T, a *txtar.Archive) (*catalog.Index, *declare.Set) {
	t.Helper()
	var cats []*catalog.Catalog
	files := fstest.MapFS{}
	for _, f := range a.Files {
		dir, name := filepath.Split(f.Name)
		if !strings.HasPrefix(dir, "catalogs/") {
			files[f.Name] = &fstest.MapFile{Data: f.Data}
			continue
		}
		content, err := fbc.Decode(f.Name, bytes.NewReader(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		content.ID = catalog.ID{Namespace: filepath.Base(dir), Name: strings.TrimSuffix(name, ".yaml")}
		content.Source = "dir:" + f.Name
		c, err := catalog.New(content)
		if err != nil {
			t.Fatal(err)
		}
		cats = append(cats, c)
	}
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "want")
	decl, err := declare.LoadFS(files, declare.LoadOptions{Paths: []declare.Path{{Path: "declarations"}}})
	if err != nil {
		t.Fatal(err)
	}
	return x, decl
}

// TestGoldenConflictReports compares complete reports with golden files. Each contains the positions of
// the subscriptions and ends with the suggested changes.
func TestGoldenConflictReports(t *testing.T) {
	files, err := filepath.Glob("testdata/conflict/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test cases for reports: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run("error/"+name, func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			x, decl := workspace(t, a)
			res, err := resolve.Resolve(x, decl, nil, resolve.Options{})
			var conflicts explain.Conflicts
			if !errors.As(err, &conflicts) {
				t.Fatalf("Resolve: %v, want Conflicts", err)
			}
			if res.Lock != nil {
				t.Error("Resolve returned both a lock and a conflict")
			}
			golden := strings.TrimSuffix(file, ".txtar") + ".golden"
			got := err.Error() + "\n"
			for _, p := range res.Partial.Pins {
				got += "still resolved: " + p.Key() + " " + p.Version + "\n"
			}
			goldentest.Compare(t, golden, []byte(got))
		})
	}
}
