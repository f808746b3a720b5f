package yamlnode

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// TestEmptyDocuments checks that the number of allocations does not grow with the number of
// empty documents.
func TestEmptyDocuments(t *testing.T) {
	for _, empty := range []string{"---\n", "--- # nothing\n", "---\n\n", "---\r\n", "---\n# nothing\n\n", "---   \n"} {
		allocations := func(n int) float64 {
			data := []byte(strings.Repeat(empty, n) + "---\na: 1\n")
			return testing.AllocsPerRun(2, func() {
				docs, err := Documents("f", data, Limits{Nodes: 1 << 30})
				if err != nil || len(docs) != 1 || docs[0].Content[0].Line != bytes.Count(data, []byte("\n")) {
					t.Errorf("%d times %q: %d documents, %v", n, empty, len(docs), err)
				}
			})
		}
		if few, many := allocations(10), allocations(50_000); many > few+1000 { // the list of lines is reallocated sometimes
			t.Errorf("%q: %v allocations for 10, %v for 50000", empty, few, many)
		}
	}
}

// TestManyDocuments checks the limit on the number of documents of every form.
func TestManyDocuments(t *testing.T) {
	for _, one := range []string{"---\na: 1\n", "--- ~\n", "---\n...\n", "%YAML 1.1\n---\n...\n", "--- |\n"} {
		_, err := Documents("f", []byte(strings.Repeat(one, MaxDocuments+2)), Limits{Nodes: 1 << 30})
		if err == nil || !strings.Contains(err.Error(), "more than 100000 documents") {
			t.Errorf("%q: %.100v", one, err)
		}
	}
}

// TestCondense checks that condense does not change the values that the parser finds, or their lines.
func TestCondense(t *testing.T) {
	parsed := func(data []byte) (values []any, lines []int, fault string) {
		dec := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var n yaml.Node
			if err := dec.Decode(&n); err != nil {
				return values, lines, err.Error()
			}
			var v any
			if err := n.Decode(&v); err != nil {
				return values, lines, err.Error()
			}
			if v != nil {
				values, lines = append(values, v), append(lines, n.Content[0].Line)
			}
		}
	}
	parts := []string{
		"---\n", "---\n", "---\n", "--- # c\n", "\n", "# c\n", "  \n", "a: 1\n", "- 1\n", "a: |\n  x\n", "a: >+\n  x\n\n", "--- |\n", "--- >\n x\n", "--- {a: 1}\n",
		"...\n", "%YAML 1.1\n", "---\r\n", "---\tx\n", "---x\n", " ---\n", "'a\n", "b'\n", "\"\n", "---", "\t\n", "#\r---\n", "--- &a\n", "--- !!str\n", "\u0085", "# \u2028a: 1\n", "  x\n", "[\n", "]\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), ""))
		before := bytes.Clone(data)
		short, err := condense(data)
		if err != nil || len(short) != len(data) || !bytes.Equal(data, before) {
			t.Fatalf("%q: %q, %v", data, short, err)
		}
		values, lines, fault := parsed(data)
		got, at, wrong := parsed(short)
		if d := cmp.Diff(values, got); d != "" || !cmp.Equal(lines, at) || (fault == "EOF") != (wrong == "EOF") {
			t.Errorf("%q, %q: lines %v and %v, %q and %q\n%s", data, short, lines, at, fault, wrong, d)
		}
		if IsEmpty(data) && len(values) > 0 {
			t.Errorf("%q is not empty: %v", data, values)
		}
	})
}
