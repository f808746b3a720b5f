package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBlame checks that a finding is attributed to the right line of an overlay.
func TestBlame(t *testing.T) {
	patch := "kind: Deployment\nmetadata:\n  name: operator\nspec:\n  replicas: 3\n"
	field := fieldAt("spec", "replicas")
	for name, c := range map[string]struct {
		after string
		path  fieldPath
		files []File
		want  Region
	}{
		"the field with its value":  {"3", field, []File{{Path: "a.yaml", Data: []byte(patch)}}, Region{Path: "a.yaml", Line: 5, Column: 3, EndLine: 5, EndCol: 14}},
		"the field without a value": {"", field, []File{{Path: "a.yaml", Data: []byte(patch)}}, Region{Path: "a.yaml", Line: 3, Column: 3, EndLine: 3, EndCol: 17}},
		"only the name":             {"", nil, []File{{Path: "a.yaml", Data: []byte(patch)}}, Region{Path: "a.yaml", Line: 3, Column: 3, EndLine: 3, EndCol: 17}},
		"no match, so the first file": {
			"7", fieldAt("spec", "paused"),
			[]File{{Path: "a.yaml", Data: []byte("images: []\n")}, {Path: "b.yaml", Data: []byte("labels: []\n")}},
			Region{Path: "a.yaml"},
		},
		"the file with the name of the object": {
			"3", field,
			[]File{{Path: "a.yaml", Data: []byte("  name: other\n  replicas: 3\n")}, {Path: "b.yaml", Data: []byte(patch)}},
			Region{Path: "b.yaml", Line: 5, Column: 3, EndLine: 5, EndCol: 14},
		},
		"the first of equal lines": {
			"3", field,
			[]File{{Path: "a.yaml", Data: []byte("replicas: 3\nreplicas: 3\n")}, {Path: "b.yaml", Data: []byte("replicas: 3\n")}},
			Region{Path: "a.yaml", Line: 1, Column: 1, EndLine: 1, EndCol: 12},
		},
		"an image by its name": {
			"quay.io/x/app:v2", nil,
			[]File{{Path: "a.yaml", Data: []byte("images:\n- name: quay.io/x/app\n  newTag: v2\n")}},
			Region{Path: "a.yaml", Line: 2, Column: 3, EndLine: 2, EndCol: 22},
		},
		"a line of an item": {
			"", fieldAt("--verbose"),
			[]File{{Path: "a.yaml", Data: []byte("args:\n  - --verbose \n")}},
			Region{Path: "a.yaml", Line: 2, Column: 7, EndLine: 2, EndCol: 14},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Finding{Object: Ref{Kind: "Deployment", Name: "operator"}, After: c.after, path: c.path}
			f.blame(c.files)
			if d := cmp.Diff(c.want, f.Place); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
