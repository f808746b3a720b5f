package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
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

// rule says what one package may import. Any package below its level is
// allowed, none of its own level or above.
type rule struct {
	level   int
	beside  []string // named exceptions: packages of the same level that it stands on
	never   []string // packages below it that it must not know
	outside []string // packages of the standard library that reach outside the program, each by its whole name
}

// table returns the rule of every package.
func table() map[string]rule {
	return map[string]rule{
		"cmd/quayside":         {level: 5, outside: []string{"os"}},
		"cmd/quayside/garbage": {level: 0},
		"cmd/report-image":     {level: 5, outside: []string{"os", "os/exec", "os/signal", "context"}},
		"cmd/quayside-report":  {level: 5, outside: []string{"os", "os/signal", "syscall", "context", "log/slog"}},

		"cmd/quayside/cli": {level: 4, never: []string{"report/kube"}, outside: []string{"os", "os/exec", "context", "time"}},

		"resolve": {level: 3, never: []string{"bundle", "registry", "catalog/fbc", "catalog/image", "internal/filetree", "internal/store"}},
		"render":  {level: 3, never: []string{"subscription", "workspace", "registry", "internal/store"}},
		"diff":    {level: 3, never: []string{"subscription", "workspace", "registry", "internal/store"}},

		"report": {level: 3, never: []string{"bundle", "registry", "internal/filetree", "internal/store"}, outside: []string{"time"}},

		"subscription":      {level: 2},
		"workspace":         {level: 2},
		"lockfile":          {level: 2},
		"bundle":            {level: 2},
		"catalog/fbc":       {level: 2},
		"catalog/bundledir": {level: 2, beside: []string{"bundle"}},
		"catalog/disk":      {level: 2},
		"catalog/sqlite":    {level: 2, beside: []string{"catalog/fbc"}, outside: []string{"context", "time"}},
		"catalog/image":     {level: 2, outside: []string{"os", "context", "time"}},

		"catalog":              {level: 1},
		"report/v1alpha1":      {level: 1},
		"report/kube":          {level: 2, outside: []string{"context", "net/http", "time"}},
		"report/live":          {level: 2, outside: []string{"context", "net/http", "syscall", "time"}},
		"report/live/livetest": {level: 2, outside: []string{"log", "net/http", "net/http/httptest"}},
		"registry":             {level: 1, outside: []string{"os", "context", "net", "net/http", "time", "syscall"}},

		"internal/gitrepo": {level: 1, outside: []string{"os", "context", "time"}},

		"registry/trust":           {level: 2, outside: []string{"context", "time"}},
		"registry/trust/trusttest": {level: 2, outside: []string{"crypto/rand", "net/http", "time"}},
		"registry/registrytest":    {level: 2, outside: []string{"log", "net/http", "net/http/httptest"}},

		"internal/diag":       {level: 0},
		"internal/yamlnode":   {level: 0, beside: []string{"internal/diag"}},
		"internal/filetree":   {level: 0, outside: []string{"os", "syscall", "time"}},
		"internal/store":      {level: 0, outside: []string{"os", "context", "time", "crypto/rand", "syscall"}},
		"internal/blockyaml":  {level: 0},
		"internal/strictjson": {level: 0},
		"internal/stamp":      {level: 0, outside: []string{"time", "syscall"}},
		"internal/jsonschema": {level: 0},
		"internal/layers":     {level: 0},
		"internal/rbac":       {level: 0},

		// The API server's own checks, wrapped so that others see plain values
		// and few packages compile against Kubernetes.
		"internal/admit":         {level: 0, outside: []string{"context"}},
		"diff/internal/podlevel": {level: 0},
		"diff/internal/celrule":  {level: 0},

		// The search knows numbers only; resolve is its only user.
		"resolve/internal/solve": {level: 0},
	}
}

// outward returns the parts of the standard library that a pure package stays
// away from, with all that lies below them.
func outward() []string {
	return []string{
		"os", "net", "time", "log", "math/rand", "crypto/rand", "syscall", "context", "plugin", "unsafe",
	}
}

// owned returns third-party modules that one package alone may import.
func owned() map[string][]string {
	return map[string][]string{
		"github.com/google/go-containerregistry": {"registry", "registry/registrytest"},
		"github.com/go-git/go-git":               {"internal/gitrepo"},
		"github.com/sigstore":                    {"registry/trust", "registry/trust/trusttest"},
		"sigs.k8s.io/controller-runtime":         {"report/kube", "cmd/quayside-report"},
		"github.com/prometheus":                  {"report/kube"},
		"k8s.io/client-go":                       {"report/live", "report/kube", "cmd/quayside-report"},
		"github.com/spf13/cobra":                 {"cmd/quayside/cli"},
		"github.com/crillab/gophersat":           {"resolve/internal/solve"},
	}
}

func TestImports(t *testing.T) {
	root := os.DirFS("../..")
	for _, fault := range faults(root, table()) {
		t.Error(fault)
	}
	for pkg := range table() {
		if _, err := fs.Stat(root, pkg); err != nil {
			t.Errorf("%s: in the table, but not in the tree", pkg)
		}
	}
}

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
		"high/a.go":         file(module+"/low", module+"/twin", "net/http", "github.com/google/go-containerregistry/pkg/name"),
		"fresh/a.go":        file("fmt"),
	}
	got := faults(tree, map[string]rule{
		"low":  {level: 0},
		"twin": {level: 0, beside: []string{"low"}},
		"high": {level: 1, never: []string{"twin"}, outside: []string{"net"}},
	})
	want := []string{
		"fresh: not in the table of internal/layers",
		"high/a.go: imports github.com/google/go-containerregistry/pkg/name, which is for registry and registry/registrytest alone",
		"high/a.go: imports net/http, which reaches outside the program",
		"high/a.go: imports twin, of which high must not know",
		"low/a.go: imports high (level 1) from level 0",
		"twin/a.go: imports math/rand/v2, which reaches outside the program",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
}

// faults returns every breach of rules in the Go files below fsys, sorted.
// Tests, testdata and nested modules are not looked at.
func faults(fsys fs.FS, rules map[string]rule) []string {
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
		found, err := fileFaults(fsys, name, rules)
		out = append(out, found...)
		return err
	})
	if err != nil {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

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

func fileFaults(fsys fs.FS, name string, rules map[string]rule) ([]string, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	pkg := path.Dir(name)
	r, ok := rules[pkg]
	if !ok {
		return []string{pkg + ": not in the table of internal/layers"}, nil
	}
	var out []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if why := breach(pkg, r, imported, rules); why != "" {
			out = append(out, fmt.Sprintf("%s: imports %s", name, why))
		}
	}
	return out, nil
}

// breach returns what is wrong with an import, or "".
func breach(pkg string, r rule, imported string, rules map[string]rule) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		return inner(pkg, r, own, rules)
	}
	if within(imported, outward()) && imported != "net/url" && !slices.Contains(r.outside, imported) {
		return imported + ", which reaches outside the program"
	}
	for mod, users := range owned() {
		if within(imported, []string{mod}) && !slices.Contains(users, pkg) {
			return imported + ", which is for " + strings.Join(users, " and ") + " alone"
		}
	}
	return ""
}

func inner(pkg string, r rule, own string, rules map[string]rule) string {
	other, ok := rules[own]
	switch {
	case !ok:
		return own + ", which is not in the table"
	case slices.Contains(r.never, own):
		return own + ", of which " + pkg + " must not know"
	case other.level < r.level || slices.Contains(r.beside, own):
		return ""
	default:
		return fmt.Sprintf("%s (level %d) from level %d", own, other.level, r.level)
	}
}

// within reports whether imported is one of roots or lies below one.
func within(imported string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}
