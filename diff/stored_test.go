package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStored removes a version, with different observed status.storedVersions.
func TestStored(t *testing.T) {
	const name, plain = "widgets.demo.io", "{type: object}"
	v1 := versionEntry("v1", "served: true, storage: true", plain)
	beta := versionEntry("v1beta1", "served: true, storage: false", plain)
	for about, c := range map[string]struct {
		before string
		stored map[string][]string
		want   []string // findings with messages
	}{
		"unknown": {widgetOf(v1, beta), nil, []string{"high crd.served-version-removed v1beta1: served → -", "version v1beta1 is removed"}},
		"known only of another CRD": {
			widgetOf(v1, beta),
			map[string][]string{"gadgets.demo.io": {"v1beta1"}},
			[]string{"high crd.served-version-removed v1beta1: served → -", "version v1beta1 is removed"},
		},
		"not stored": {
			widgetOf(v1, beta),
			map[string][]string{name: {"v1"}},
			[]string{"high crd.served-version-removed v1beta1: served → -", "version v1beta1 is removed; no object is stored in this version"},
		},
		"stored": {
			widgetOf(v1, beta),
			map[string][]string{name: {"v1", "v1beta1"}},
			[]string{"critical crd.stored-version-removed v1beta1: storage version → -", "storage version v1beta1 is removed; the clusters' status.storedVersions contain this version, so the clusters will refuse the CRD"},
		},
		"stored, but not in the CRD": {
			widgetOf(v1, versionEntry("v2", "served: true, storage: false", plain)),
			map[string][]string{name: {"v1", "v1alpha1"}},
			[]string{
				"critical crd.stored-version-removed v1alpha1: storage version → -", "storage version v1alpha1 is removed; the clusters' status.storedVersions contain this version, so the clusters will refuse the CRD",
				"high crd.served-version-removed v2: served → -", "version v2 is removed; no object is stored in this version",
			},
		},
	} {
		t.Run(about, func(t *testing.T) {
			before := State{Name: "before", Objects: parsed(t, "ops/demo", "rendered/demo.yaml", c.before)}
			after := State{Name: "after", Objects: parsed(t, "ops/demo", "rendered/demo.yaml", widgetOf(v1))}
			r, err := Compare(before, after, CompareOptions{Stored: c.stored})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, line := range lines(r) {
				got = append(got, line, r.Findings[i].Message)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
