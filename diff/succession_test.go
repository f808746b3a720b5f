package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// TestSuccessor checks that an operator with a successor is not reported as removed, and that the
// removal of its leftover objects has no uninstall plan.
func TestSuccessor(t *testing.T) {
	object := func(kind, name, pkg string) Object {
		return parsed(t, "", "x.yaml", "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+", namespace: ops, labels: {quayside.dev/package: "+pkg+", quayside.dev/install-namespace: ops}}")[0]
	}
	operated := func(o Object, by string) Object {
		o.Operator = by
		return o
	}
	old := lockfile.Pin{Namespace: "ops", Package: "old", Version: "1.0.0", Bundle: "old.v1.0.0"}
	now := lockfile.Pin{Namespace: "ops", Package: "new", Version: "2.0.0", Bundle: "new.v2.0.0"}
	both, own := object("ServiceAccount", "both", "old"), object("ServiceAccount", "own", "old")
	crd := parsed(t, "ops/old", "crds/old/x.yaml", widget("{type: string}"))[0]
	before := State{Pins: []lockfile.Pin{old}, Objects: []Object{operated(both, "ops/old"), operated(own, "ops/old"), crd}}
	beside := State{
		Pins: []lockfile.Pin{now}, Leaving: []lockfile.Leaving{{ReplacedBy: "ops/new", Pin: old}},
		Objects: []Object{operated(both, "ops/new"), operated(own, "ops/old"), operated(crd, "ops/new")},
	}
	after := State{Pins: []lockfile.Pin{now}, Objects: []Object{operated(both, "ops/new"), operated(crd, "ops/new")}}

	r := compare(t, before, beside)
	if d := cmp.Diff([]string{"info upgrade.installed: - → 2.0.0", "info upgrade.followed: 1.0.0 → 2.0.0"}, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, f := range r.Findings {
		if f.Rule == "upgrade.followed" && !strings.HasSuffix(f.Message, "is replaced by ops/new 2.0.0; 2 objects are now managed by the successor, 1 is kept until the successor is observed ready") {
			t.Errorf("got message %s", f.Message)
		}
	}
	if len(r.Removals) > 0 {
		t.Errorf("unexpected uninstall plan %+v", r.Removals)
	}
	r = compare(t, beside, after)
	if d := cmp.Diff([]string{"low upgrade.leftovers-removed: 1.0.0 → -"}, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := r.Findings[0].Message; !strings.HasPrefix(got, "1 leftover object of ops/old removed") {
		t.Errorf("got message %s", got)
	}
	if len(r.Removals) > 0 {
		t.Errorf("unexpected uninstall plan %+v", r.Removals)
	}
}
