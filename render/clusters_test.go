package render

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// TestClustersAreRenderedAsIfAlone draws clusters, many of which are equal. Each cluster must have the same
// files as if it were the only cluster.
func TestClustersAreRenderedAsIfAlone(t *testing.T) {
	lock, opt, open := goldenLock(t, path.Join("testdata", "lantern", "own-plain"))
	opt.Mirrors = []Mirror{{Source: "quay.io", Mirror: "mirror.example.com/quay"}}
	team := []string{"", "my-lantern.lantern", "other-lantern.lantern", "resources"}
	rapid.Check(t, func(t *rapid.T) {
		opt.Clusters = nil
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			c := profile.Cluster{Name: fmt.Sprintf("c%d", i), Config: []byte(rapid.SampledFrom([]string{"", "{}", `{"nodeSelector":{"a":"b"}}`, `{"nodeSelector":{"a":"c"},"env":[{"name":"A","value":"b"}]}`, `{"env":[{"name":"I","value":"quay.io/a/b:1"}],"annotations":{"a":"b"},"affinity":{}}`, `{"volumes":[{"name":"v"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"tolerations":[{}],"resources":{"limits":{"cpu":"1"}}}`}).Draw(t, "config"))}
			c.Operators = rapid.SampledFrom([][]string{nil, {"*/*"}, {"my-lantern/*"}, {"other-lantern/*"}}).Draw(t, "operators")
			c.Overlays = rapid.SliceOfNDistinct(rapid.SampledFrom(team), 0, 2, rapid.ID).Draw(t, "overlays")
			opt.Clusters = append(opt.Clusters, withoutForeignOverlays(t, c))
		}
		together := clusterFiles(t, lock, opt, open)
		for _, c := range opt.Clusters {
			one := opt
			one.Clusters = []profile.Cluster{c}
			for name, want := range clusterFiles(t, lock, one, open) {
				if d := cmp.Diff(want, together[name]); d != "" {
					t.Fatalf("%s: -alone +together\n%s", name, d)
				}
				delete(together, name)
			}
		}
		if len(together) > 0 {
			t.Fatalf("these files are rendered only with other clusters: %v", together)
		}
	})
}

// clusterFiles returns the files of all clusters by path. It omits the clusters' lists of CRDs, which exist
// only if some cluster gets only a part of the CRDs.
func clusterFiles(t *rapid.T, lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error)) map[string]string {
	t.Helper()
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatalf("%v", err)
	}
	out := map[string]string{}
	for name, data := range res.Tree.All() {
		if strings.HasPrefix(name, layout.Clusters+"/") && !strings.Contains(name, "/"+layout.CRDs+"/") && path.Dir(path.Dir(name)) != layout.Clusters {
			out[name] = string(data)
		}
	}
	return out
}

// withoutForeignOverlays returns a copy of c without overlays of operators that c does not get.
func withoutForeignOverlays(t testingT, c profile.Cluster) profile.Cluster {
	c.Overlays = slices.DeleteFunc(c.Overlays, func(name string) bool {
		got, err := c.Gets(strings.Replace(name, ".", "/", 1))
		if err != nil {
			t.Fatalf("%v", err)
		}
		return strings.Contains(name, ".") && !got
	})
	return c
}
