package layers

import (
	"fmt"
	"go/ast"
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
		"cmd/quayside":         {level: 9, outside: []string{"os"}},
		"cmd/quayside/garbage": {level: 0},
		"cmd/image":            {level: 9, outside: []string{"os", "os/signal", "context"}},
		"cmd/release":          {level: 9, outside: []string{"os", "os/signal", "context", "time"}},
		"cmd/quayside-report":  {level: 9, outside: []string{"os", "os/signal", "syscall", "context", "log/slog"}},

		"cmd/man":             {level: 9, outside: []string{"os", "time"}},
		"cmd/quayside/manual": {level: 8, beside: []string{"cmd/quayside/cli"}, outside: []string{"time"}},

		"cmd/quayside/cli": {level: 8, never: []string{"report/kube"}, outside: []string{"os", "os/exec", "os/signal", "syscall", "context", "time"}},

		"catalog/graph":   {level: 3},
		"catalog/listing": {level: 4},

		"resolve":             {level: 3, never: []string{"bundle", "registry", "catalog/fbc", "catalog/image", "internal/filetree", "internal/store"}},
		"render/certificates": {level: 1},
		"render/profile":      {level: 2},
		"render":              {level: 3, never: []string{"subscription", "workspace", "registry", "internal/store"}},
		"diff":                {level: 3, never: []string{"subscription", "workspace", "registry", "internal/store"}},

		"diff/lines": {level: 3, outside: []string{"os", "os/exec", "context"}}, // of files, and by another's program

		"report": {level: 3, never: []string{"bundle", "registry", "internal/filetree", "internal/store"}, outside: []string{"time"}},

		// What a catalog may be, and what was read of it before: the index itself
		// is bytes in, bytes out.
		"catalog/source":      {level: 3, outside: []string{"os", "context"}},
		"catalog/cache":       {level: 3, beside: []string{"catalog/source"}, outside: []string{"os", "context", "syscall", "time"}},
		"catalog/cache/index": {level: 2},
		"workspace":           {level: 3, beside: []string{"catalog/source"}},

		"subscription":      {level: 2},
		"lockfile":          {level: 2},
		"bundle":            {level: 2},
		"catalog/fbc":       {level: 2},
		"catalog/bundledir": {level: 2, beside: []string{"bundle"}},
		"catalog/sqlite":    {level: 2, beside: []string{"catalog/fbc"}, outside: []string{"context", "time"}},
		"catalog/image":     {level: 2, outside: []string{"os", "context", "time"}},

		"catalog":                      {level: 1},
		"report/v1alpha1":              {level: 1},
		"report/gate":                  {level: 2, outside: []string{"time"}},
		"report/kube":                  {level: 2, outside: []string{"context", "net/http", "time"}},
		"internal/cluster":             {level: 2, outside: []string{"context", "net/http", "time"}},
		"internal/cluster/clustertest": {level: 2, outside: []string{"log", "net/http", "net/http/httptest"}},
		"registry":                     {level: 1, outside: []string{"os", "context", "net", "net/http", "time", "syscall"}},

		"internal/forge":           {level: 2, outside: []string{"context", "net/http", "time"}},
		"internal/forge/forgetest": {level: 2, outside: []string{"log", "net/http", "net/http/httptest"}},
		"internal/gobuild":         {level: 1, outside: []string{"os", "os/exec", "context", "time"}},
		"internal/gitrepo":         {level: 1, outside: []string{"os", "os/exec", "context", "time"}},

		"adopt":                    {level: 4, never: []string{"subscription", "workspace", "registry", "internal/store"}},
		"adopt/declare":            {level: 4},
		"adopt/extend":             {level: 7, outside: []string{"os", "context"}},
		"adopt/snapshot":           {level: 3, outside: []string{"context"}},
		"adopt/plan":               {level: 4, beside: []string{"adopt"}},
		"adopt/verify":             {level: 4, beside: []string{"adopt", "adopt/plan"}, outside: []string{"context"}},
		"adopt/back":               {level: 4, beside: []string{"adopt/plan"}},
		"adopt/run":                {level: 4, beside: []string{"adopt", "adopt/back", "adopt/plan", "adopt/verify"}, outside: []string{"context", "os", "time"}},
		"adopt/run/runtest":        {level: 4, beside: []string{"adopt/plan", "adopt/verify", "adopt/run"}, outside: []string{"context", "log", "net/http", "net/http/httptest", "time"}},
		"registry/artifact":        {level: 2, outside: []string{"context", "time"}},
		"registry/mirror":          {level: 3, outside: []string{"context"}},
		"catalog/build":            {level: 4, outside: []string{"context"}},
		"bundle/fetch":             {level: 4, outside: []string{"context"}},
		"report/look":              {level: 4, outside: []string{"context", "time"}},
		"internal/project":         {level: 5, outside: []string{"os", "context"}},
		"diff/state":               {level: 6, outside: []string{"os", "context", "time"}},
		"internal/edit":            {level: 7, outside: []string{"os", "context"}},
		"internal/suggest":         {level: 6, outside: []string{"context"}},
		"internal/promote":         {level: 7, beside: []string{"internal/propose"}, outside: []string{"context", "time"}},
		"internal/propose":         {level: 7, outside: []string{"context", "time"}},
		"registry/sign":            {level: 2, outside: []string{"context", "net", "net/http", "time"}},
		"internal/bom":             {level: 4},
		"internal/feed":            {level: 4},
		"internal/treeview":        {level: 4},
		"internal/terminal":        {level: 2, outside: []string{"context", "os", "time"}},
		"internal/provenance":      {level: 4, beside: []string{"internal/bom"}},
		"internal/ship":            {level: 7, beside: []string{"internal/propose"}, outside: []string{"context"}},
		"internal/checkup":         {level: 7, outside: []string{"context"}},
		"registry/trust":           {level: 2, outside: []string{"context", "time"}},
		"registry/trust/trusttest": {level: 2, outside: []string{"context", "crypto/rand", "log", "net/http", "net/http/httptest", "time"}},
		"internal/servertest":      {level: 0, outside: []string{"net/http"}},
		"registry/registrytest":    {level: 2, outside: []string{"log", "net/http", "net/http/httptest"}},

		"catalog/olm":         {level: 0},
		"catalog/lifecycle":   {level: 0},
		"internal/inert":      {level: 0},
		"internal/picture":    {level: 0, beside: []string{"internal/diag", "internal/inert", "internal/page"}},
		"internal/permalink":  {level: 0, beside: []string{"internal/inert", "internal/remote"}},
		"internal/remote":     {level: 0},
		"internal/page":       {level: 0, beside: []string{"internal/inert"}},
		"internal/diag":       {level: 0, beside: []string{"internal/inert"}},
		"internal/waiver":     {level: 0, beside: []string{"internal/diag"}},
		"internal/yamlnode":   {level: 0, beside: []string{"internal/diag", "internal/inert", "internal/kobj"}},
		"internal/filetree":   {level: 0, outside: []string{"os", "syscall", "time"}},
		"internal/imageref":   {level: 0},
		"internal/scan":       {level: 0, beside: []string{"internal/diag", "internal/imageref", "internal/inert"}},
		"internal/store":      {level: 0, beside: []string{"internal/imageref"}, outside: []string{"os", "context", "time", "crypto/rand", "syscall"}},
		"internal/blockyaml":  {level: 0},
		"internal/layout":     {level: 0, beside: []string{"internal/yamlnode"}},
		"internal/jsonschema": {level: 0, beside: []string{"internal/yamlnode"}},
		"internal/layers":     {level: 0},
		"internal/kobj":       {level: 0},
		"internal/overlay":    {level: 0, beside: []string{"internal/admit", "internal/blockyaml", "internal/diag", "internal/kobj", "internal/yamlnode"}},
		"internal/celrule":    {level: 0},
		"internal/kinds":      {level: 0, beside: []string{"internal/diag", "internal/kobj"}},
		"internal/selector":   {level: 0, beside: []string{"internal/kobj"}},
		"internal/rbac":       {level: 0, beside: []string{"internal/kobj", "internal/selector"}},

		// The API server's own checks, wrapped so that others see plain values
		// and few packages compile against Kubernetes.
		"internal/admit":         {level: 0, beside: []string{"internal/imageref", "internal/kobj"}, outside: []string{"context"}},
		"diff/internal/podlevel": {level: 0},

		"internal/yamlnode/yamltest": {level: 0},

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

// pure returns what any package may use of one that reaches outside: functions
// of their arguments, and names.
func pure() map[string][]string {
	return map[string][]string{"time": {"Parse", "DateOnly", "RFC3339"}, "net/netip": {"ParseAddr"}}
}

// owned returns third-party modules that one package alone may import, and
// parts of them that more may.
func owned() map[string][]string {
	return map[string][]string{
		"github.com/go-git/go-git/v5/plumbing/format/gitignore": {"internal/gitrepo", "catalog/fbc"},

		"github.com/google/go-containerregistry": {"cmd/image", "internal/imageref", "registry", "registry/registrytest", "registry/trust/trusttest"},
		"github.com/go-git/go-git":               {"internal/gitrepo"},
		"github.com/sigstore":                    {"registry/trust", "registry/trust/trusttest", "registry/sign"},
		"sigs.k8s.io/controller-runtime":         {"report/kube", "cmd/quayside-report"},
		"github.com/prometheus":                  {"report/kube"},
		"k8s.io/client-go":                       {"internal/cluster", "report/kube", "cmd/quayside-report", "adopt/run/runtest"},
		"github.com/spf13/cobra":                 {"cmd/quayside/cli", "cmd/quayside/manual"},
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
		"pure/a.go":         {Data: []byte("package p\nimport \"time\"\nvar _, _ = time.Parse(time.DateOnly, \"\")\n")},
		"pure/clock.go":     {Data: []byte("package p\nimport \"time\"\nvar _, _ = time.Parse(time.DateOnly, time.Now().String())\n")},
		"pure/renamed.go":   {Data: []byte("package p\nimport t \"time\"\nvar _, _ = t.Parse(t.DateOnly, \"\")\n")},
	}
	got := faults(tree, map[string]rule{
		"low":  {level: 0},
		"twin": {level: 0, beside: []string{"low"}},
		"pure": {level: 0},
		"high": {level: 1, never: []string{"twin"}, outside: []string{"net"}},
	})
	want := []string{
		"fresh: not in the table of internal/layers",
		"high/a.go: imports github.com/google/go-containerregistry/pkg/name, which is for cmd/image and internal/imageref and registry and registry/registrytest and registry/trust/trusttest alone",
		"high/a.go: imports net/http, which reaches outside the program",
		"high/a.go: imports twin, of which high must not know",
		"low/a.go: imports high (level 1) from level 0",
		"pure/clock.go: imports time, which reaches outside the program",
		"pure/renamed.go: imports time, which reaches outside the program",
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
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
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
		if allowed, ok := pure()[imported]; ok && spec.Name == nil && onlyUses(f, imported, allowed) {
			continue
		}
		if why := breach(pkg, r, imported, rules); why != "" {
			out = append(out, fmt.Sprintf("%s: imports %s", name, why))
		}
	}
	return out, nil
}

// onlyUses reports whether a file takes nothing from a package but these names.
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

// breach returns what is wrong with an import, or "".
func breach(pkg string, r rule, imported string, rules map[string]rule) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		return inner(pkg, r, own, rules)
	}
	if within(imported, outward()) && imported != "net/url" && !slices.Contains(r.outside, imported) {
		return imported + ", which reaches outside the program"
	}
	owner := ""
	for mod := range owned() {
		if within(imported, []string{mod}) && len(mod) > len(owner) {
			owner = mod
		}
	}
	if users := owned()[owner]; owner != "" && !slices.Contains(users, pkg) {
		return imported + ", which is for " + strings.Join(users, " and ") + " alone"
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
