package layers

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/goldentest"
)

// publicPackages returns the packages with the compatibility promise of
// docs/library.md.
func publicPackages() []string { return []string{"lockfile", "api/v1alpha1"} }

// TestGoldenAPI compares the exported declarations of the public packages with docs/api, so that API
// changes are visible in reviews.
func TestGoldenAPI(t *testing.T) {
	for _, dir := range publicPackages() {
		got, file := listAPI(t, filepath.Join("../..", dir)), "../../docs/api/"+path.Base(dir)+".txt"
		goldentest.Compare(t, file, got)
	}
}

// listAPI returns the exported declarations of the package in dir, without comments and
// function bodies.
func listAPI(t *testing.T, dir string) []byte {
	t.Helper()
	fset, files := parsePackage(t, dir)
	p, err := doc.NewFromFiles(fset, files, module)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	decl := func(d ast.Decl) {
		if err := format.Node(&out, fset, d); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			decl(v.Decl)
		}
	}
	funcs := func(all []*doc.Func) {
		for _, f := range all {
			decl(f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		decl(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return out.Bytes()
}

// parsePackage returns the Go files of a directory without its tests.
func parsePackage(t *testing.T, dir string) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// TestLibraryPage checks that docs/library.md quotes every example of the public packages.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range publicPackages() {
		data, err := os.ReadFile(filepath.Join("../..", dir, "example_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		examples := regexp.MustCompile(`(?ms)^func Example.*?^}$`).FindAllString(string(data), -1)
		if len(examples) == 0 {
			t.Errorf("%s has no examples", dir)
		}
		for _, text := range examples {
			if !strings.Contains(string(page), "```go\n"+text+"\n```\n") {
				t.Errorf("docs/library.md does not quote this example of %s:\n%s", dir, text)
			}
		}
	}
}
