package render

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/yamltest"
)

// engineOptions returns options for a GitOps tool that applies the tree.
func engineOptions(name profile.Name, clusters ...profile.Cluster) Options {
	return Options{Profile: name, Clusters: clusters, GitOps: &profile.GitOps{
		Name: "env", RepoURL: "https://git.example.com/fleet.git", Revision: "main", Path: "out", Namespace: "gitops", ArgoCDSettings: profile.ArgoCDSettings{Project: "default", Clusters: &profile.Registered{}},
		FluxSettings: profile.FluxSettings{SourceRef: profile.SourceRef{Kind: "GitRepository", Name: "fleet"}},
	}}
}

// asOneUnit returns the options with each cluster applied as one unit.
func asOneUnit(opt Options) Options {
	g := *opt.GitOps
	g.Granularity, opt.GitOps = profile.PerCluster, &g
	return opt
}

// crdNames returns the names of the CRDs that a GitOps tool finds in a directory. The tool uses the
// kustomization or, if there is none, all files.
func crdNames(t *testing.T, res *Result, dir string) []string {
	t.Helper()
	files := filesOf(res.Tree, nil)
	if _, kustomized := files[path.Join(dir, layout.Kustomization)]; !kustomized {
		return crdDocumentNames(plainDocuments(t, files, dir))
	}
	docs, err := build(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	return crdDocumentNames(docs)
}

// crdDocumentNames returns the sorted names of the CRDs among documents.
func crdDocumentNames(docs []document) []string {
	var out []string
	for _, d := range docs {
		if k8s.IsCRD(d.head) {
			out = append(out, d.head.Name())
		}
	}
	slices.Sort(out)
	return out
}

// TestClusterGetsItsCRDs applies a cluster as one unit. For every tool, the cluster must get the CRDs of its
// operators.
func TestClusterGetsItsCRDs(t *testing.T) {
	const conditions = "operatorconditions.operators.coreos.com"
	shared := string(newBundle("x", "1.0.0", "v1")["manifests/crd.yaml"].Data)
	bundles := map[string]fstest.MapFS{
		"a/x": newBundle("x", "1.0.0", "v1", strings.ReplaceAll(shared, "thing", "more")), "b/y": newBundle("y", "1.0.0", "v1", shared), "c/z": newBundle("z", "1.0.0", "v1"),
	}
	everything := []string{"mores.x.io", conditions, "things.x.io", "things.y.io", "things.z.io"}
	for name, globs := range map[string]map[string]struct {
		operators []string
		want      []string
	}{
		"same operators": {"one": {nil, everything}, "two": {[]string{"*/*"}, everything}},
		"one":            {"one": {[]string{"b/*"}, []string{conditions, "things.x.io", "things.y.io"}}},
		"several": {
			"one": {[]string{"b/*"}, []string{conditions, "things.x.io", "things.y.io"}}, "two": {nil, everything},
			"three": {[]string{"a/x"}, []string{"mores.x.io", conditions, "things.x.io"}}, "none": {[]string{"q/q"}, []string{conditions}},
		},
	} {
		var clusters []profile.Cluster
		for cluster, c := range globs {
			clusters = append(clusters, profile.Cluster{Name: cluster, Operators: c.operators})
		}
		for _, tool := range []profile.Name{profile.ArgoCD, profile.Flux} {
			res, err := renderBundles(bundles, nil, asOneUnit(engineOptions(tool, clusters...)))
			if err != nil {
				t.Fatal(err)
			}
			for cluster, c := range globs {
				dir := sourceOfCRDs(t, res, tool, cluster)
				if got := crdNames(t, res, dir); !slices.Equal(got, c.want) {
					t.Errorf("%s: with %s, %s gets from %s %v; want %v", name, tool, cluster, dir, got, c.want)
				}
				stream, err := StreamOverlay(res, builder(res, nil), cluster)
				if err != nil {
					t.Fatal(err)
				}
				docs, err := build(map[string][]byte{"s/all.yaml": stream.YAML(), "s/" + layout.Kustomization: []byte("resources: [all.yaml]")}, "s")
				if got := crdDocumentNames(docs); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: the stream for %s has %v, %v; want %v", name, cluster, got, err, c.want)
				}
			}
		}
	}
}

// sourceOfCRDs returns the directory from which the tool applies a cluster's CRDs.
func sourceOfCRDs(t *testing.T, res *Result, tool profile.Name, cluster string) string {
	t.Helper()
	if tool == profile.Flux {
		text, _ := res.Tree.Get("flux/" + cluster + "/kustomization-env-" + cluster + "-crds.yaml")
		_, dir, ok := strings.Cut(string(text), "path: ./out/")
		if dir, _, _ = strings.Cut(dir, "\n"); !ok {
			t.Fatalf("%s: no path in %s", cluster, text)
		}
		return dir
	}
	text, _ := res.Tree.Get("argocd/applicationset-env-operators.yaml")
	set := decodeYAMLObject(t, text)
	source := k8s.Items(set, "spec", "template", "spec", "sources")[0]
	dir := strings.TrimPrefix(k8s.Text(source, "path"), "out/")
	dir = strings.ReplaceAll(dir, "{{.name}}", cluster)
	if _, kustomized := res.Tree.Get(path.Join(dir, layout.Kustomization)); kustomized == k8s.True(source, "directory", "recurse") {
		t.Errorf("plain directory %s: has a kustomization: %v", dir, kustomized)
	}
	return dir
}

func decodeYAMLObject(t *testing.T, text []byte) Object {
	t.Helper()
	v, err := yamltest.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

// newIssuerBundles returns an operator that provides the API of certificates, but has an unrelated name, and
// two operators that request certificates.
func newIssuerBundles() map[string]fstest.MapFS {
	trust := newBundle("trust", "1.0.0", "v1")
	for file, text := range trust {
		text.Data = []byte(strings.NewReplacer("things.trust.io", "certificates.cert-manager.io", "group: trust.io", "group: cert-manager.io",
			"kind: Thing", "kind: Certificate", "plural: things", "plural: certificates").Replace(string(text.Data)))
		trust[file] = text
	}
	const hooks = "  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: v.x.io, deploymentName: d, containerPort: 443, sideEffects: None, admissionReviewVersions: [v1]}]\n"
	bundles := map[string]fstest.MapFS{
		"ops/trust": trust, "a/x": newBundle("x", "1.0.0", "v1"),
		"b/cert-manager": newBundle("cert-manager", "1.0.0", "v1", "{kind: ClusterIssuer, apiVersion: cert-manager.io/v1, metadata: {name: ca}, spec: {selfSigned: {}}}"),
	}
	for name, b := range bundles {
		if name != "ops/trust" {
			b["manifests/csv.yaml"].Data = append(b["manifests/csv.yaml"].Data, hooks...)
		}
	}
	return bundles
}

// TestIssuerIsAppliedFirst checks Argo CD's sync waves and Flux's Kustomizations: the certificate issuer is
// applied before objects that wait for certificates.
func TestIssuerIsAppliedFirst(t *testing.T) {
	res, err := renderBundles(newIssuerBundles(), nil, asOneUnit(engineOptions(profile.ArgoCD)))
	if err != nil {
		t.Fatal(err)
	}
	waves := map[string][]int{}
	for _, r := range res.Objects {
		wave, err := strconv.Atoi(k8s.Text(r.Object, "metadata", "annotations", "argocd.argoproj.io/sync-wave"))
		if err != nil {
			t.Fatal(err)
		}
		kind := r.Object.Kind()
		if kind == "Deployment" {
			kind += map[bool]string{true: " that issues"}[r.Object.Namespace() == "ops"]
		}
		waves[kind] = append(waves[kind], wave)
	}
	for _, pair := range [][2]string{
		{"CustomResourceDefinition", "Deployment that issues"},
		{"Namespace", "Deployment that issues"},
		{"Deployment that issues", "Issuer"},
		{"Deployment that issues", "ClusterIssuer"},
		{"Deployment that issues", "Certificate"},
		{"Certificate", "Deployment"},
		{"ClusterIssuer", "Deployment"},
		{"Deployment", "ValidatingWebhookConfiguration"},
	} {
		before, after := waves[pair[0]], waves[pair[1]]
		if len(before) == 0 || len(after) == 0 || slices.Max(before) >= slices.Min(after) {
			t.Errorf("%s in waves %v is not applied before %s in waves %v", pair[0], before, pair[1], after)
		}
	}
}

// TestFluxStages checks that the Kustomizations of a cluster apply each object exactly once. The first applies
// the certificate issuer. The last applies the user's own resources and the objects that require other objects.
func TestFluxStages(t *testing.T) {
	bundles := newIssuerBundles()
	bundles["c/needy"] = newBundle("needy", "1.0.0", "v1")
	res, err := renderRequiring(bundles, map[string][]string{"c/needy": {"a/x", "ops/trust"}, "a/x": {"ops/trust"}, "ops/trust": {"c/needy"}}, asOneUnit(engineOptions(profile.Flux, profile.Cluster{Name: "lab", Overlays: []string{"resources"}})))
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(res.Tree, map[string]string{
		"lab/resources/kustomization.yaml": "resources: [mine.yaml]\n",
		"lab/resources/mine.yaml":          "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: a}}",
	})
	stages := map[Key][]string{}
	for _, name := range []string{"platform", "independent", "operators"} {
		text, _ := res.Tree.Get("flux/lab/kustomization-env-lab-" + name + ".yaml")
		files["stage/kustomization.yaml"] = encodeKustomization(map[string]any{
			"resources": k8s.Values("../clusters/lab/all"), "patches": k8s.At(decodeYAMLObject(t, text), "spec", "patches"),
		})
		docs, err := build(files, "stage")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			stages[d.head.Key()] = append(stages[d.head.Key()], name)
		}
	}
	docs, err := build(files, "clusters/lab/all")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		o, want := d.head, "independent"
		switch {
		case o.Is("", "Namespace"), o.Namespace() == "ops", strings.HasPrefix(o.Name(), "ops."):
			want = "platform"
		case o.Name() == "mine", o.Namespace() == "c", strings.HasPrefix(o.Name(), "c."):
			want = "operators"
		}
		if got := stages[o.Key()]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is applied by %v, want %s", o.Key(), got, want)
		}
	}
}
