package olmexit_test

import (
	"testing"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/olmexit"
	"github.com/quayside/quayside/render"
)

// TestRecordLater records the settings of two operators, one after the other, like `adopt start` for two
// namespaces: the tree has only the first one at first. Both get the annotations of their pods.
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
		lock, _ = olmexit.Record(seen, lock, olmexit.Begin(seen, lock), tree[:i+1])
		for j, pin := range lock.Pins {
			if recorded := pin.Adopted != nil && len(pin.Adopted.Annotations) == 1; recorded != (j <= i) || pin.Adopted != nil && !recorded {
				t.Errorf("the tree has %d operators: pin %s has %+v", i+1, pin.Key(), pin.Adopted)
			}
		}
	}
}
