package resolve_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRules checks the table of the package comment. Each identifier in the table exists, and its comment
// mentions the number of the rule. Each identifier whose comment mentions a rule is in the table.
func TestRules(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	table := ""
	comments := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		table += f.Doc.Text()
		maps.Copy(comments, docComments(f))
	}
	row := regexp.MustCompile(`(?m)^\t([ \d]\d) .*?  +(\S.*)$`)
	rows := row.FindAllStringSubmatch(table, -1)
	if len(rows) != 15 {
		t.Fatalf("%d rows in the table of rules, want 15", len(rows))
	}
	listed := map[string]bool{}
	for _, r := range rows {
		rule := "ule " + strings.TrimSpace(r[1])
		for _, name := range strings.Split(r[2], ", ") {
			listed[name+" "+rule] = true
			if says, ok := comments[name]; !ok {
				t.Errorf("%s, which the table lists for r%s, does not exist", name, rule)
			} else if !regexp.MustCompile(rule + `\b`).MatchString(says) {
				t.Errorf("the comment of %s does not mention r%s", name, rule)
			}
		}
	}
	for name, says := range comments {
		for _, rule := range regexp.MustCompile(`\bRule (\d+)\b`).FindAllStringSubmatch(says, -1) {
			if !listed[fmt.Sprintf("%s ule %s", name, rule[1])] {
				t.Errorf("the comment of %s mentions rule %s, but the table does not list it", name, rule[1])
			}
		}
	}
}

// docComments returns the comments of functions, methods, types, constants and fields, by name.
func docComments(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				name = fmt.Sprint(of) + "." + name
			}
			out[name] = d.Doc.Text()
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					out[s.Name.Name] = d.Doc.Text()
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, n := range field.Names {
								out[s.Name.Name+"."+n.Name] = field.Comment.Text()
							}
						}
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						out[n.Name] = s.Comment.Text()
					}
				}
			}
		}
	}
	return out
}
