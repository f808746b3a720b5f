package render

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// newManyBundles returns n operators with the given number of objects each, not counting CRDs.
func newManyBundles(tb testing.TB, n, objects int) map[string]fstest.MapFS {
	tb.Helper()
	res, err := renderBundles(map[string]fstest.MapFS{"n/p": newBundle("p", "1.0.0", "v1")}, nil, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	own := 0
	for _, r := range res.Objects {
		if r.operator != nil {
			own++
		}
	}
	out := map[string]fstest.MapFS{}
	for i := range n {
		var files []string
		for j := range objects - own {
			files = append(files, fmt.Sprintf([]string{ // typical objects, with references to others
				"{kind: ConfigMap, apiVersion: v1, metadata: {name: c%d}, data: {a: b, c: d}}",
				"{kind: ServiceAccount, apiVersion: v1, metadata: {name: s%d}}",
				"{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: r%d}, rules: [{apiGroups: [''], resources: [pods, services], verbs: [get, list, watch]}]}",
				"{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b%d}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r2}, subjects: [{kind: ServiceAccount, name: s1, namespace: x}]}",
				"{kind: Service, apiVersion: v1, metadata: {name: v%d}, spec: {selector: {a: b}, ports: [{port: 80}]}}",
			}[j%5], j))
		}
		pkg := fmt.Sprintf("p%d", i)
		out[fmt.Sprintf("n%d/%s", i, pkg)] = newBundle(pkg, "1.0.0", "v1", files...)
	}
	return out
}

// BenchmarkPieces builds all pieces of a cluster, one after the other in one process, and compares the CPU time
// with a single build of the whole cluster. It uses a cluster without changes, and a cluster with a config and
// an overlay.
func BenchmarkPieces(b *testing.B) {
	bundles := newManyBundles(b, 43, 36)
	lock, open := newLock(bundles, nil, nil), openBundles(bundles)
	team := map[string]string{"own/kustomization.yaml": "{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, labels: [{pairs: {team: us}}], images: [{name: i, newTag: v2}]}"}
	opt := engineOptions(profile.ArgoCD, profile.Cluster{Name: "base"}, profile.Cluster{Name: "own", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://own"}, Config: []byte(`{"env":[{"name":"A","value":"b"}]}`), Overlays: []string{""}})
	opt.GitOps.Clusters = nil
	for _, cluster := range []string{"base", "own", "corpus"} {
		b.Run(cluster, func(b *testing.B) {
			cluster := cluster
			if cluster == "corpus" {
				lock, open = corpusLock(b, 1)
				cluster = "base"
			}
			parted, dirs := benchmarkTree(b, lock, opt, open, team, cluster)
			whole, all := benchmarkTree(b, lock, asOneUnit(opt), open, team, cluster)
			var pieces, one time.Duration
			for b.Loop() {
				start := cpuTime(b)
				buildAll(b, parted, dirs)
				middle := cpuTime(b)
				buildAll(b, whole, all)
				pieces, one = pieces+middle-start, one+cpuTime(b)-middle
			}
			b.ReportMetric(pieces.Seconds()/float64(b.N), "cpu-s/pieces")
			b.ReportMetric(one.Seconds()/float64(b.N), "cpu-s/one-build")
			b.ReportMetric(float64(pieces)/float64(one), "pieces/one-build")
		})
	}
}

// benchmarkTree returns a file system with a rendered tree, and the directories to build for a cluster.
func benchmarkTree(b *testing.B, lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error), team map[string]string, cluster string) (filesys.FileSystem, []string) {
	b.Helper()
	res, err := All(lock, opt, open)
	if err != nil {
		b.Fatal(err)
	}
	fsys, err := checkout(filesOf(res.Tree, team))
	if err != nil {
		b.Fatal(err)
	}
	v, err := res.tree.view(cluster)
	if err != nil {
		b.Fatal(err)
	}
	lies, here, err := res.layout(v.cluster)
	if err != nil {
		b.Fatal(err)
	}
	return fsys, lies.Pieces(here)
}

func buildAll(b *testing.B, fsys filesys.FileSystem, dirs []string) {
	b.Helper()
	for _, dir := range dirs {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/rendered/"+dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := built.AsYaml(); err != nil {
			b.Fatal(err)
		}
	}
}
