package render

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
)

// engineRoots returns the directories of a tree that an engine applies to any cluster.
func engineRoots(t testingT, res *Result) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, c := range res.tree.opt.Clusters {
		for _, o := range engineObjects(t, res, c.Name) {
			for _, dir := range o.dirs {
				out[dir] = true
			}
		}
	}
	return out
}

// differentRoots returns the directories that engines apply in both trees, but that contain different objects
// in the two trees. It ignores the order of application.
func differentRoots(t testingT, a, b *Result, overlays map[string]string) []string {
	t.Helper()
	var out []string
	of := engineRoots(t, b)
	for dir := range engineRoots(t, a) {
		if of[dir] && !maps.Equal(readByEngine(t, a, dir, overlays), readByEngine(t, b, dir, overlays)) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// readByEngine returns the objects that an engine finds in a directory.
func readByEngine(t testingT, res *Result, dir string, overlays map[string]string) map[Key]string {
	t.Helper()
	files := filesOf(res.Tree, overlays)
	if _, kustomized := files[path.Join(dir, layout.Kustomization)]; !kustomized {
		return withoutOrder(t, plainDocuments(t, files, dir))
	}
	docs, err := build(files, dir)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return withoutOrder(t, docs)
}

// TestJoinedPieces checks that operators that require each other become one piece, that this piece has a new
// name and directory, and that other pieces keep their names.
func TestJoinedPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundles := map[string]fstest.MapFS{}
		names := []string{"a/p", "a-and/q", "b/r", "c/s", "d/t"}[:rapid.IntRange(2, 5).Draw(t, "operators")]
		for _, name := range names {
			_, pkg, _ := strings.Cut(name, "/")
			bundles[name] = newBundle(pkg, "1.0.0", "v1")
		}
		circle := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 2, len(names), rapid.ID).Draw(t, "circle")
		needs := map[string][]string{}
		for i, name := range circle {
			needs[name] = []string{circle[(i+1)%len(circle)]}
		}
		opt := engineOptions(rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux}).Draw(t, "profile"))
		joined, err := renderRequiring(bundles, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		parted, err := renderRequiring(bundles, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]string{} // operator → piece
		for _, p := range joined.tree.pieces {
			for _, in := range p.members {
				of[in.name()] = p.name
			}
		}
		for _, name := range names {
			alone := strings.Replace(name, "/", ".", 1)
			if in := slices.Contains(circle, name); in != (of[name] != alone) || in && of[name] != of[circle[0]] {
				t.Errorf("%s is in piece %s, in the cycle %v", name, of[name], circle)
			}
		}
		dirs, before := engineRoots(t, joined), engineRoots(t, parted)
		for _, name := range circle {
			if dir := path.Join(layout.Operators, strings.Replace(name, "/", ".", 1)); dirs[dir] || !before[dir] {
				t.Errorf("an engine applies %s: joined: %v, separate: %v", dir, dirs[dir], before[dir])
			}
		}
		if dir := path.Join(layout.Operators, of[circle[0]]); !dirs[dir] || before[dir] {
			t.Errorf("an engine applies %s: joined: %v, separate: %v", dir, dirs[dir], before[dir])
		}
		for _, dir := range differentRoots(t, joined, parted, nil) {
			if dir != layout.Pieces && path.Dir(dir) != layout.Pieces { // not the directories of the engine's own objects
				t.Errorf("%s has other objects when joined", dir)
			}
		}
		pieces := map[string]bool{}
		for _, p := range slices.Concat(joined.tree.pieces, parted.tree.pieces) {
			pieces[p.name] = true
		}
		if want := len(names) + 1; len(pieces) != want {
			t.Errorf("%d pieces, want %d: %v", len(pieces), want, slices.Sorted(maps.Keys(pieces)))
		}
		checkClusterBuilds(t, joined)
	})
}

// TestShareOfJoinedPiece checks that a cluster with only some operators of a piece gets exactly these operators.
func TestShareOfJoinedPiece(t *testing.T) {
	shared := "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: shared}, value: 1}"
	bundles := map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", shared), "b/y": newBundle("y", "1.0.0", "v1", shared), "c/z": newBundle("z", "1.0.0", "v1")}
	needs := map[string][]string{"a/x": {"b/y"}, "b/y": {"c/z"}, "c/z": {"a/x"}}
	for _, granularity := range []string{profile.PerOperator, profile.PerCluster} {
		opt := engineOptions(profile.ArgoCD, profile.Cluster{Name: "all"}, profile.Cluster{Name: "one", Operators: []string{"b/y"}},
			profile.Cluster{Name: "two", Operators: []string{"a/x", "c/*"}, Config: []byte(`{"env":[{"name":"A","value":"b"}]}`)}, profile.Cluster{Name: "none", Operators: []string{"q/q"}})
		opt.GitOps.Granularity = granularity
		res, err := renderRequiring(bundles, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		checkClusterBuilds(t, res)
	}
}

// TestGranularityChangesNoRoot renders fleets twice: with separate pieces, and with each cluster as one unit.
// Every directory that an engine applies must exist. A directory in both trees must have the same objects: while
// the engine still applies the directories of the old tree, it would prune missing objects.
func TestGranularityChangesNoRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundles, needs := newIndependentBundles(t, rapid.IntRange(1, 4).Draw(t, "operators"))
		opt := drawFleet(t)
		pieces, err := renderRequiring(bundles, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := renderRequiring(bundles, needs, asOneUnit(opt))
		if err != nil {
			t.Fatal(err)
		}
		team := map[string]string{}
		for _, c := range opt.Clusters {
			for _, name := range c.Overlays {
				team[path.Join(c.Name, name, layout.Kustomization)] = "{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, commonAnnotations: {a: b}}"
				if name == "resources" {
					team[path.Join(c.Name, name, layout.Kustomization)] = "resources: [mine.yaml]\n"
					team[path.Join(c.Name, name, "mine.yaml")] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}"
				}
			}
		}
		for granularity, res := range map[string]*Result{profile.PerOperator: pieces, profile.PerCluster: whole} {
			for dir := range engineRoots(t, res) {
				if there := slices.ContainsFunc(slices.Collect(maps.Keys(contents(res.Tree))), func(name string) bool { return strings.HasPrefix(name, dir+"/") }); !there {
					t.Errorf("by %s, an engine applies %s, which is missing", granularity, dir)
				}
			}
		}
		for _, dir := range differentRoots(t, pieces, whole, team) {
			t.Errorf("%s: the objects depend on the granularity:\n%s", dir, cmp.Diff(readByEngine(t, pieces, dir, team), readByEngine(t, whole, dir, team)))
		}
	})
}
