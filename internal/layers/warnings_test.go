package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// warners returns the functions that create warnings, with the index of the code in their arguments.
func warners() map[string]int {
	return map[string]int{"warnFor": 1, "warnf": 0, "warnRejectedf": 1, "warn": 2, "in.warn": 1, "warnMinor": 1, "in.note": 1}
}

// TestWarningsHaveCodes checks that each warning in the sources has a code of diag.Codes, and that
// each of these codes is used.
func TestWarningsHaveCodes(t *testing.T) {
	codes := map[string]int{}
	for _, c := range diag.Codes() {
		codes[c.ID] = 0
	}
	used := func(pos token.Position, e ast.Expr, file *ast.File) {
		for _, code := range literals(e, file) {
			if _, known := codes[code]; !known {
				t.Errorf("%s: warning %q is not in the table of diag.Codes", pos, code)
			}
			codes[code]++
		}
	}
	made := 0
	for _, name := range sources(t) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if code := field(n, "Code"); code != nil && isHold(n.Type) {
					used(set.Position(n.Pos()), code, file)
				}
				for _, lit := range warningsIn(n) {
					if len(lit.Elts) == 0 {
						continue
					}
					made++
					code := field(lit, "Code")
					if code == nil {
						t.Errorf("%s: a warning without a code", set.Position(lit.Pos()))
						continue
					}
					used(set.Position(lit.Pos()), code, file)
				}
			case *ast.CallExpr:
				if id, local := n.Fun.(*ast.Ident); local {
					if arg, ok := warners()[id.Name]; ok && arg < len(n.Args) {
						used(set.Position(n.Pos()), n.Args[arg], file)
					}
				}
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				arg, ok := warners()[sel.Sel.Name]
				if x, named := sel.X.(*ast.Ident); named {
					if i, special := warners()[x.Name+"."+sel.Sel.Name]; special {
						arg, ok = i, true
					}
				}
				if ok && arg < len(n.Args) {
					used(set.Position(n.Pos()), n.Args[arg], file)
				}
			}
			return true
		})
	}
	if made < 30 {
		t.Errorf("found only %d warnings: this test does not recognize the current form of warnings", made)
	}
	for code, n := range codes {
		if n == 0 {
			t.Errorf("no warning has the code %q of diag.Codes", code)
		}
	}
}

// sources returns the files of the program.
func sources(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || slices.Contains([]string{"testdata", "tools", "test"}, d.Name())):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, filepath.Join("diag", "codes.go")):
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// warningsIn returns the literals of warnings in n: n itself or, if n is a list, its elements. It also
// recognizes the type name without "diag.", which package diag itself uses.
func warningsIn(n *ast.CompositeLit) []*ast.CompositeLit {
	is := func(e ast.Expr) bool {
		if sel, ok := e.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			return ok && x.Name == "diag" && sel.Sel.Name == "Warning"
		}
		x, ok := e.(*ast.Ident)
		return ok && x.Name == "Warning"
	}
	if is(n.Type) {
		return []*ast.CompositeLit{n}
	}
	list, ok := n.Type.(*ast.ArrayType)
	if !ok || !is(list.Elt) {
		return nil
	}
	var out []*ast.CompositeLit
	for _, e := range n.Elts {
		if lit, ok := e.(*ast.CompositeLit); ok && lit.Type == nil {
			out = append(out, lit)
		}
	}
	return out
}

// isHold reports whether e is the type of a hold or a finding. Their codes become codes of warnings.
func isHold(e ast.Expr) bool {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name == "Finding"
	}
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Hold"
}

// field returns the value of a field of a struct literal, or nil.
func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// literals returns the possible values of e: a literal itself, or all literals that the file assigns
// to a variable of that name.
func literals(e ast.Expr, file *ast.File) []string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return nil
		}
		return []string{text}
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				if _, plain := spec.Values[i].(*ast.BasicLit); plain && name.Name == id.Name {
					out = append(out, literals(spec.Values[i], file)...)
				}
			}
		}
		set, ok := n.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != len(set.Rhs) {
			return true
		}
		for i, to := range set.Lhs {
			if x, ok := to.(*ast.Ident); ok && x.Name == id.Name {
				if _, plain := set.Rhs[i].(*ast.BasicLit); plain {
					out = append(out, literals(set.Rhs[i], file)...)
				}
			}
		}
		return true
	})
	return out
}
