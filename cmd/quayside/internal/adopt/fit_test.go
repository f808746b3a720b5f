package adopt_test

import (
	"bytes"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TestRecordLater calls Record twice, like `adopt start` for two namespaces, one after the other. The tree
// first contains only one of the two operators. Each pin must get the annotations of its pods as soon as the
// tree contains the operator. Later calls must not change them.
func TestRecordLater(t *testing.T) {
	var live []k8s.Object
	var tree []render.Rendered
	lock := lockfile.New([]lockfile.Pin{newPin("a"), newPin("b")})
	for _, ns := range []string{"a", "b"} {
		d := k8s.With(newDeployment(ns, "i", "x.v1"), any("abc"), "spec", "template", "metadata", "annotations", "olmcahash")
		live = append(append(live, newInstalled(ns, "Succeeded")...), d)
		tree = append(tree, render.Rendered{Object: newDeployment(ns, "i", "x.v1"), Path: "operators/" + ns + ".x/d.yaml"})
	}
	seen := newSnapshot(t, live...)
	for i := range tree {
		lock, _ = adopt.Record(seen, lock, adopt.Begin(seen, lock), tree[:i+1])
		for j, pin := range lock.Pins {
			if recorded := pin.Adopted != nil && len(pin.Adopted.Annotations) == 1; recorded != (j <= i) {
				t.Errorf("the tree has %d operators: pin %s has %+v", i+1, pin.Key(), pin.Adopted)
			}
		}
	}
	restarted := k8s.With(live[2], any("now"), "spec", "template", "metadata", "annotations", "restartedAt")
	seen = newSnapshot(t, append([]k8s.Object{restarted}, live[3:]...)...)
	if again, _ := adopt.Record(seen, lock, adopt.Begin(seen, lock), tree); !bytes.Equal(lockfile.Format(again), lockfile.Format(lock)) {
		t.Errorf("the settings changed: %+v", again.Pins)
	}
}

// TestRecordDetached records an operator that OLM no longer manages and whose pin has no annotations. Record
// must not add annotations that the live pods got later.
func TestRecordDetached(t *testing.T) {
	pin := newPin("a")
	pin.Adopted = &lockfile.Adopted{Condition: "x.v1"}
	lock := lockfile.New([]lockfile.Pin{pin})
	d := k8s.Label(k8s.With(newDeployment("a", "i", "x.v1"), any("now"), "spec", "template", "metadata", "annotations", "restartedAt"), map[string]string{k8s.LabelPackage: "x"})
	tree := []render.Rendered{{Object: newDeployment("a", "i", "x.v1"), Path: "operators/a.x/d.yaml"}}
	seen := newSnapshot(t, d)
	if again, _ := adopt.Record(seen, lock, adopt.Begin(seen, lock), tree); len(again.Pins[0].Adopted.Annotations) > 0 {
		t.Errorf("recorded %+v", again.Pins[0].Adopted)
	}
}
