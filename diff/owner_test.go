package diff

import (
	"slices"
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

// TestWithNamespaces checks that objects with only a package as operator get the namespace of their operator.
func TestWithNamespaces(t *testing.T) {
	given := []Object{{Operator: "p"}, {Operator: "b/p"}, {Operator: "a/p"}, {Operator: "other"}, {}}
	var got []string
	for _, o := range withNamespaces(given) {
		got = append(got, o.Operator)
	}
	if want := []string{"a/p", "b/p", "a/p", "other", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if given[0].Operator != "p" {
		t.Error("the argument was changed")
	}
}
