package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// TestParseManifests checks the order of objects. The rest of the package runs in a child process:
// see the tests of internal/helm.
func TestParseManifests(t *testing.T) {
	sorted, skipped, err := parseManifests(map[string]string{
		"c/templates/b.yaml": "kind: B\nmetadata: {name: 1}\n---\nkind: ServiceAccount\nmetadata: {name: x}\n",
		"c/templates/a.yaml": "kind: B\nmetadata: {name: 2}\n---\nkind: Deployment\n---\nkind: A\n",
		"c/templates/_x.tpl": "kind: Never\n",
		"c/templates/h.yaml": "kind: Job\nmetadata: {annotations: {helm.sh/hook: test-success}}\n---\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: other}}\n",
	}, new(watch))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range sorted {
		got = append(got, strings.TrimSpace(m.head.String()+" "+strings.Join(m.hook.Hooks, ",")))
	}
	if d := cmp.Diff([]string{"ServiceAccount x", "Deployment", "A", "B 2", "B 1", "Job  test"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{`Pod  in c/templates/h.yaml (unknown hook "other")`}, skipped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDifferences(t *testing.T) {
	x := map[string]any{"same": 1.0, "a/b": 1.0, "list": []any{1.0, 2.0}, "longer": []any{1.0}, "type": "x"}
	y := map[string]any{"same": 1.0, "a/b": 2.0, "list": []any{1.0, 3.0}, "longer": []any{}, "type": []any{}, "new": true}
	if d := cmp.Diff([]string{"/a~1b", "/list/1", "/longer", "/new", "/type"}, differences(nil, "", x, y)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTemplateError checks the positions in Helm's errors.
func TestTemplateError(t *testing.T) {
	for text, want := range map[string]wire.Error{
		"execution error at (c/templates/a.yaml:1:23): set it":     {Path: "c/templates/a.yaml", Line: 1, Col: 4, Msg: "set it"},
		"parse error at (c/templates/_h.tpl:7): unexpected EOF":    {Path: "c/templates/_h.tpl", Line: 7, Msg: "unexpected EOF"},
		"c/templates/a.yaml:2:5\n  executing \"x\" at <y>:\n    z": {Path: "c/templates/a.yaml", Line: 2, Col: 5, Msg: `executing "x" at <y>: z`},
		"something else: 1:2": {Msg: "something else: 1:2"},
	} {
		j := &job{watch: new(watch), names: []string{"c/templates/a.yaml"}, sources: map[string]string{"c/templates/a.yaml": "", "c/templates/_h.tpl": ""}}
		if d := cmp.Diff(&want, j.templateError(errors.New(text))); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// TestSplitDocuments compares splitDocuments with Helm's function.
func TestSplitDocuments(t *testing.T) {
	for _, text := range []string{
		"", "a", "---\na\n---\nb\n", "a\n--- \t\nb\n---c\n----\nd\n", "\n \n---\n---\n\n", "a: |\n  ---\nb\n---\n  x\n", "a\r\n---\r\nb", "--- # c\na",
	} {
		want := releaseutil.SplitManifests(text)
		got := splitDocuments(text)
		if len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
			continue
		}
		for i, doc := range got {
			if w := want[fmt.Sprintf("manifest-%d", i)]; w != doc {
				t.Errorf("%q: got %q, want %q", text, doc, w)
			}
		}
	}
}
