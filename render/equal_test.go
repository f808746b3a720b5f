package render

import (
	"fmt"
	"testing"

	"github.com/quayside/quayside/internal/profile"
)

// TestEqualClusters renders a tree for one cluster, and a tree for a thousand equal clusters. Each additional
// cluster may add only the objects that the user applies once.
func TestEqualClusters(t *testing.T) {
	bundles := newManyBundles(t, 43, 14)
	for tool, each := range map[profile.Name]int{profile.ArgoCD: 0, profile.Flux: 2} {
		for _, hub := range []bool{false, true} {
			sizes := map[int][2]int{}
			for _, n := range []int{1, 1000} {
				opt := engineOptions(tool)
				opt.GitOps.Clusters, opt.Reporter = nil, reporterOptions()
				for i := range n {
					c := profile.Cluster{Name: fmt.Sprintf("c%d", i), ArgoCDCluster: profile.ArgoCDCluster{Server: fmt.Sprintf("https://c%d", i)}}
					if hub {
						c.KubeConfig = c.Name
					}
					opt.Clusters = append(opt.Clusters, c)
				}
				res, err := renderBundles(bundles, nil, opt)
				if err != nil {
					t.Fatal(err)
				}
				size := 0
				for _, text := range res.Tree.All() {
					size += len(text)
				}
				sizes[n] = [2]int{res.Tree.Len(), size}
			}
			t.Logf("%s, hub %v: %d files of %d bytes for one cluster, %d of %d for 1,000", tool, hub, sizes[1][0], sizes[1][1], sizes[1000][0], sizes[1000][1])
			if more := sizes[1000][0] - sizes[1][0]; more != 999*each {
				t.Errorf("%s, hub %v: 999 clusters add %d files, want %d for each", tool, hub, more, each)
			}
		}
	}
}
