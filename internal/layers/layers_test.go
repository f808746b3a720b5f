package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/quayside/quayside"

// levels returns the areas of the tree, from the lowest level to the highest. An area is a folder
// with all subfolders that are not listed as areas themselves. A package may import its own area
// and areas of lower levels, so that no two areas import each other.
func levels() [][]string {
	return [][]string{
		{"internal", "api", "cmd/quayside/internal/garbage", "examples"},
		{"catalog", "internal/k8s", "internal/layout", "internal/scan"},
		{"lockfile", "internal/cluster", "internal/oci", "internal/overlay", "internal/profile", "internal/provided", "internal/reporter", "internal/testing"},
		{"bundle", "catalog/fbc", "catalog/graph", "catalog/image", "declare"},
		{"catalog/bundledir", "catalog/charts", "catalog/sqlite", "resolve", "render", "diff"},
		{"catalog/source", "internal/health"},
		{"catalog/cache", "internal/settings"},
		{"cmd/quayside/internal"},
		{"cmd/quayside/internal/cli"},
		{"cmd/quayside/internal/adopt"},
		{"cmd/quayside/internal/clitest", "cmd/quayside/internal/parts"},
		{"cmd", "cmd/quayside/internal/release"},
	}
}

// exceptions maps an area to the areas that it may import although their level is not lower. TestImports
// allows at most five.
func exceptions() map[string][]string {
	return nil
}

// forbidden returns areas of lower levels that an area must nevertheless not import.
func forbidden() map[string][]string {
	return map[string][]string{
		"resolve":                   {"bundle", "catalog/fbc", "catalog/graph", "catalog/image", "internal/oci", "internal/filetree", "internal/store"},
		"render":                    {"catalog/fbc", "catalog/graph", "catalog/image", "declare", "internal/oci", "internal/store"},
		"diff":                      {"catalog/fbc", "catalog/graph", "catalog/image", "declare", "internal/oci", "internal/store"},
		"internal/health":           {"bundle", "internal/oci", "internal/filetree", "internal/store"},
		"cmd/quayside/internal/cli": {"internal/reporter", "internal/testing"},
		"cmd/quayside/internal":     {"internal/terminal", "internal/testing"}, // the command line prints
	}
}

// ioImports returns the packages that may access the operating system or the network, each with the packages
// of the standard library that it may import for this access.
func ioImports() map[string][]string {
	return map[string][]string{
		"catalog/cache":                           {"os", "context", "syscall", "time"},
		"catalog/image":                           {"os", "context", "time"},
		"catalog/source":                          {"os", "context", "net/url"},
		"catalog/sqlite":                          {"context", "time"},
		"cmd/image":                               {"os", "os/exec", "os/signal", "context"},
		"cmd/quayside":                            {"os"},
		"cmd/quayside-charts":                     {"os"},
		"cmd/quayside-report":                     {"os", "os/signal", "syscall", "context", "log/slog"},
		"cmd/quayside/internal/adopt/command":     {"context", "os", "os/signal", "syscall", "time"},
		"cmd/quayside/internal/adopt/extend":      {"context"},
		"cmd/quayside/internal/adopt/inspect":     {"context"},
		"cmd/quayside/internal/adopt/run":         {"context", "os", "time"},
		"cmd/quayside/internal/adopt/run/runtest": {"context", "log", "net/http", "net/http/httptest", "time"},
		"cmd/quayside/internal/adopt/snapshot":    {"context"},
		"cmd/quayside/internal/adopt/verify":      {"context", "time"},
		"cmd/quayside/internal/build":             {"context"},
		"cmd/quayside/internal/cli":               {"os", "os/exec", "os/signal", "syscall", "context", "log", "time"},
		"cmd/quayside/internal/clitest":           {"context", "net/http", "os", "os/exec"},
		"cmd/quayside/internal/compare":           {"os", "context", "time"},
		"cmd/quayside/internal/deliver":           {"context", "time"},
		"cmd/quayside/internal/edit":              {"os", "context"},
		"cmd/quayside/internal/format":            {"context"},
		"cmd/quayside/internal/inventory":         {"context"},
		"cmd/quayside/internal/release":           {"os", "os/signal", "context", "time"},
		"cmd/quayside/internal/status":            {"context", "time"},
		"cmd/quayside/internal/upgrade":           {"context", "time"},
		"cmd/quayside/internal/workspace":         {"os", "context", "time"},
		"internal/cluster":                        {"context", "net/http", "time"},
		"internal/filetree":                       {"os", "crypto/rand", "syscall", "time"},
		"internal/forge":                          {"context", "net/http", "time"},
		"internal/gitrepo":                        {"os", "os/exec", "context", "net/http", "syscall", "time"},
		"internal/health":                         {"time"},
		"internal/health/gate":                    {"time"},
		"internal/helm":                           {"context", "os", "os/exec", "time"},
		"internal/helm/engine":                    {"context", "log", "os", "syscall", "time"},
		"internal/k8s/admit":                      {"context"},
		"internal/oci":                            {"os", "context", "net", "net/http", "time", "syscall"},
		"internal/oci/artifact":                   {"context", "time"},
		"internal/oci/sign":                       {"context", "net", "net/http", "time"},
		"internal/oci/trust":                      {"context", "time"},
		"internal/reporter":                       {"context", "net/http", "time"},
		"internal/store":                          {"os", "context", "time", "crypto/rand", "syscall"},
		"internal/settings":                       {"time"},
		"internal/window":                         {"time", "time/tzdata"},
		"cmd/quayside/internal/rules":             {"time"},
		"internal/terminal":                       {"context", "os", "time"},
		"internal/testing/charttest":              {"os"},
		"internal/testing/clustertest":            {"log", "net/http", "net/http/httptest"},
		"internal/testing/forgetest":              {"log", "net/http", "net/http/httptest"},
		"internal/testing/gittest":                {"os", "os/exec"},
		"internal/testing/goldentest":             {"os"},
		"internal/testing/ocitest":                {"log", "net/http", "net/http/httptest"},
		"internal/testing/servertest":             {"net/http"},
		"internal/testing/trusttest":              {"context", "crypto/rand", "log", "net/http", "net/http/httptest", "time"},
	}
}

// ioPackages returns the packages of the standard library, with their subpackages, that a pure
// package must not import.
func ioPackages() []string {
	return []string{
		"os", "net", "time", "log", "math/rand", "crypto/rand", "syscall", "context", "plugin", "unsafe",
	}
}

// pureNames returns the names in ioPackages that any package may use: pure functions and
// constants.
func pureNames() map[string][]string {
	return map[string][]string{"time": {"Parse", "DateOnly", "RFC3339"}, "net/netip": {"ParseAddr"}}
}

// owners returns the packages that may import a third-party module, or a part of one.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/go-git/go-git/v5/plumbing/format/gitignore": {"internal/gitrepo", "catalog/fbc"},

		"github.com/google/go-containerregistry": {"cmd/image", "internal/imageref", "internal/oci", "internal/testing/ocitest", "internal/testing/trusttest"},
		"github.com/go-git/go-git":               {"internal/gitrepo"},
		"github.com/sigstore":                    {"internal/oci/trust", "internal/testing/trusttest", "internal/oci/sign"},
		"sigs.k8s.io/controller-runtime":         {"internal/reporter", "cmd/quayside-report"},
		"github.com/prometheus":                  {"internal/reporter"},
		"k8s.io/client-go":                       {"internal/cluster", "internal/reporter", "cmd/quayside-report", "cmd/quayside/internal/adopt/run/runtest"},
		"github.com/spf13/cobra":                 {"cmd/quayside/internal/adopt/command", "cmd/quayside/internal/cli", "cmd/quayside/internal/clitest", "cmd/quayside/internal/release"},
		"github.com/crillab/gophersat":           {"resolve/internal/solve"},
		"helm.sh/helm":                           {"internal/helm/engine"},
		"helm.sh/helm/v4/pkg/strvals":            {"internal/helm", "internal/helm/engine"},
		"go.yaml.in/yaml":                        {"internal/yamlnode", "internal/testing/yamltest"},
	}
}

// TestImports checks the imports of all packages against the tables above.
func TestImports(t *testing.T) {
	root := os.DirFS("../..")
	for _, fault := range faults(root, rules{levels(), exceptions(), forbidden(), ioImports()}) {
		t.Error(fault)
	}
	if n := len(exceptions()); n > 5 {
		t.Errorf("%d exceptions, want at most 5", n)
	}
	var named []string
	for _, level := range levels() {
		named = append(named, level...)
	}
	for _, table := range []map[string][]string{exceptions(), forbidden(), ioImports()} {
		named = slices.AppendSeq(named, maps.Keys(table))
	}
	for _, folder := range named {
		if _, err := fs.Stat(root, folder); err != nil {
			t.Errorf("%s is in a table of internal/layers, but does not exist", folder)
		}
	}
}

// TestImportsFindsFaults checks that each forbidden import is found.
func TestImportsFindsFaults(t *testing.T) {
	file := func(imports ...string) *fstest.MapFile {
		src := "package p\n"
		for _, i := range imports {
			src += "import _ " + strconv.Quote(i) + "\n"
		}
		return &fstest.MapFile{Data: []byte(src)}
	}
	tree := fstest.MapFS{
		"low/a.go":          file("fmt", module+"/high"),
		"low/a_test.go":     file("os", module+"/high"),
		"low/testdata/x.go": file("os"),
		"twin/a.go":         file(module+"/low", "math/rand/v2"),
		"high/a.go":         file(module+"/low", module+"/high/part", module+"/twin", "net/http", "github.com/google/go-containerregistry/pkg/name"),
		"high/part/a.go":    file(module+"/low", "net/http"),
		"high/room/a.go":    file(module + "/high"),
		"fresh/a.go":        file("fmt"),
		"pure/a.go":         {Data: []byte("package p\nimport \"time\"\nvar _, _ = time.Parse(time.DateOnly, \"\")\n")},
		"pure/clock.go":     {Data: []byte("package p\nimport \"time\"\nvar _, _ = time.Parse(time.DateOnly, time.Now().String())\n")},
		"pure/renamed.go":   {Data: []byte("package p\nimport t \"time\"\nvar _, _ = t.Parse(t.DateOnly, \"\")\n")},
	}
	got := faults(tree, rules{
		levels:     [][]string{{"low", "twin", "pure"}, {"high"}, {"high/room"}},
		exceptions: map[string][]string{"twin": {"low"}},
		forbidden:  map[string][]string{"high": {"twin"}},
		ioImports:  map[string][]string{"high": {"net"}, "high/part": {"net/http"}},
	})
	want := []string{
		"fresh/a.go: fresh is in no area of internal/layers",
		"high/a.go: imports github.com/google/go-containerregistry/pkg/name, which only OWNERS may import",
		"high/a.go: imports net/http, which only packages in ioImports may import",
		"high/a.go: imports twin, which is forbidden for high",
		"low/a.go: imports high (level 1) from level 0",
		"pure/clock.go: imports time, which only packages in ioImports may import",
		"pure/renamed.go: imports time, which only packages in ioImports may import",
		"twin/a.go: imports math/rand/v2, which only packages in ioImports may import",
	}
	want[1] = strings.Replace(want[1], "OWNERS", strings.Join(owners()["github.com/google/go-containerregistry"], " and "), 1)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
}

// rules holds the tables of import rules.
type rules struct {
	levels                           [][]string
	exceptions, forbidden, ioImports map[string][]string
}

// area returns the area of a package and the level of the area, or "" if the package is in no area.
func (r rules) area(pkg string) (string, int) {
	best, at := "", 0
	for level, areas := range r.levels {
		for _, area := range areas {
			if within(pkg, []string{area}) && len(area) > len(best) {
				best, at = area, level
			}
		}
	}
	return best, at
}

// faults returns all violations of the rules in the Go files below fsys, sorted. It ignores tests,
// testdata and nested modules.
func faults(fsys fs.FS, r rules) []string {
	var out []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(fsys, name, d)
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		found, err := r.checkFile(fsys, name)
		out = append(out, found...)
		return err
	})
	if err != nil {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// skip returns fs.SkipDir for testdata, hidden directories and nested modules.
func skip(fsys fs.FS, name string, d fs.DirEntry) error {
	if name == "." {
		return nil
	}
	if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// checkFile returns the violations in one file.
func (r rules) checkFile(fsys fs.FS, name string) ([]string, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	pkg := path.Dir(name)
	if area, _ := r.area(pkg); area == "" {
		return []string{name + ": " + pkg + " is in no area of internal/layers"}, nil
	}
	var out []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if allowed, ok := pureNames()[imported]; ok && spec.Name == nil && onlyUses(f, imported, allowed) {
			continue
		}
		if why := r.violation(pkg, imported); why != "" {
			out = append(out, name+": imports "+why)
		}
	}
	return out, nil
}

// onlyUses reports whether a file uses no names of a package except those in names.
func onlyUses(f *ast.File, pkg string, names []string) bool {
	only := true
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			only = only && !(ok && x.Name == pkg && !slices.Contains(names, sel.Sel.Name))
		}
		return true
	})
	return only
}

// violation returns the description of a forbidden import, or "".
func (r rules) violation(pkg, imported string) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		return r.internalViolation(pkg, own)
	}
	if within(imported, ioPackages()) && imported != "net/url" && !slices.Contains(r.ioImports[pkg], imported) {
		return imported + ", which only packages in ioImports may import"
	}
	owner := ""
	for mod := range owners() {
		if within(imported, []string{mod}) && len(mod) > len(owner) {
			owner = mod
		}
	}
	if users := owners()[owner]; owner != "" && !slices.Contains(users, pkg) {
		return imported + ", which only " + strings.Join(users, " and ") + " may import"
	}
	return ""
}

// internalViolation is violation for packages of this module.
func (r rules) internalViolation(pkg, own string) string {
	from, level := r.area(pkg)
	to, below := r.area(own)
	switch {
	case to == "":
		return own + ", which is in no area"
	case within(own, r.forbidden[from]):
		return own + ", which is forbidden for " + from
	case to == from, below < level, slices.Contains(r.exceptions[from], to):
		return ""
	default:
		return fmt.Sprintf("%s (level %d) from level %d", own, below, level)
	}
}

// within reports whether imported is one of roots, or a subpackage of one of them.
func within(imported string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}
