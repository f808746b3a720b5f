package layers_test

import (
	"cmp"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// message is the constant text of an error, a fault or a warning.
type message struct {
	text   string
	places []string // file:line, sorted
}

// TestMessages checks the form of all messages, and compares them with testdata/messages.txt, which
// shows near-copies of a message next to each other. ×N is the number of places of a text.
func TestMessages(t *testing.T) {
	all := messages(t)
	var list strings.Builder
	for _, m := range all {
		list.WriteString(strconv.Quote(m.text))
		if len(m.places) > 1 {
			list.WriteString(" ×" + strconv.Itoa(len(m.places)))
		}
		list.WriteString("\n")
		for _, fault := range messageFaults(m.text) {
			t.Errorf("%s: %q: %s", m.places[0], m.text, fault)
		}
	}
	golden := filepath.Join("testdata", "messages.txt")
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != list.String() {
		t.Errorf("%s is out of date: run 'go test ./internal/layers -run TestMessages -update' and check the differences", golden)
	}
}

// messages returns the messages of all programs and packages, sorted by their constant words.
func messages(t *testing.T) []message {
	t.Helper()
	found := map[string][]string{}
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
			if call, ok := n.(*ast.CallExpr); ok && writesMessage(call) {
				for _, arg := range call.Args {
					if text, ok := stringLiteral(arg); ok && strings.Contains(text, " ") {
						pos := files.Position(arg.Pos())
						found[text] = append(found[text], filepath.ToSlash(name)+":"+strconv.Itoa(pos.Line))
						break
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []message
	for _, text := range slices.Sorted(maps.Keys(found)) {
		all = append(all, message{text, slices.Sorted(slices.Values(found[text]))})
	}
	slices.SortStableFunc(all, func(a, b message) int { return cmp.Compare(constantText(a.text), constantText(b.text)) })
	return all
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

// verbs matches the placeholders of a format.
var verbs = regexp.MustCompile(`%(\[\d+\])?[+#]?\.?\d*[a-zA-Z]`)

// constantText returns the words of a message without placeholders and punctuation.
func constantText(text string) string {
	text = verbs.ReplaceAllString(text, " ")
	return strings.ToLower(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" :;,.()'\"", r) }), " "))
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
