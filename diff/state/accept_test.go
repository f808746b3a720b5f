package state

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
)

// TestWhatIsAcceptedIsWhatTheClusterHas writes down what an operator has in
// random clusters, and reads for each cluster what is accepted there.
func TestWhatIsAcceptedIsWhatTheClusterHas(t *testing.T) {
	words := func(all ...string) *rapid.Generator[[]string] {
		return rapid.Custom(func(t *rapid.T) []string {
			picked := rapid.SliceOfDistinct(rapid.SampledFrom(all), func(s string) string { return s }).Draw(t, "picked")
			return slices.Sorted(slices.Values(picked))
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		have := map[string]diff.Accepted{}
		for _, cluster := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 5, func(s string) string { return s }).Draw(t, "clusters") {
			have[cluster] = diff.Accepted{
				Operator: "n/p", Permissions: words("get pods", "list secrets", "* *.apps in n").Draw(t, "permissions"), APIs: words("x.y/v1", "x.y/v2").Draw(t, "apis"),
			}
		}
		clusters := slices.Sorted(maps.Keys(have))
		plain := have[clusters[0]]
		blocks := []lockfile.Accepted{{Operator: plain.Operator, Permissions: plain.Permissions, APIs: plain.APIs}}
		for _, cluster := range clusters {
			blocks = differing(blocks, []diff.Accepted{plain}, have[cluster], []string{cluster})
		}
		lock, err := lockfile.Parse("quayside.lock", lockfile.Format(&lockfile.File{Accepted: blocks}))
		if err != nil {
			t.Fatal(err)
		}
		side := Side{lock: lock}
		for _, cluster := range clusters {
			got := side.accepted(cluster)
			slices.Sort(got[0].Permissions)
			slices.Sort(got[0].APIs)
			if d := cmp.Diff([]diff.Accepted{have[cluster]}, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s (-has +accepted):\n%s", cluster, d)
			}
			for _, other := range clusters {
				if a, b := side.budget(cluster), side.budget(other); (a == b) != cmp.Equal(have[cluster], have[other], cmpopts.EquateEmpty()) {
					t.Errorf("%s and %s: same budget %v, %q and %q", cluster, other, a != b, a, b)
				}
			}
		}
	})
}
