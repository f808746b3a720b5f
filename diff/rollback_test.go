package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// TestRollback compares an upgrade with its revert. The default policy accepts the revert, unless data is
// lost.
func TestRollback(t *testing.T) {
	const plain = "{type: object}"
	v1 := versionEntry("v1", "served: true, storage: true", plain)
	pins := func(version string) []lockfile.Pin {
		return []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: version, Bundle: "demo.v" + version}}
	}
	for name, c := range map[string]struct {
		newer, older string // CRDs
		rolledBack   []string
		want         []string
		message      string
		fails        bool
	}{
		"downgrade": {
			newer: widgetOf(v1), older: widgetOf(v1),
			want: []string{"high upgrade.downgrade: 1.1.0 → 1.0.0"}, message: "demo downgraded from 1.1.0 to 1.0.0", fails: true,
		},
		"nothing lost": {
			newer: widgetOf(v1), older: widgetOf(v1), rolledBack: []string{"ops/demo"},
			want: []string{"medium upgrade.rolled-back: 1.1.0 → 1.0.0"}, message: "demo rolled back from 1.1.0 to 1.0.0, which was merged before",
		},
		"a field": {
			newer: widgetOf(versionEntry("v1", "served: true, storage: true", "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}")),
			older: widgetOf(versionEntry("v1", "served: true, storage: true", "{type: object, properties: {spec: {type: object}}}")), rolledBack: []string{"ops/demo"},
			want:    []string{"medium crd.field-removed v1 spec.size: integer → -", "medium upgrade.rolled-back: 1.1.0 → 1.0.0"},
			message: "demo rolled back from 1.1.0 to 1.0.0, which was merged before; not brought back: widgets.demo.io v1 spec.size",
		},
		"a stored version": {
			newer: widgetOf(versionEntry("v2", "served: true, storage: true", plain), versionEntry("v1", "served: true, storage: false", plain)), older: widgetOf(v1), rolledBack: []string{"ops/demo"},
			want:    []string{"critical crd.stored-version-removed v2: storage version → -", "medium upgrade.rolled-back: 1.1.0 → 1.0.0", "low crd.storage-version-changed spec.versions: v2 → v1"},
			message: "demo rolled back from 1.1.0 to 1.0.0, which was merged before; not brought back: widgets.demo.io v2", fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := State{Name: "before", Pins: pins("1.1.0"), Objects: parsed(t, "ops/demo", "rendered/demo.yaml", c.newer)}
			after := State{Name: "after", Pins: pins("1.0.0"), Objects: parsed(t, "ops/demo", "rendered/demo.yaml", c.older)}
			r, err := Compare(before, after, CompareOptions{RolledBack: c.rolledBack})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, lines(r)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			message := ""
			for _, f := range r.Findings {
				if f.family() == "upgrade" {
					message = f.Message
				}
			}
			judged, err := Judge(r, Policy{FailOn: High}, "2026-11-29")
			if err != nil || message != c.message || judged.Verdict.Fail != c.fails {
				t.Errorf("%v, %q, fails: %v", err, message, judged.Verdict.Fail)
			}
		})
	}
}
