package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestPlacesOfArchitecture checks that the paths and names in docs/contributing/architecture.md exist,
// and that each row of its table of variants names a function.
func TestPlacesOfArchitecture(t *testing.T) {
	page, err := os.ReadFile("../../docs/contributing/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := places(os.DirFS("../.."), string(page))
	for _, f := range faults {
		t.Errorf("docs/contributing/architecture.md: %s", f)
	}
	_, table, _ := strings.Cut(string(page), "| Variant | Table | Today |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		if !strings.Contains(row, ".go`: `") {
			t.Errorf("docs/contributing/architecture.md: no function in the row %s", row)
		}
	}
	if strings.Count(table, "\n") < 7 {
		t.Errorf("docs/contributing/architecture.md: the table of variants has %d rows, want at least 6", strings.Count(table, "\n")+1)
	}
}

// TestPlacesExist checks that the paths and names in docs/contributing/developing.md exist.
func TestPlacesExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/contributing/developing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range places(os.DirFS("../.."), string(page)) {
		t.Errorf("docs/contributing/developing.md: %s", f)
	}
}

// TestAttacksAreTested checks that each row of docs/security.md names a test, and that these tests exist.
func TestAttacksAreTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := places(os.DirFS("../.."), string(page))
	for _, f := range faults {
		t.Errorf("docs/security.md: %s", f)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| What ") {
			continue
		}
		if rows++; !strings.Contains(line, "_test.go`: `") {
			t.Errorf("docs/security.md: no test in the row %s", line)
		}
	}
	if rows < 10 {
		t.Errorf("docs/security.md: %d rows, want at least 10", rows)
	}
}

// TestPlacesFindsFaults checks that places finds every fault in a page.
func TestPlacesFindsFaults(t *testing.T) {
	tree := fstest.MapFS{
		"a/x.go":  {Data: []byte("package a\n\nconst C = 1\n\ntype T struct{}\n\nfunc (T) M() {}\n\nfunc F() { g := 1; _ = g }\n")},
		"b/y.txt": {},
	}
	page := "# Page\n\n`no/such` in a text, but `make test` is none.\n\n## One\n\n1. `a/x.go`: `C`, `T`, `M`, `F`, `nope` and `any`, `a/`.\n2. `b/y.txt`, `a/x.go`: `g`\n\n## Two\n\n1. `b/z.txt`: here.\n"
	faults := places(tree, page)
	want := []string{"no/such does not exist", "nope is not declared in a/x.go", "g is not declared in a/x.go", "b/z.txt does not exist"}
	if d := cmp.Diff(want, faults); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// places parses a page. It returns a fault for each path in backquotes that does not exist. For names after
// the path of a Go file, as in `file.go`: `Name`, it returns a fault for each name that the file lacks.
func places(root fs.FS, page string) (faults []string) {
	for line := range strings.Lines(page) {
		for _, quoted := range regexp.MustCompile("`([^` :<]+/[^` :<]*)`(:(?:,? `\\w+`)+)?").FindAllStringSubmatch(line, -1) {
			file := path.Clean(quoted[1])
			if _, err := fs.Stat(root, file); err != nil {
				faults = append(faults, file+" does not exist")
				continue
			}
			have := declared(root, file)
			for _, name := range regexp.MustCompile(`\w+`).FindAllString(quoted[2], -1) {
				if !slices.Contains(have, name) {
					faults = append(faults, name+" is not declared in "+file)
				}
			}
		}
	}
	return faults
}

// declared returns the names of the top-level declarations of a Go file, methods included.
func declared(root fs.FS, file string) []string {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, data, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var names []string
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}
