package diff

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/internal/yamlnode"
)

// fully returns the documents of a text as the full parser reads them.
func fully(data []byte) ([]map[string]any, error) {
	docs, err := yamlnode.Documents("x.yaml", data, yamlnode.Limits{})
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, doc := range docs {
		text, err := yamlnode.JSON(doc)
		if err != nil {
			return nil, err
		}
		m, err := Content(text)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// agree fails the test where plainly takes a text and finds something else than
// the full parser, or something where that refuses. It reports whether it takes it.
func agree(t *testing.T, name string, data []byte) bool {
	t.Helper()
	got, ok := plainly(data)
	if !ok {
		return false
	}
	want, err := fully(data)
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" || err != nil {
		t.Errorf("%s: %v\n-full +plain\n%s\n%.2000s", name, err, d, data)
	}
	return true
}

func TestPlainly(t *testing.T) {
	for text, want := range map[string]bool{
		"a: 1\nb: [x]\n":      false,
		"# said\n---\na: b\n": true,
		"a: 1\nb: -1\nc: 1.50\nd: 1e3\ne: 0777\nf: 12_3\n":  true,
		"a: yes\nb: off\nc: ~\nd:\ne: Null\nf: y\n":         true,
		"a: 18446744073709551616\nb: 9223372036854775808\n": true,
		"a: 2024-01-01\nb: 1.2.3\nc: 0x1F\nd: 10m\ne: =\n":  true,
		"a: .inf\n": false,
		"a: |\n  x\n   y\n\nb: >-\n  x\n  y\nc: 'it''s'\n": true,
		"a: \"\\u00e4\\x41\\n\"\nb: \"<>&\\u2028\"\n":      true,
		"a: b\na: c\n":                 false,
		"a: b\n---\nc: d\n":            true,
		"a: b\n---\n- d\n":             false,
		"a: b\n---\n---\n~\n---\nc: d": true,
		"a: b\n--- {c: d}\n":           false,
		"- a\n":                        false,
		"":                             false,
		"a: &x b\nc: *x\n":             false,
		"a: \xff\n":                    false,
		"a:\n- b: c\n  d: {}\n- []\n":  true,
		strings.Repeat("a: [\n", 3):    false,
		nested(99):                     true,
		nested(101):                    false,
		"a:\n" + strings.Repeat("- b\n", maxPlain/4): false,
	} {
		if got := agree(t, "given", []byte(text)); got != want {
			t.Errorf("%.80q: taken %t, want %t", text, got, want)
		}
	}
}

// nested returns so many mappings, each in the one before.
func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()[:b.Len()-1] + " x\n"
}

// TestPlainlyReadsTheExamples holds that what quayside writes is read in the fast
// way.
func TestPlainlyReadsTheExamples(t *testing.T) {
	taken, total := 0, 0
	err := filepath.WalkDir("../examples", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(name, "/rendered/") || filepath.Ext(name) != ".yaml" {
			return err
		}
		_, inTree, _ := strings.Cut(name, "/rendered/")
		if level, _, _ := strings.Cut(inTree, "/"); !slices.Contains([]string{"crds", "installations", "namespaces", "operators", "reporter"}, level) {
			return nil // what holds no object of an operator
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		total++
		if agree(t, name, data) {
			taken++
		}
		return nil
	})
	if err != nil || total < 100 || taken*20 < total*19 {
		t.Errorf("%d of %d files are read in the fast way, %v", taken, total, err)
	}
}

// FuzzPlainly holds that the fast way finds what the full parser finds.
func FuzzPlainly(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: |\n    b\n"))
	f.Add([]byte("a: b\n---\nc: |\n  d\n  ---\n---\n# said\n---\ne: f\n"))
	f.Add([]byte("a: 1.0\nb: \"\\u0000\"\n'yes': no\nc:\n- 1\n- -.5e3\n"))
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, "drawn", data) })
}
