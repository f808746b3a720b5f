package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// engineObject is an object of an engine for one cluster, with the directories of the tree that the object
// applies.
type engineObject struct {
	name string
	dirs []string // relative to the tree
}

// engineObjects returns the objects with which an engine applies a cluster: the parent, its children, and for
// Argo CD the Applications that ApplicationSets generate. It parses them from the files of the tree.
func engineObjects(t testingT, res *Result, cluster string) []engineObject {
	t.Helper()
	if res.tree.opt.Profile == profile.Flux {
		return fluxObjects(t, res, cluster)
	}
	if res.tree.opt.Profile != profile.ArgoCD {
		t.Fatalf("no engine applies the tree")
	}
	var member map[string]any
	var members []map[string]any
	list, _ := res.Tree.Get(layout.ClustersFile)
	if err := yaml.Unmarshal(list, &members); err != nil {
		t.Fatalf("%v", err)
	}
	for _, m := range members {
		if m["cluster"] == cluster {
			member = m
		}
	}
	var out []engineObject
	for name, text := range res.Tree.All() {
		if dir := path.Dir(name); dir != layout.Pieces && dir != string(profile.ArgoCD) || path.Ext(name) != ".yaml" || path.Base(name) == layout.Kustomization {
			continue
		}
		set := fileDocuments(t, text)[0].head
		app, known := map[string]any(set), member
		if set.Kind() == "ApplicationSet" {
			app = k8s.Map(set, "spec", "template")
			if known = generatorParams(k8s.Items(set, "spec", "generators")[0], cluster, member); known == nil {
				continue
			}
		}
		of := engineObject{name: executeTemplate(t, k8s.Text(app, "metadata", "name"), known)}
		for _, source := range append(k8s.Items(app, "spec", "sources"), k8s.Map(app, "spec", "source")) {
			if source == nil || k8s.Text(source, "directory", "exclude") == "*" {
				continue
			}
			of.dirs = append(of.dirs, strings.TrimPrefix(executeTemplate(t, k8s.Text(source, "path"), known), "out/"))
		}
		out = append(out, of)
	}
	return out
}

// generatorParams returns the parameters that a generator passes to a template for a cluster, or nil
// if it skips the cluster. member is the cluster's entry in clusters.yaml.
func generatorParams(generator map[string]any, cluster string, member map[string]any) map[string]any {
	known := member
	switch {
	case generator["clusters"] != nil:
		known = map[string]any{"name": cluster, "nameNormalized": cluster, "server": "https://" + cluster}
	case generator["list"] != nil:
		for _, e := range k8s.Items(generator, "list", "elements") {
			if e["cluster"] == cluster {
				known = e
			}
		}
	}
	for _, e := range k8s.Items(generator, "selector", "matchExpressions") {
		value, _ := known[k8s.Text(e, "key")].(string)
		if !slices.Contains(k8s.Texts(e, "values"), value) {
			return nil
		}
	}
	return known
}

// executeTemplate executes a template of an ApplicationSet with the parameters of a cluster.
func executeTemplate(t testingT, text string, known map[string]any) string {
	t.Helper()
	// The subset of sprig's functions that the templates use. Argo CD provides all of sprig.
	functions := template.FuncMap{
		"get": func(m map[string]any, key string) any { return m[key] }, "contains": func(part, s string) bool { return strings.Contains(s, part) },
	}
	parsed, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, known); err != nil {
		t.Fatalf("%v", err)
	}
	return out.String()
}

func fluxObjects(t testingT, res *Result, cluster string) []engineObject {
	t.Helper()
	var out []engineObject
	files := filesOf(res.Tree, nil)
	parents, err := build(files, path.Join(string(profile.Flux), cluster))
	if err != nil || len(parents) != 1 && !res.tree.opt.byCluster() {
		t.Fatalf("cluster %s: %d parents, %v", cluster, len(parents), err)
	}
	if res.tree.opt.byCluster() {
		for _, d := range parents {
			out = append(out, engineObject{name: d.head.Name(), dirs: []string{strings.TrimPrefix(k8s.Text(d.head, "spec", "path"), "./out/")}})
		}
		return out
	}
	dir := strings.TrimPrefix(k8s.Text(parents[0].head, "spec", "path"), "./out/")
	substitute := k8s.TextMap(parents[0].head, "spec", "postBuild", "substitute")
	out = append(out, engineObject{name: parents[0].head.Name(), dirs: []string{dir}})
	for name, text := range files {
		if path.Dir(name) != dir || path.Ext(name) != ".yaml" {
			continue
		}
		for key, value := range substitute {
			text = []byte(strings.ReplaceAll(string(text), "${"+key+"}", value))
		}
		o := fileDocuments(t, text)[0].head
		out = append(out, engineObject{name: o.Name(), dirs: []string{strings.TrimPrefix(k8s.Text(o, "spec", "path"), "./out/")}})
	}
	return out
}

// TestEnginesApplyClusterLayouts draws fleets. An engine must apply each directory of a cluster's layout
// exactly once, and no other directory. All these directories must exist.
func TestEnginesApplyClusterLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundles, needs := newIndependentBundles(t, rapid.IntRange(1, 4).Draw(t, "operators"))
		opt := drawFleet(t)
		res, err := renderRequiring(bundles, needs, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range opt.Clusters {
			lies, here, err := res.layout(c)
			if err != nil {
				t.Fatal(err)
			}
			plain, built := lies.ClusterCRDDirs(here)
			want := append(lies.Pieces(here), plain...)
			if opt.Reporter != nil {
				want = append(want, path.Join(here.Prefix, layout.Installations))
			}
			if built != "" {
				t.Errorf("cluster %s has its own list of CRDs: %s", c.Name, built)
			}
			got := map[string]int{}
			for _, o := range engineObjects(t, res, c.Name) {
				for _, dir := range o.dirs {
					if dir != layout.Pieces && !strings.HasPrefix(dir, layout.Pieces+"/") {
						got[dir]++
					}
				}
			}
			for _, dir := range want {
				if got[dir] == 0 {
					t.Errorf("cluster %s: no object applies %s", c.Name, dir)
				}
				if got[dir] > 1 && !strings.HasPrefix(dir, layout.CRDs) {
					t.Errorf("cluster %s: %s is applied by %d objects", c.Name, dir, got[dir])
				}
				delete(got, dir)
			}
			if len(got) > 0 {
				t.Errorf("cluster %s: applied directories that are not in the layout: %v", c.Name, slices.Sorted(maps.Keys(got)))
			}
		}
	})
}

// TestEngineNames draws environments, clusters and operators with similar names. The engine objects for them
// must have valid and unique names that also fit into a label.
func TestEngineNames(t *testing.T) {
	const long = "a-name-as-long-as-a-name-of-an-environment-may-be-and-longer"
	wide := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "a-b", "a--b", "b--a", "a-b-a", long, long + "a", "namespace-a", "pieces", "crds", "a--crds"}), rapid.StringMatching(`[a-z]([a-z-]{0,20}[a-z])?`))
	near := rapid.SampledFrom([]string{"a", "b", "a-b", "b-a", "a--b"})
	rapid.Check(t, func(t *rapid.T) {
		checkEngineNames(t, rapid.SampledFrom([]*rapid.Generator[string]{wide, near}).Draw(t, "names"))
	})
}

func checkEngineNames(t *rapid.T, part *rapid.Generator[string]) {
	dotted := rapid.OneOf(part, part, rapid.Map(rapid.SliceOfN(part, 2, 3), func(parts []string) string { return strings.Join(parts, ".") }))
	tool := rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux}).Draw(t, "profile")
	hub := tool == profile.ArgoCD || rapid.Bool().Draw(t, "hub")
	namespaces := rapid.SliceOfNDistinct(rapid.Map(part, func(s string) string { return s[:min(len(s), 63)] }), 1, 3, rapid.ID).Draw(t, "namespaces")
	lock := &lockfile.File{}
	for i, ns := range namespaces {
		pin := lockfile.Pin{Namespace: ns, Package: dotted.Draw(t, "package"), Version: "1.0.0", WatchNamespaces: []string{ns}, InstallMode: "OwnNamespace"}
		if !slices.ContainsFunc(lock.Pins, func(p lockfile.Pin) bool { return p.Package == pin.Package }) || i == 0 {
			pin.Bundle = pin.Package + ".v1.0.0"
			lock.Pins = append(lock.Pins, pin)
		}
	}
	bundles := openWithOwnAPIs(lock)
	clusters := rapid.SliceOfNDistinct(dotted, 2, 3, rapid.ID).Draw(t, "clusters")
	type owner struct{ environment, cluster, what string }
	seen := map[string]owner{}
	for _, environment := range rapid.SliceOfNDistinct(part, 2, 2, rapid.ID).Draw(t, "environments") {
		opt := engineOptions(tool)
		opt.GitOps.Name, opt.GitOps.Clusters = environment, nil
		opt.Reporter = reporterOptions()
		for i, name := range clusters {
			c := profile.Cluster{Name: name, ArgoCDCluster: profile.ArgoCDCluster{Server: "https://" + name}}
			if hub && tool == profile.Flux {
				c.KubeConfig = name
			}
			if i > 0 {
				c.Config = []byte(`{"nodeSelector":{"a":"b"}}`)
			}
			opt.Clusters = append(opt.Clusters, c)
		}
		res, err := All(lock, opt, bundles)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range clusters {
			own := map[string]bool{}
			for _, o := range engineObjects(t, res, cluster) {
				if len(o.name) > k8s.MaxLabel || len(validation.IsDNS1123Subdomain(o.name)) > 0 {
					t.Errorf("invalid name of %d bytes: %q of cluster %q in %q", len(o.name), o.name, cluster, environment)
				}
				if own[o.name] {
					t.Errorf("duplicate name %q in cluster %q", o.name, cluster)
				}
				own[o.name] = true
				is := owner{environment, cluster, o.name}
				if !hub || slices.Equal(o.dirs, []string{layout.Pieces}) { // objects in each cluster, or shared by all clusters
					is.cluster = ""
				}
				if other, taken := seen[o.name]; taken && other != is {
					t.Errorf("duplicate name %q: of %v and of %v", o.name, other, is)
				}
				seen[o.name] = is
			}
		}
		sets := map[string]bool{}
		for name, text := range res.Tree.All() {
			if level, _, _ := strings.Cut(name, "/"); tool != profile.ArgoCD || !slices.Contains([]string{"argocd", layout.Pieces}, level) || path.Base(name) == layout.Kustomization {
				continue
			}
			o := fileDocuments(t, text)[0].head
			if sets[o.Name()] || len(o.Name()) > k8s.MaxLabel || len(validation.IsDNS1123Subdomain(o.Name())) > 0 {
				t.Errorf("%s %q: duplicate, too long or invalid name", o.Kind(), o.Name())
			}
			sets[o.Name()] = true
			of := owner{environment: environment, what: o.Kind()}
			if other, taken := seen[o.Kind()+" "+o.Name()]; taken && other != of {
				t.Errorf("duplicate name %s: of %v and of %v", o.Name(), other, of)
			}
			seen[o.Kind()+" "+o.Name()] = of
		}
	}
}

// openWithOwnAPIs returns a function that opens bundles for the pins of a lock. Each bundle has its own API.
func openWithOwnAPIs(lock *lockfile.File) func(lockfile.Pin) (fs.FS, error) {
	return func(p lockfile.Pin) (fs.FS, error) {
		i := slices.IndexFunc(lock.Pins, func(q lockfile.Pin) bool { return q.Namespace == p.Namespace })
		b := newBundle(fmt.Sprintf("p%d", i), "1.0.0", "v1")
		b["metadata/annotations.yaml"].Data = []byte("annotations: {operators.operatorframework.io.bundle.package.v1: " + p.Package + "}")
		csv := strings.Replace(string(b["manifests/csv.yaml"].Data), fmt.Sprintf("metadata: {name: p%d.v", i), "metadata: {name: "+p.Package+".v", 1)
		b["manifests/csv.yaml"].Data = []byte(csv)
		return b, nil
	}
}
