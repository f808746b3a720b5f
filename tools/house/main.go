// Command house measures the structure of the program and compares it with limits.txt: make lint
// fails if a figure is above its limit. A limit is raised in the commit that needs it, with the
// reason in the last column.
//
// Usage: go run ./house [ROOT]
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	h, err := measure(root)
	if err == nil {
		err = h.compare(filepath.Join(root, "tools/house/limits.txt"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// house is the measured program: its Go files without tests, fakes and nested modules.
type house struct {
	lines    map[string]int      // by package
	tests    map[string]bool     // packages with tests beside the code
	methods  map[string]int      // by package.Type
	types    map[string][]string // packages by the name of an exported or unexported type
	paths    map[string]int      // lines of the longest function on the path of a command, by command
	builds   []string            // functions that run kustomize
	public   []string            // packages that the programs in examples/library import
	upward   []string            // exported function fields, by which lower packages call higher ones
	defaults []string            // places that fall back from a cluster's setting to the workspace's
}

// paths are the commands whose main functions must be short enough to show the stages of the command.
// The directive //house:path COMMAND marks these functions.
var paths = []string{"resolve", "render"}

var (
	fallback = regexp.MustCompile(`cmp\.Or\(\w*[cC]l?\w*\.(KubernetesVersion|OpenShiftVersion|Certificates|Profile|Provides|Config|Proxy|Mirrors|GitOps)\b`)
	marker   = regexp.MustCompile(`^//house:path (\w+)$`)
)

func measure(root string) (*house, error) {
	h := &house{lines: map[string]int{}, tests: map[string]bool{}, methods: map[string]int{}, types: map[string][]string{}, paths: map[string]int{}}
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return h.skip(files, name, d)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		return h.add(files, name)
	})
	if err != nil {
		return nil, err
	}
	h.public, err = importedBy(files, "examples/library")
	return h, err
}

// skip skips test data, hidden directories, fakes and nested modules.
func (*house) skip(files fs.FS, name string, d fs.DirEntry) error {
	if name == "." {
		return nil
	}
	if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || name == "internal/testing" || strings.HasSuffix(d.Name(), "test") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(files, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (h *house) add(files fs.FS, name string) error {
	dir := path.Dir(name)
	if strings.HasSuffix(name, "_test.go") {
		h.tests[dir] = true
		return nil
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	h.lines[dir] += strings.Count(string(data), "\n")
	for i, line := range strings.Split(string(data), "\n") {
		if fallback.MatchString(line) {
			h.defaults = append(h.defaults, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			h.addTypes(dir, d)
		case *ast.FuncDecl:
			h.addFunc(set, dir, d)
		}
	}
	return nil
}

func (h *house) addTypes(dir string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok || t.Assign != 0 {
			continue
		}
		h.types[t.Name.Name] = append(h.types[t.Name.Name], dir)
		if s, ok := t.Type.(*ast.StructType); ok {
			h.addCallbacks(dir+"."+t.Name.Name, s)
		}
	}
}

// addCallbacks records function fields of options and environments: a lower package calls a
// higher one through them.
func (h *house) addCallbacks(name string, s *ast.StructType) {
	if !slices.ContainsFunc([]string{".Options", ".Env", ".Problem"}, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return
	}
	for _, field := range s.Fields.List {
		if _, isFunc := field.Type.(*ast.FuncType); !isFunc {
			continue
		}
		for _, n := range field.Names {
			if n.IsExported() && n.Name != "Getenv" {
				h.upward = append(h.upward, name+"."+n.Name)
			}
		}
	}
}

func (h *house) addFunc(set *token.FileSet, dir string, d *ast.FuncDecl) {
	if d.Recv != nil {
		h.methods[dir+"."+receiver(d.Recv.List[0].Type)]++
	}
	lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "MakeKustomizer" {
			h.builds = append(h.builds, dir+"."+d.Name.Name)
		}
		return true
	})
	if d.Doc == nil {
		return
	}
	for _, c := range d.Doc.List {
		if m := marker.FindStringSubmatch(c.Text); m != nil {
			h.paths[m[1]] = max(h.paths[m[1]], lines)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// importedBy returns the packages of the program that the Go files below dir import, sorted.
func importedBy(files fs.FS, dir string) ([]string, error) {
	var out []string
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if p, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/quayside/quayside/"); ok {
				out = append(out, p)
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// figure is a row of the table: a number, and where it comes from.
type figure struct {
	name  string
	value int
	from  string
}

func (h *house) figures() []figure {
	var out []figure
	for _, name := range paths {
		lines, marked := h.paths[name]
		if !marked {
			lines = math.MaxInt
		}
		out = append(out, figure{name + "-lines", lines, "longest function on the path of quayside " + name})
	}
	largest := ""
	for name, n := range h.methods {
		if n > h.methods[largest] || n == h.methods[largest] && name < largest {
			largest = name
		}
	}
	out = append(out,
		figure{"methods", h.methods[largest], largest},
		figure{"callbacks", len(h.upward), strings.Join(h.upward, " ")},
		figure{"kustomize-calls", len(h.builds), strings.Join(h.builds, " ")},
		figure{"not-importable", 7 - len(slices.DeleteFunc(slices.Clone(h.public), isBelow)), "imported by examples/library: " + strings.Join(h.public, " ")},
		figure{"internal-percent", h.share("internal/"), "share of lines in internal/"},
	)
	for _, name := range []string{"Catalog", "Source", "Rule", "Result", "Object"} {
		out = append(out, figure{"types-" + name, len(h.types[name]), strings.Join(h.types[name], " ")})
	}
	out = append(out, figure{"cluster-defaults", len(h.defaults), strings.Join(h.defaults, " ")})
	var untested []string
	for dir, n := range h.lines {
		if n >= 200 && !h.tests[dir] {
			untested = append(untested, dir)
		}
	}
	slices.Sort(untested)
	adopt := h.sum(isAdopt)
	return append(out,
		figure{"untested-packages", len(untested), strings.Join(untested, " ")},
		figure{"lines-core", h.sum(func(string) bool { return true }) - adopt, "without adopt, fakes and tests"},
		figure{"lines-adopt", adopt, ""},
	)
}

func isBelow(pkg string) bool { return strings.Contains(pkg, "/") }

func isAdopt(dir string) bool {
	return strings.HasPrefix(dir+"/", "cmd/quayside/internal/adopt/")
}

func (h *house) sum(is func(dir string) bool) int {
	n := 0
	for dir, lines := range h.lines {
		if is(dir) {
			n += lines
		}
	}
	return n
}

func (h *house) share(prefix string) int {
	return 100 * h.sum(func(dir string) bool { return strings.HasPrefix(dir+"/", prefix) }) / h.sum(func(string) bool { return true })
}

// compare prints each figure beside its limit. It returns an error if a figure is above its limit, or has no
// limit.
func (h *house) compare(file string) error {
	limits, err := readLimits(file)
	if err != nil {
		return err
	}
	var above []string
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range h.figures() {
		limit, ok := limits[f.name]
		if !ok || f.value > limit {
			above = append(above, fmt.Sprintf("%s: %d, limit %d: %s", f.name, f.value, limit, f.from))
		}
		from := f.from
		if len(from) > 100 {
			from = from[:97] + "..."
		}
		fmt.Fprintf(w, "%s\t%d\t≤ %d\t%s\n", f.name, f.value, limit, from)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(above) > 0 {
		return fmt.Errorf("above the limits of %s:\n%s", file, strings.Join(above, "\n"))
	}
	return nil
}

// readLimits returns the limits in a file by name. Each line of the file has a name, a number and a reason.
func readLimits(file string) (map[string]int, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s: %q: want a name and a number", file, lines.Text())
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, lines.Text(), err)
		}
		out[fields[0]] = n
	}
	return out, lines.Err()
}
