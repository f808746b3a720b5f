package render

import (
	"fmt"
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

// newIndependentBundles returns n operators without common objects, each in its own namespace, and their
// requirements. An operator may require earlier operators.
func newIndependentBundles(t *rapid.T, n int) (map[string]fstest.MapFS, map[string][]string) {
	bundles, needs := map[string]fstest.MapFS{}, map[string][]string{}
	var names []string
	for i := range n {
		pkg := fmt.Sprintf("p%d", i)
		name := fmt.Sprintf("n%d/%s", i, pkg)
		files := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"{kind: ConfigMap, apiVersion: v1, metadata: {name: c}}", "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: of-" + pkg + "}, value: 1}",
			"{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: r-" + pkg + "}, rules: []}",
		}), 0, 2, rapid.ID).Draw(t, "files")
		bundles[name] = newBundle(pkg, "1.0.0", "v1", files...)
		if i > 0 {
			needs[name] = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "needs")
		}
		names = append(names, name)
	}
	return bundles, needs
}

// changedFiles returns the names of files that differ, or exist in only one of the trees.
func changedFiles(a, b *Result) []string {
	before, after := contents(a.Tree), contents(b.Tree)
	names := map[string]bool{}
	for name, text := range before {
		if now, there := after[name]; !there || now != text {
			names[name] = true
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// belongsTo reports whether a file belongs to an operator: to its piece, to the CRDs of its package, to its
// Namespace, or to the engine's objects that apply these.
func belongsTo(name, namespace, pkg string) bool {
	if rest, below := strings.CutPrefix(name, layout.Clusters+"/"); below {
		_, name, _ = strings.Cut(rest, "/")
	}
	operator := namespace + "." + pkg
	for _, dir := range []string{path.Join(layout.Operators, operator), path.Join(layout.CRDs, pkg), path.Join(layout.Namespaces, namespace)} {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	if strings.HasPrefix(name, layout.Pieces+"/") {
		return slices.Contains([]string{operator + ".yaml", namespacePieceName(namespace) + ".yaml", pkg + "--crds.yaml"}, path.Base(name))
	}
	return name == path.Join(layout.Installations, operator+".yaml")
}

// drawFleet draws options for an engine and several clusters, of which the first uses the base
// unchanged.
func drawFleet(t *rapid.T) Options {
	opt := engineOptions(rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux}).Draw(t, "profile"))
	if rapid.Bool().Draw(t, "own list of clusters") {
		opt.GitOps.Clusters = nil
	}
	opt.Reporter = rapid.SampledFrom([]*Reporter{nil, reporterOptions()}).Draw(t, "reporter")
	hub := rapid.Bool().Draw(t, "hub")
	for i := range rapid.IntRange(1, 4).Draw(t, "clusters") {
		c := profile.Cluster{Name: fmt.Sprintf("c%d", i)}
		if opt.GitOps.Clusters == nil {
			c.Server = "https://" + c.Name
		}
		if hub {
			c.KubeConfig = c.Name
		}
		if i > 0 {
			c.Operators = rapid.SampledFrom([][]string{nil, {"*/*"}, {"n0/*", "n[2-9]/*"}, {"*/p0", "*/p3"}}).Draw(t, "operators")
			c.Config = []byte(rapid.SampledFrom([]string{"", "{}", `{"env":[{"name":"A","value":"b"}]}`}).Draw(t, "config"))
			c.Overlays = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "n0.p0", "resources"}), 0, 2, rapid.ID).Draw(t, "overlays")
		}
		opt.Clusters = append(opt.Clusters, withoutForeignOverlays(t, c))
	}
	return opt
}

// TestOneOperatorChangesItsOwnFiles compares trees with and without one operator. Only the files of this operator
// may differ, for all engines, clusters and overlays. Two things depend only on settings: the list of clusters, and
// the objects that the user applies once. The first operator always remains, so that no cluster is empty.
func TestOneOperatorChangesItsOwnFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundles, needs := newIndependentBundles(t, rapid.IntRange(2, 6).Draw(t, "operators"))
		opt := drawFleet(t)
		some := map[string]fstest.MapFS{"n0/p0": bundles["n0/p0"]}
		var add func(name string)
		add = func(name string) {
			some[name] = bundles[name]
			for _, other := range needs[name] {
				add(other)
			}
		}
		names := slices.Sorted(maps.Keys(bundles))
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names[1:]), rapid.ID).Draw(t, "some") {
			add(name)
		}
		one := rapid.SampledFrom(names[1:]).Draw(t, "one")
		add(one)
		for _, name := range names {
			if slices.Contains(needs[name], one) { // it cannot be installed without one
				delete(some, name)
				for _, other := range names {
					if slices.Contains(needs[other], name) {
						delete(some, other)
					}
				}
			}
		}
		for changed := true; changed; { // neither can operators that require these
			changed = false
			for name := range some {
				for _, other := range needs[name] {
					if _, there := some[other]; !there {
						delete(some, name)
						changed = true
						break
					}
				}
			}
		}
		with, err := renderRequiring(some, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		delete(some, one)
		without, err := renderRequiring(some, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		namespace, pkg, _ := strings.Cut(one, "/")
		for _, name := range changedFiles(with, without) {
			if !belongsTo(name, namespace, pkg) {
				a, _ := with.Tree.Get(name)
				b, _ := without.Tree.Get(name)
				t.Errorf("%s changes with %s:\n%s", name, one, cmp.Diff(string(a), string(b)))
			}
		}
		none, err := renderRequiring(map[string]fstest.MapFS{"n0/p0": bundles["n0/p0"]}, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range contents(with.Tree) {
			level, _, _ := strings.Cut(name, "/")
			if !slices.Contains([]string{"clusters.yaml", ".gitattributes", "argocd", "flux"}, level) {
				continue
			}
			if now, _ := none.Tree.Get(name); string(now) != text {
				t.Errorf("%s depends on operators:\n%s", name, cmp.Diff(text, string(now)))
			}
		}
		for _, c := range opt.Clusters {
			differs := len(c.Overlays) > 0 || len(string(c.Config)) > 2 || !slices.Contains([]string{"", "*/*"}, strings.Join(c.Operators, " ")) || opt.GitOps.Clusters != nil && len(opt.Clusters) > 1
			for name := range with.Tree.All() {
				if own := strings.HasPrefix(name, layout.Clusters+"/"+c.Name+"/") || strings.HasPrefix(name, layout.Pieces+"/"+c.Name+"/"); own && !differs {
					t.Errorf("%s has no changes to the base, but has the file %s", c.Name, name)
				}
			}
		}
	})
}

// TestSharedFiles adds an operator that has objects in common with others. It checks which files of the others change.
func TestSharedFiles(t *testing.T) {
	binding := "{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: sa, namespace: x}]}"
	class := "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: all}, value: 1}"
	for name, c := range map[string]struct {
		there map[string]fstest.MapFS
		added string
		by    fstest.MapFS
		needs map[string][]string
		want  []string
	}{
		"CRDs of a package that is installed twice": {
			map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")},
			"b/x", newBundle("x", "1.1.0", "v1"), nil,
			[]string{"installations/a.x.yaml"}, // its Installation no longer has the version of the CRD
		},
		"subjects of one binding": {
			map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", binding)},
			"b/x", newBundle("x", "1.0.0", "v1", binding), nil,
			[]string{"operators/a.x/clusterrolebinding-b.yaml"},
		},
		"labels of a Namespace": {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, "a/y", newNeighborBundle("y"), nil, nil},
		"equal objects, which the first operator has": {
			map[string]fstest.MapFS{"b/y": newBundle("y", "1.0.0", "v1", class)},
			"a/x", newBundle("x", "1.0.0", "v1", class), nil,
			[]string{"operators/b.y/kustomization.yaml", "operators/b.y/priorityclass-all.yaml"},
		},
		"a cycle of requirements": {
			map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1"), "b/y": newBundle("y", "1.0.0", "v1")},
			"c/z", newBundle("z", "1.0.0", "v1"),
			map[string][]string{"a/x": {"b/y"}, "b/y": {"c/z"}, "c/z": {"a/x"}},
			[]string{"operators/<joined>", "operators/a.x", "operators/b.y", "pieces/_shared/<joined>.yaml", "pieces/_shared/a.x.yaml", "pieces/_shared/b.y.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			opt := engineOptions(profile.Flux)
			opt.Reporter = reporterOptions()
			before, err := renderRequiring(c.there, c.needs, opt)
			if err != nil {
				t.Fatal(err)
			}
			all := maps.Clone(c.there)
			all[c.added] = c.by
			after, err := renderRequiring(all, c.needs, opt)
			if err != nil {
				t.Fatal(err)
			}
			namespace, pkg, _ := strings.Cut(c.added, "/")
			var got []string
			for _, name := range changedFiles(before, after) {
				if belongsTo(name, namespace, pkg) {
					continue
				}
				for _, p := range after.tree.pieces {
					if len(p.members) > 1 {
						name = strings.Replace(name, p.name, "<joined>", 1)
					}
				}
				if dir, _, below := strings.Cut(strings.TrimPrefix(name, "operators/"), "/"); below && c.needs != nil && strings.HasPrefix(name, "operators/") {
					name = "operators/" + dir
				}
				got = append(got, name)
			}
			if d := cmp.Diff(c.want, slices.Compact(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
