package layers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// kept returns unused declarations that are kept, with the reason.
func kept() map[string]string {
	out := map[string]string{
		// Only tests use these.
		"internal/diag.Code.Meaning":                "docs/warnings.md is generated from it",
		"diff.exemption.description":                "docs/diff-rules.md is generated from it",
		"diff.exemption.reason":                     "docs/diff-rules.md is generated from it",
		"cmd/quayside/internal/rules.Entry.Codes":   "docs/rules.md is generated from it",
		"cmd/quayside/internal/rules.Entry.Demands": "docs/rules.md is generated from it",
	}
	for _, name := range strings.Fields(`Metadata.AppVersion Maintainer.Email
		Dependency.Alias Dependency.Condition`) {
		out["internal/helm."+name] = "part of Chart.yaml or of the answer, which readers of the package see whole"
	}
	return out
}

// TestUnused finds every constant, variable, type and field that the program does not use. The tools of
// make lint do not find all of them: deadcode finds only unreachable functions and methods. The linter
// unused ignores exported names, and accepts a field that the program sets but never reads. Uses in tests,
// and in packages whose names end in "test", do not count.
//
// The go command may cache the result of this test, because the test reads the sources itself. It uses the
// go command only for imported packages.
func TestUnused(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks the whole program")
	}
	p, err := loadProgram(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range p.unused(kept()) {
		t.Error(fault)
	}
}

// TestUnusedFindsAll runs the check on a module with unused declarations of every kind.
func TestUnusedFindsAll(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "unused.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir, want := t.TempDir(), []string(nil)
	for _, f := range archive.Files {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(archive.Comment)) {
		want = append(want, strings.TrimSpace(line))
	}
	p, err := loadProgram(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := p.unused(map[string]string{"example.org/m/cli.Kept": "for a reason", "example.org/m/cli.page": "is used", "example.org/m/cli.Gone": "is gone"})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// program holds the type-checked packages of the module.
type program struct {
	root     string
	fset     *token.FileSet
	packages []*checkedPackage
	declared []types.Object                // candidates, in the order of the sources
	owner    map[types.Object]types.Object // the type of a field
	used     map[types.Object]bool
	named    map[string]bool       // names in templates, which may be any object of that name
	compared map[types.Object]bool // fields of structs that are compared as a whole
}

// checkedPackage is a package as listed by go list, with the results of the type check.
type checkedPackage struct {
	Dir, ImportPath, Name, Export string
	GoFiles                       []string
	Module                        *struct{ Main bool }

	files []*ast.File
	types *types.Package
	info  *types.Info
}

// loadProgram type-checks all packages of the module in dir. For packages of other modules, it uses
// the export data of the compiler.
func loadProgram(dir string) (*program, error) {
	cmd := exec.Command("go", "list", "-tags", "kustomize_disable_go_plugin_support", "-deps", "-export", "-json=Dir,ImportPath,Name,Export,GoFiles,Module", "./...")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &program{
		root: root, fset: token.NewFileSet(), owner: map[types.Object]types.Object{},
		used: map[types.Object]bool{}, named: map[string]bool{}, compared: map[types.Object]bool{},
	}
	exported, own := map[string]string{}, ownImporter{}
	own.other = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		pkg := &checkedPackage{}
		if err := dec.Decode(pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exported[pkg.ImportPath] = pkg.Export
		if pkg.Module == nil || !pkg.Module.Main {
			continue
		}
		if err := p.check(pkg, &own); err != nil {
			return nil, err
		}
	}
	p.comparisons()
	for _, pkg := range p.packages {
		for _, f := range pkg.files {
			for _, d := range f.Decls {
				p.declare(pkg, d)
			}
		}
	}
	return p, nil
}

// ownImporter imports packages of the module that were already checked, and others by export data.
type ownImporter struct {
	own   map[string]*types.Package
	other types.Importer
}

func (i *ownImporter) Import(path string) (*types.Package, error) {
	if pkg, ok := i.own[path]; ok {
		return pkg, nil
	}
	return i.other.Import(path)
}

// check parses and type-checks a package.
func (p *program) check(pkg *checkedPackage, imports *ownImporter) error {
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		pkg.files = append(pkg.files, f)
	}
	pkg.info = &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
		Instances: map[*ast.Ident]types.Instance{},
	}
	var err error
	if pkg.types, err = (&types.Config{Importer: imports}).Check(pkg.ImportPath, p.fset, pkg.files, pkg.info); err != nil {
		return err
	}
	if imports.own == nil {
		imports.own = map[string]*types.Package{}
	}
	imports.own[pkg.ImportPath] = pkg.types
	p.packages = append(p.packages, pkg)
	return nil
}

// comparisons finds the structs that are compared by all fields: keys of maps, operands of ==, and
// type arguments with a comparable constraint.
func (p *program) comparisons() {
	var whole func(t types.Type)
	whole = func(t types.Type) {
		s, ok := t.Underlying().(*types.Struct)
		for i := 0; ok && i < s.NumFields(); i++ {
			if f := s.Field(i).Origin(); !p.compared[f] {
				p.compared[f] = true
				whole(f.Type())
			}
		}
	}
	for _, pkg := range p.packages {
		for e, tv := range pkg.info.Types {
			if m, ok := tv.Type.(*types.Map); ok {
				whole(m.Key())
			}
			if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
				whole(pkg.info.TypeOf(b.X))
			}
		}
		for id, in := range pkg.info.Instances {
			sig, ok := pkg.info.Uses[id].Type().(*types.Signature)
			for i := 0; ok && i < sig.TypeParams().Len(); i++ {
				if c, ok := sig.TypeParams().At(i).Constraint().Underlying().(*types.Interface); ok && c.IsComparable() {
					whole(in.TypeArgs.At(i))
				}
			}
		}
	}
}

// declare records the objects of a declaration, and the objects that it uses.
func (p *program) declare(pkg *checkedPackage, d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok { // without its receiver
		p.mention(pkg, f.Type, nil)
		if f.Body != nil {
			p.mention(pkg, f.Body, nil)
		}
		return
	}
	if doc := d.(*ast.GenDecl).Doc; doc != nil { // of a single variable
		p.mention(pkg, doc, nil)
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			o := pkg.info.Defs[s.Name]
			p.mention(pkg, s, o)
			p.declared = append(p.declared, o)
			p.fields(pkg, o, s.Type)
		case *ast.ValueSpec:
			p.mention(pkg, s, nil)
			for _, name := range s.Names {
				// A value of an enumeration also determines the values after it.
				isValue := d.(*ast.GenDecl).Tok == token.VAR || len(s.Values) > 0 && !mentionsIota(s.Values[0])
				if name.Name != "_" && isValue {
					p.declared = append(p.declared, pkg.info.Defs[name])
				}
			}
		}
	}
}

func mentionsIota(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return true
	})
	return found
}

// fields records the fields of a struct, except embedded fields and fields with a tag, which
// encoders find by name.
func (p *program) fields(pkg *checkedPackage, owner types.Object, t ast.Expr) {
	ast.Inspect(t, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || f.Tag != nil {
			return true
		}
		for _, name := range f.Names {
			if o, ok := pkg.info.Defs[name].(*types.Var); ok && o.IsField() && o.Name() != "_" {
				p.owner[o] = owner
				p.declared = append(p.declared, o)
			}
		}
		return true
	})
}

var templateField = regexp.MustCompile(`\.([A-Z]\w*)`)

// mention records the objects that n uses, except self. Setting a field is not a use of the
// field.
func (p *program) mention(pkg *checkedPackage, n ast.Node, self types.Object) {
	set := map[*ast.Ident]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if o := origin(pkg.info.Uses[n]); o != nil && o != self && !set[n] {
				p.used[o] = true
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				f, ok := pkg.info.Uses[key].(*types.Var)
				set[key] = ok && f.IsField()
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if sel, ok := to.(*ast.SelectorExpr); ok && n.Tok == token.ASSIGN {
					f, ok := pkg.info.Uses[sel.Sel].(*types.Var)
					set[sel.Sel] = ok && f.IsField()
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				p.mentionInTemplate(n.Value)
			}
		case *ast.Comment: // an embedded file may be a template
			files, ok := strings.CutPrefix(n.Text, "//go:embed ")
			for _, name := range strings.Fields(files) {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(p.fset.Position(n.Pos()).Filename), name))
				if ok && err == nil {
					p.mentionInTemplate(string(text))
				}
			}
		}
		return true
	})
}

// mentionInTemplate records the names that a template uses.
func (p *program) mentionInTemplate(text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	for _, m := range templateField.FindAllStringSubmatch(text, -1) {
		p.named[m[1]] = true
	}
}

// origin returns the generic declaration of an instance.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// unused returns a line for each unused declaration outside of test packages, and for each unnecessary
// entry of kept. Fields of an unused type are not listed.
func (p *program) unused(kept map[string]string) []string {
	var out []string
	ids := map[string]bool{}
	for _, o := range p.declared {
		id, owner := p.id(o), p.owner[o]
		ids[id] = true
		isUsed := p.used[o] || p.compared[o] || owner != nil && (!p.used[owner] || p.named[o.Name()])
		switch _, ok := kept[id]; {
		case ok && isUsed:
			out = append(out, id+" is kept for a reason, but is used")
		case ok || isUsed || strings.HasSuffix(o.Pkg().Path(), "test"):
		default:
			at := p.fset.Position(o.Pos())
			file, err := filepath.Rel(p.root, at.Filename)
			if err != nil {
				file = at.Filename
			}
			out = append(out, fmt.Sprintf("%s:%d: the program does not use %s", filepath.ToSlash(file), at.Line, id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		if !ids[id] {
			out = append(out, id+" is kept for a reason, but is gone")
		}
	}
	return out
}

// id returns the identifier of an object: "diff.Report.Of".
func (p *program) id(o types.Object) string {
	id := o.Name()
	if owner := p.owner[o]; owner != nil {
		id = owner.Name() + "." + id
	}
	return strings.TrimPrefix(o.Pkg().Path(), module+"/") + "." + id
}
