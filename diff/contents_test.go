package diff

import (
	"bytes"
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

// parseFully parses a text with the full parser.
func parseFully(data []byte) ([]map[string]any, error) {
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

// compareParsers reports an error if parseContents and the full parser differ.
func compareParsers(t *testing.T, name string, data []byte) {
	t.Helper()
	got, fault := parseContents(File{Path: "x.yaml", Data: data})
	want, err := parseFully(data)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || (err == nil) != (fault == nil) {
		t.Errorf("%s: %v and %v\n-full +fast\n%s\n%.2000s", name, err, fault, d, data)
	}
}

func TestContents(t *testing.T) {
	for _, text := range []string{
		"a: 18446744073709551616\nb: 9223372036854775808\nc: 9223372036854775807\nd: 1e16\ne: 1e18\nf: 1e19\ng: 9.223372036854776e+18\nh: -.5\ni: -0.0\n",
		`{"a": 18446744073709551616, "b": 9223372036854775808, "c": 1e16, "d": 1e19, "e": -0.0, "f": 1.50}`,
		"a: .inf\n", "- a\n", "a: b\n---\n~\n---\nc: &x d\n",
	} {
		compareParsers(t, "given", []byte(text))
	}
}

// TestExamplesUseTheFastPath checks that files in quayside's format are parsed by the fast path.
func TestExamplesUseTheFastPath(t *testing.T) {
	taken, total := 0, 0
	err := filepath.WalkDir("../examples", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(name, "/rendered/") || filepath.Ext(name) != ".yaml" {
			return err
		}
		_, inTree, _ := strings.Cut(name, "/rendered/")
		if level, _, _ := strings.Cut(inTree, "/"); !slices.Contains([]string{"crds", "installations", "namespaces", "operators", "reporter"}, level) {
			return nil // contains no objects of operators
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		total++
		compareParsers(t, name, data)
		var docs yamlnode.Stream
		docs.Reset(bytes.NewReader(data), 0, len(data))
		var r yamlnode.Reader
		for {
			text, _, err := docs.Next()
			if err != nil {
				taken += min(r.Quick, 1)
				return nil
			}
			if _, err = r.Read(name, 1, text, yamlnode.Limits{}, nil); err != nil {
				return err
			}
		}
	})
	if err != nil || total < 100 || taken*20 < total*19 {
		t.Errorf("%d of %d files use the fast path, %v", taken, total, err)
	}
}

// FuzzContents compares the fast path with the full parser.
func FuzzContents(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: |\n    b\n"))
	f.Add([]byte("a: b\n---\nc: |\n  d\n  ---\n---\n# said\n---\ne: f\n"))
	f.Add([]byte("a: 1.0\nb: \"\\u0000\"\n'yes': no\nc:\n- 1\n- -.5e3\n"))
	f.Fuzz(func(t *testing.T, data []byte) { compareParsers(t, "drawn", data) })
}
