package diff

import (
	"testing"

	"github.com/quayside/quayside/lockfile"
)

func TestOwnerOf(t *testing.T) {
	pins := []lockfile.Pin{{Namespace: "a", Package: "p"}, {Namespace: "b", Package: "p"}, {Namespace: "b", Package: "quayside"}}
	for _, c := range []struct{ pkg, ns, want string }{
		{"", "a", ""},
		{"p", "b", "b/p"},
		{"p", "", "a/p"}, // a CRD belongs to the first operator that provides it
		{"other", "", "other"},
		{"quayside", "a", ""}, // a Namespace that several operators share
		{"quayside", "b", "b/quayside"},
	} {
		got := objectOwner(map[string]any{"metadata": map[string]any{"labels": map[string]any{"quayside.dev/package": c.pkg, "quayside.dev/install-namespace": c.ns}}}, pins)
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
