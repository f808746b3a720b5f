package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// renderedNamespaces returns the Namespaces of the base by path, and the warnings.
func renderedNamespaces(res *Result) (map[string]Object, []string) {
	out := map[string]Object{}
	for _, r := range res.Objects {
		if r.Object.Is("", "Namespace") {
			out[r.Path] = r.Object
		}
	}
	var warnings []string
	for _, w := range res.Warnings {
		warnings = append(warnings, w.Code+": "+w.Msg)
	}
	return out, warnings
}

// newNeighborBundle returns a bundle that can share a namespace with another.
func newNeighborBundle(pkg string) fstest.MapFS {
	b := newBundle(pkg, "1.0.0", "v1")
	csv := string(b["manifests/csv.yaml"].Data)
	b["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(csv, "deployments: [{name: d,", "deployments: [{name: "+pkg+"-d,", 1))}
	return b
}

// TestUnmanagedNamespaces checks which Namespaces are not rendered.
func TestUnmanagedNamespaces(t *testing.T) {
	bundles := map[string]fstest.MapFS{}
	for i, ns := range []string{"default", "kube-public", "openshift-monitoring", "declared", "mine"} {
		pkg := fmt.Sprintf("p%d", i)
		bundles[ns+"/"+pkg] = newBundle(pkg, "1.0.0", "v1")
	}
	bundles["shipped/p9"] = newBundle("p9", "1.0.0", "v1", "{kind: Namespace, apiVersion: v1, metadata: {name: shipped}}")
	res, err := renderBundles(bundles, map[string][]string{"mine/p4": {"mine", "outside"}}, Options{}, lockfile.Namespace{Name: "declared"})
	if err != nil {
		t.Fatal(err)
	}
	got, warnings := renderedNamespaces(res)
	var paths []string
	for p := range got {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	if want := []string{"namespaces/declared/namespace.yaml", "namespaces/mine/namespace.yaml", "operators/shipped.p9/namespace-shipped.yaml"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"outside"`) {
		t.Errorf("got warnings %v", warnings)
	}
}

// TestDeclaredNamespaces checks that each declared Namespace has its declared labels and annotations, even if
// bundles ship or suggest other values.
func TestDeclaredNamespaces(t *testing.T) {
	template := func(text string) fstest.MapFS {
		b := newBundle("x", "1.0.0", "v1")
		csv := string(b["manifests/csv.yaml"].Data)
		b["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(csv, "metadata: {name: x.v1.0.0}",
			"metadata: {name: x.v1.0.0, annotations: {operatorframework.io/suggested-namespace-template: '"+text+"'}}", 1))}
		return b
	}
	labelled := lockfile.Namespace{Name: "a", Labels: map[string]string{"team": "one", k8s.LabelManagedBy: "us"}, Annotations: map[string]string{"note": "n", k8s.LabelVersion: "ours"}}
	suggestion := template(`{"metadata":{"labels":{"team":"two","more":"x"},"annotations":{"note":"m"}}}`)
	for name, c := range map[string]struct {
		bundles  map[string]fstest.MapFS
		declared []lockfile.Namespace
		at       string
		labels   map[string]any
		notes    map[string]any
		warning  string
	}{
		"ok/one operator": {
			map[string]fstest.MapFS{"a/x": suggestion},
			[]lockfile.Namespace{labelled},
			"namespaces/a/namespace.yaml",
			map[string]any{"team": "one", k8s.LabelManagedBy: "us", k8s.LabelPackage: "x", k8s.LabelNamespace: "a"},
			map[string]any{"note": "n", k8s.LabelVersion: "ours"},
			"",
		},
		"ok/not declared": {
			map[string]fstest.MapFS{"a/x": suggestion},
			nil, "namespaces/a/namespace.yaml",
			map[string]any{"team": "two", "more": "x", k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: "x", k8s.LabelNamespace: "a"},
			map[string]any{"note": "m"},
			"",
		},
		"ok/malformed template": {
			map[string]fstest.MapFS{"a/x": template("{")},
			nil, "namespaces/a/namespace.yaml",
			map[string]any{k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: "x", k8s.LabelNamespace: "a"},
			map[string]any(nil),
			"namespace-template: annotation operatorframework.io/suggested-namespace-template ignored: not a Namespace in JSON: unexpected end of JSON input",
		},
		"ok/template with invalid labels": {
			map[string]fstest.MapFS{"a/x": template(`{"metadata":{"labels":{"team":"a b"},"annotations":{"note":"m"}}}`)},
			nil, "namespaces/a/namespace.yaml",
			map[string]any{k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: "x", k8s.LabelNamespace: "a"},
			map[string]any(nil),
			`namespace-template: annotation operatorframework.io/suggested-namespace-template ignored: not a Namespace in JSON: metadata.labels: Invalid value: "a b": ` + strings.Join(validation.IsValidLabelValue("a b"), ""),
		},
		"ok/two operators": {
			map[string]fstest.MapFS{"a/x": suggestion, "a/y": newNeighborBundle("y")},
			[]lockfile.Namespace{labelled},
			"namespaces/a/namespace.yaml",
			map[string]any{"team": "one", k8s.LabelManagedBy: "us", k8s.LabelPackage: sharedPackage, k8s.LabelNamespace: "a"},
			map[string]any{"note": "n", k8s.LabelVersion: "ours"},
			"",
		},
		"ok/no operator": {
			nil,
			[]lockfile.Namespace{{Name: "free"}},
			"namespaces/free/namespace.yaml",
			map[string]any{k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: sharedPackage, k8s.LabelNamespace: "free"},
			map[string]any(nil),
			"",
		},
		"ok/suggested by the vendor": {
			nil,
			[]lockfile.Namespace{{Name: "openshift-logging", Labels: map[string]string{"openshift.io/cluster-monitoring": "true"}}},
			"namespaces/openshift-logging/namespace.yaml",
			map[string]any{"openshift.io/cluster-monitoring": "true", k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: sharedPackage, k8s.LabelNamespace: "openshift-logging"},
			map[string]any(nil),
			"",
		},
		"ok/shipped": {
			map[string]fstest.MapFS{"b/x": newBundle("x", "1.0.0", "v1", "{kind: Namespace, apiVersion: v1, metadata: {name: a, labels: {team: two, more: x}}}")},
			[]lockfile.Namespace{labelled},
			"operators/b.x/namespace-a.yaml",
			map[string]any{"team": "one", "more": "x", k8s.LabelManagedBy: "us", k8s.LabelPackage: "x", k8s.LabelNamespace: "b"},
			map[string]any{"note": "n", k8s.LabelVersion: "ours"},
			"",
		},
		"ok/reserved": {
			nil,
			[]lockfile.Namespace{{Name: "kube-system", Labels: map[string]string{"team": "one"}}},
			"", nil, nil,
			`namespace-reserved: Namespace "kube-system" is declared but not rendered, because it exists in every cluster: set its labels and annotations in the configuration that creates the cluster`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := renderBundles(c.bundles, nil, Options{}, c.declared...)
			if err != nil {
				t.Fatal(err)
			}
			got, warnings := renderedNamespaces(res)
			if o := got[c.at]; c.at != "" {
				if d := cmp.Diff([]any{c.labels, c.notes}, []any{k8s.Map(o, "metadata", "labels"), k8s.Map(o, "metadata", "annotations")}); d != "" {
					t.Errorf("-want +got\n%s", d)
				}
			} else if len(got) > 0 {
				t.Errorf("got %v", got)
			}
			if strings.Join(warnings, "\n") != c.warning {
				t.Errorf("got warnings %q, want %q", warnings, c.warning)
			}
		})
	}
}

// TestDeclaringChangesNoPath declares each rendered Namespace in turn: its path in the base and in
// clusters must not change.
func TestDeclaringChangesNoPath(t *testing.T) {
	bundles := map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1"), "b/y": newBundle("y", "1.0.0", "v1"), "b/z": newNeighborBundle("z")}
	for _, name := range []profile.Name{profile.Plain, profile.ArgoCD, profile.Flux} {
		opt := Options{Profile: name, Clusters: []profile.Cluster{{Name: "all"}, {Name: "some", Operators: []string{"b/y"}}}}
		before, err := renderBundles(bundles, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, ns := range []string{"a", "b"} {
			after, err := renderBundles(bundles, nil, opt, lockfile.Namespace{Name: ns, Labels: map[string]string{"team": "one"}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range before.Tree.All() {
				now, there := after.Tree.Get(name)
				if !there {
					t.Errorf("%s: declaring %s removes %s", name, ns, name)
				}
				if name == "namespaces/"+ns+"/namespace.yaml" {
					now = []byte(strings.Replace(string(now), "    team: one\n", "", 1))
				}
				if d := cmp.Diff(string(data), string(now)); d != "" {
					t.Errorf("%s: declaring %s changes %s: %s", name, ns, name, d)
				}
			}
			if before.Tree.Len() != after.Tree.Len() {
				t.Errorf("%s: declaring %s adds files", name, ns)
			}
		}
	}
}

// TestDeclaredNamespacesOfClusters checks that a cluster has the declared Namespaces that its operators use,
// and the declared Namespaces that no operator uses.
func TestDeclaredNamespacesOfClusters(t *testing.T) {
	bundles := map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1"), "b/y": newBundle("y", "1.0.0", "v1"), "c/z": newBundle("z", "1.0.0", "v1"), "ops/w": newBundle("w", "1.0.0", "v1")}
	opt := Options{
		Clusters: []profile.Cluster{{Name: "all"}, {Name: "some", Operators: []string{"b/y"}}, {Name: "none", Operators: []string{"q/q"}}},
		Reporter: &Reporter{Image: "i@sha256:0", Namespace: "ops"},
	}
	res, err := renderBundles(bundles, map[string][]string{"b/y": {"a", "b", "c"}}, opt,
		lockfile.Namespace{Name: "a"}, lockfile.Namespace{Name: "free"}, lockfile.Namespace{Name: "ops"})
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][]string{"all": {"a", "b", "c", "free", "ops"}, "some": {"a", "b", "free", "ops"}, "none": {"free", "ops"}} {
		var got []string
		for _, d := range partsOf(t, res, nil, cluster).all() {
			if d.head.Is("", "Namespace") {
				got = append(got, d.head.Name())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", cluster, got, want)
		}
	}
}

// TestClusterMonitoring checks which Namespaces get the label of OpenShift's monitoring, and the warning about
// a Namespace without this label.
func TestClusterMonitoring(t *testing.T) {
	b := newBundle("x", "1.0.0", "v1")
	csv := string(b["manifests/csv.yaml"].Data)
	b["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(csv, "metadata: {name: x.v1.0.0}", "metadata: {name: x.v1.0.0, annotations: {operatorframework.io/cluster-monitoring: 'true'}}", 1))}
	const warning = `namespace-monitoring: %s/x requests OpenShift's cluster monitoring for namespace %s: declare the Namespace with the label openshift.io/cluster-monitoring set to "true" or "false"`
	for name, c := range map[string]struct {
		namespace string
		openshift bool
		declared  []lockfile.Namespace
		label     any
		warns     bool
	}{
		"on OpenShift":    {"a", true, nil, "true", false},
		"elsewhere":       {"a", false, nil, nil, false},
		"declared":        {"a", true, []lockfile.Namespace{{Name: "a"}}, nil, true},
		"declared, false": {"a", true, []lockfile.Namespace{{Name: "a", Labels: map[string]string{"openshift.io/cluster-monitoring": "false"}}}, "false", false},
		"of OpenShift":    {"openshift-x", true, nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := renderBundles(map[string]fstest.MapFS{c.namespace + "/x": b}, nil, Options{OpenShift: c.openshift}, c.declared...)
			if err != nil {
				t.Fatal(err)
			}
			got, warnings := renderedNamespaces(res)
			if label := k8s.At(got["namespaces/"+c.namespace+"/namespace.yaml"], "metadata", "labels", "openshift.io/cluster-monitoring"); label != c.label {
				t.Errorf("got the label %v, want %v", label, c.label)
			}
			var want []string
			if c.warns {
				want = []string{fmt.Sprintf(warning, c.namespace, c.namespace)}
			}
			if d := cmp.Diff(want, warnings); d != "" {
				t.Errorf("warnings: -want +got\n%s", d)
			}
		})
	}
}
