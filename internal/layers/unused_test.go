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

// kept returns unreachable declarations that are kept, with the reason. Everything that they use
// counts as reachable.
func kept() map[string]string {
	return map[string]string{
		"internal/oci.rawManifest.MediaType": "remote.Write calls it through an unnamed interface",

		// Only tests use these.
		"internal/base/diag.Code.Meaning": "docs/warnings.md is generated from it",
		"diff.exemption.description":      "docs/diff-rules.md is generated from it",
		"diff.exemption.reason":           "docs/diff-rules.md is generated from it",
		"internal/base/store.Store.Dir":   "the directory of the store",
	}
}

// TestUnused finds every function, method, type, constant, variable and field that is not reachable
// from a main function. Tests, and packages whose names end in "test", do not count as uses, and
// declarations of these packages are not checked.
//
// Cached results of this test are valid: it reads the sources itself, and uses the go command only
// for imported packages.
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
	got := p.unused(map[string]string{"example.org/m/cli.Kept": "for a reason", "example.org/m/cli.Main": "is used", "example.org/m/cli.Gone": "is gone"})
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
	uses     map[types.Object][]use        // objects and names that the declaration of an object uses
	owner    map[types.Object]types.Object // the type of a method or a field
	roots    []use
	ifaces   map[string][]*types.Interface // by method name
	compared map[types.Object]bool         // fields of structs that are compared as a whole
}

// use is a use of an object, or of a name in a template, which may be any object of that name.
type use struct {
	object types.Object
	name   string
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
		root: root, fset: token.NewFileSet(), uses: map[types.Object][]use{}, owner: map[types.Object]types.Object{},
		ifaces: map[string][]*types.Interface{}, compared: map[types.Object]bool{},
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
	p.interfaces()
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

// interfaces collects all interfaces that values of the program may be converted to.
func (p *program) interfaces() {
	add := func(t types.Type) {
		iface, ok := t.Underlying().(*types.Interface)
		for i := 0; ok && i < iface.NumMethods(); i++ {
			name := iface.Method(i).Name()
			p.ifaces[name] = append(p.ifaces[name], iface)
		}
	}
	add(types.Universe.Lookup("error").Type())
	for _, name := range []string{"Unwrap", "Is", "As"} {
		p.ifaces[name] = append(p.ifaces[name], types.NewInterfaceType(nil, nil)) // package errors uses unnamed interfaces
	}
	seen := map[*types.Package]bool{}
	for _, pkg := range p.packages {
		for _, tv := range pkg.info.Types {
			if tv.IsType() {
				if _, named := tv.Type.(*types.Named); !named || tv.Type.(*types.Named).Obj().Pkg() == pkg.types {
					add(tv.Type)
				}
			}
		}
		for _, from := range pkg.types.Imports() {
			if seen[from] {
				continue
			}
			seen[from] = true
			for _, name := range from.Scope().Names() {
				if t, ok := from.Scope().Lookup(name).(*types.TypeName); ok {
					add(t.Type())
				}
			}
		}
	}
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
	if f, ok := d.(*ast.FuncDecl); ok {
		o := pkg.info.Defs[f.Name].(*types.Func)
		p.uses[o] = p.mentions(pkg, f)
		if recv := o.Signature().Recv(); recv != nil {
			p.owner[o] = typeName(recv.Type())
		} else if o.Name() == "init" || o.Name() == "main" && pkg.Name == "main" {
			p.roots = append(p.roots, use{object: o})
		}
		p.declared = append(p.declared, o)
		return
	}
	var enumeration []use
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			o := pkg.info.Defs[s.Name]
			p.uses[o] = p.mentions(pkg, s)
			p.declared = append(p.declared, o)
			p.fields(pkg, o, s.Type)
		case *ast.ValueSpec:
			mentioned := p.mentions(pkg, s)
			if doc := d.(*ast.GenDecl).Doc; doc != nil { // of a single variable
				mentioned = append(mentioned, p.mentions(pkg, doc)...)
			}
			for _, name := range s.Names {
				if name.Name == "_" {
					p.roots = append(p.roots, mentioned...)
					continue
				}
				o := pkg.info.Defs[name]
				p.uses[o] = mentioned
				p.declared = append(p.declared, o)
				if len(s.Values) == 0 || mentionsIota(s.Values[0]) {
					enumeration = append(enumeration, use{object: o})
				}
			}
		}
	}
	// The use of one value of an enumeration is a use of all, because each determines the values of
	// those after it.
	for _, one := range enumeration {
		if d.(*ast.GenDecl).Tok == token.CONST {
			p.uses[one.object] = append(slices.Clone(p.uses[one.object]), enumeration...)
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

// mentions returns the uses in a piece of source. Setting a field is not a use of it.
func (p *program) mentions(pkg *checkedPackage, n ast.Node) []use {
	var out []use
	set := map[*ast.Ident]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if o := origin(pkg.info.Uses[n]); o != nil && !set[n] {
				out = append(out, use{object: o})
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
			if n.Kind == token.STRING && strings.Contains(n.Value, "{{") {
				out = append(out, templateUses(n.Value)...)
			}
		case *ast.Comment: // an embedded file may be a template
			files, ok := strings.CutPrefix(n.Text, "//go:embed ")
			for _, name := range strings.Fields(files) {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(p.fset.Position(n.Pos()).Filename), name))
				if ok && err == nil && strings.Contains(string(text), "{{") {
					out = append(out, templateUses(string(text))...)
				}
			}
		}
		return true
	})
	return out
}

// templateUses returns the names that a template uses.
func templateUses(template string) []use {
	var out []use
	for _, m := range templateField.FindAllStringSubmatch(template, -1) {
		out = append(out, use{name: m[1]})
	}
	return out
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

func typeName(t types.Type) types.Object {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	return types.Unalias(t).(*types.Named).Obj()
}

// unused returns a line for each unreachable declaration outside of test packages, and for each
// unnecessary entry of kept. Fields and methods of an unreachable type are not listed.
func (p *program) unused(kept map[string]string) []string {
	var out []string
	roots, ids := p.roots, map[string]bool{}
	reached, _ := p.reach(roots)
	for _, o := range p.declared {
		id := p.id(o)
		ids[id] = true
		if _, ok := kept[id]; ok && reached[o] {
			out = append(out, id+" is kept for a reason, but a program reaches it")
		} else if ok {
			roots = append(roots, use{object: o})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		if !ids[id] {
			out = append(out, id+" is kept for a reason, but is gone")
		}
	}
	reached, named := p.reach(roots)
	for _, o := range p.declared {
		owner := p.owner[o]
		if reached[o] || p.compared[o] || owner != nil && (!reached[owner] || named[o.Name()]) || strings.HasSuffix(o.Pkg().Path(), "test") {
			continue
		}
		at := p.fset.Position(o.Pos())
		file, err := filepath.Rel(p.root, at.Filename)
		if err != nil {
			file = at.Filename
		}
		out = append(out, fmt.Sprintf("%s:%d: no program reaches %s", filepath.ToSlash(file), at.Line, p.id(o)))
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

// reach returns the objects that are reachable from roots, and the names that reachable templates
// use. Methods of a reachable type are reachable if some interface of the program requires them.
func (p *program) reach(roots []use) (reached map[types.Object]bool, named map[string]bool) {
	reached, named = map[types.Object]bool{}, map[string]bool{}
	for todo := slices.Clone(roots); len(todo) > 0; {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if u.object == nil {
			named[u.name] = true
			continue
		}
		if reached[u.object] {
			continue
		}
		reached[u.object] = true
		todo = append(todo, p.uses[u.object]...)
		t, ok := u.object.(*types.TypeName)
		if !ok || types.IsInterface(t.Type()) {
			continue
		}
		for m := range types.NewMethodSet(types.NewPointer(t.Type())).Methods() {
			if f := origin(m.Obj()).(*types.Func); p.isRequired(f, t.Type()) {
				todo = append(todo, use{object: f})
			}
		}
	}
	return reached, named
}

// isRequired reports whether an interface that t implements has the method.
func (p *program) isRequired(m *types.Func, t types.Type) bool {
	named, _ := types.Unalias(t).(*types.Named)
	generic := named != nil && named.TypeParams().Len() > 0
	return slices.ContainsFunc(p.ifaces[m.Name()], func(i *types.Interface) bool {
		return generic || types.Implements(types.NewPointer(t), i)
	})
}
