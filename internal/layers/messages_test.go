package layers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMessages checks the form of the texts of errors, faults and warnings in all programs and packages.
// The linters check only the texts in calls of errors.New and fmt.Errorf.
func TestMessages(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && (d.Name() == "testdata" || name == "test" || name == "tools" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(filepath.Dir(name), "test") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !writesMessage(call) {
				return true
			}
			for _, arg := range call.Args {
				if text, ok := stringLiteral(arg); ok && strings.Contains(text, " ") {
					for _, fault := range messageFaults(text) {
						t.Errorf("%s: %q: %s", files.Position(arg.Pos()), text, fault)
					}
					break
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writesMessage reports whether call creates an error, a fault or a warning.
func writesMessage(call *ast.CallExpr) bool {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "errors" && name == "New" {
			return true
		}
	}
	return regexp.MustCompile(`^(\w*[eE]rrorf|[fF]aultf?|[aA]ddf|[wW]arnf?|Hintf|Usagef|warnRejectedf|changedf|errorAt)$`).MatchString(name)
}

// stringLiteral returns the value of a string literal.
func stringLiteral(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// messageFaults returns the violations of the rules for messages.
func messageFaults(text string) []string {
	var out []string
	if strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...") || strings.HasSuffix(text, "!") {
		out = append(out, "ends with punctuation")
	}
	if m := oddWords.FindString(text); m != "" {
		out = append(out, strconv.Quote(m)+" must not be used in messages")
	}
	return out
}

// oddWords matches words and idioms that must not be used in messages.
var oddWords = regexp.MustCompile(`(?i)\b(failed to|who|whom|stands|mended|taken over|dialects?|out of step|in step|left alone|in the way|nobody|nothing asks|is no longer there|is there already|goes with|lies in|lies outside|heldBack|remainingHops)\b`)
