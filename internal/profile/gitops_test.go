package profile_test

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// applied returns the objects that a profile renders to apply a tree.
func applied(t *testing.T, name profile.Name, tree profile.Tree) map[string][]k8s.Object {
	t.Helper()
	p, err := profile.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	own, _ := p.Apply(tree)
	return own
}

// TestKeeps checks that objects are kept when a cluster, an ApplicationSet or a Kustomization is
// deleted, unless spec.gitops.removedClusters is delete.
func TestKeeps(t *testing.T) {
	for _, removed := range []string{"", profile.Keep, profile.Delete} {
		keep := removed != profile.Delete
		tree := clusterTree()
		tree.GitOps.RemovedClusters = removed
		tree.Clusters = []profile.Cluster{{Name: "a"}, {Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Destination: "b"}}}
		for _, o := range applied(t, profile.ArgoCD, tree)["argocd"] {
			policy := k8s.Map(o, "spec", "syncPolicy")
			if kept := k8s.True(policy, "preserveResourcesOnDeletion") && k8s.Text(policy, "applicationsSync") == "create-update"; kept != keep {
				t.Errorf("%q: %s has syncPolicy %v", removed, o.Key(), policy)
			}
			if got := k8s.Texts(o, "spec", "preservedFields", "annotations"); !slices.Contains(got, "argocd.argoproj.io/deletion-approved") {
				t.Errorf("%s removes a manual confirmation", o.Key())
			}
		}
		for _, o := range all(applied(t, profile.Flux, tree)) {
			if kept := k8s.Text(o, "spec", "deletionPolicy") == "Orphan"; kept != keep {
				t.Errorf("%q: %s has deletionPolicy %q", removed, o.Key(), k8s.Text(o, "spec", "deletionPolicy"))
			}
		}
		// With keep, a single cluster has an Application. With delete, it has an ApplicationSet,
		// because deleting an Application would otherwise keep its objects.
		tree.Clusters = tree.Clusters[:1]
		for _, o := range applied(t, profile.ArgoCD, tree)["argocd"] {
			if single := o.Kind() == "Application"; single != keep || single && len(k8s.Texts(o, "metadata", "finalizers")) > 0 {
				t.Errorf("%q: one cluster: %s with finalizers %v", removed, o.Key(), k8s.Texts(o, "metadata", "finalizers"))
			}
		}
	}
}

// TestEnvironments checks that the objects of two environments have different names, and that the
// names do not depend on the number of clusters.
func TestEnvironments(t *testing.T) {
	names := func(p profile.Name, environment string, clusters ...profile.Cluster) []string {
		tree := clusterTree()
		tree.GitOps.Name, tree.Clusters = environment, clusters
		var out []string
		for _, o := range all(applied(t, p, tree)) {
			out = append(out, o.Name())
			for _, g := range k8s.Items(o, "spec", "generators") {
				for _, e := range k8s.Items(g, "list", "elements") {
					out = append(out, k8s.Text(e, "application"))
				}
			}
		}
		return out
	}
	a, b := profile.Cluster{Name: "a"}, profile.Cluster{Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}
	for _, p := range []profile.Name{profile.ArgoCD, profile.Flux} {
		one, two := names(p, "stage", a), names(p, "stage", a, b)
		for _, name := range one {
			if !slices.Contains(two, name) {
				t.Errorf("%s: %s is missing with another cluster: %v", p, name, two)
			}
		}
		for _, name := range append(two, names(p, "stage-with-a-name-as-long-as-a-label-in-kubernetes-may-be-at-most", a, b)...) {
			if !strings.HasPrefix(name, "stage-") || len(name) > 63 || slices.Contains(names(p, "prod", a, b), name) {
				t.Errorf("%s: name %s", p, name)
			}
		}
	}
}

// TestNames checks that objects of all environments and clusters on one hub have different names,
// in both forms of ApplicationSets.
func TestNames(t *testing.T) {
	of := func(environment, cluster string, tool profile.Name) map[string]string {
		tree := clusterTree()
		tree.GitOps.Name = environment
		tree.Clusters = []profile.Cluster{{Name: cluster}}
		names := map[string]string{}
		for _, o := range all(applied(t, tool, tree)) {
			names[o.Kind()+" "+o.Name()] = o.Name()
		}
		return names
	}
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 2, 4).Draw(r, "words")
		split := func(label string) (environment, cluster string) {
			at := rapid.IntRange(1, len(words)-1).Draw(r, label)
			cluster = words[at]
			for _, w := range words[at+1:] {
				cluster += rapid.SampledFrom([]string{"-", "--", "."}).Draw(r, "joint") + w
			}
			return strings.Join(words[:at], rapid.SampledFrom([]string{"-", "--"}).Draw(r, "joint")), cluster
		}
		e1, c1 := split("one")
		e2, c2 := split("another")
		for _, tool := range []profile.Name{profile.ArgoCD, profile.Flux} {
			first, second := of(e1, c1, tool), of(e2, c2, tool)
			for key, name := range first {
				if second[key] != "" && (e1 != e2 || c1 != c2) {
					r.Errorf("%s: duplicate %s: of %s in %s and of %s in %s", tool, key, c1, e1, c2, e2)
				}
				if !strings.HasPrefix(name, e1) || !strings.Contains(name, c1) {
					r.Errorf("%s: %s of %s in %s", tool, key, c1, e1)
				}
				if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
					r.Errorf("%s: %s: %v", tool, key, faults)
				}
			}
		}
		listed, registered := argoNames(t, e1, c1, nil), argoNames(t, e1, c1, &profile.Registered{})
		if single := slices.Sorted(maps.Values(of(e1, c1, profile.ArgoCD))); !slices.Equal(listed, single) || !slices.Equal(registered, single) {
			r.Errorf("%s in %s: names of Applications differ: %q, from a list %q, from registered clusters %q", c1, e1, single, listed, registered)
		}
	})
}

// argoNames returns the names of a cluster's Applications, sorted. The ApplicationSets of the environment
// create them from a list or, if r is not nil, from the registered clusters r.
func argoNames(t *testing.T, environment, cluster string, r *profile.Registered) []string {
	t.Helper()
	tree := clusterTree()
	tree.GitOps.Name, tree.GitOps.Clusters = environment, r
	tree.Clusters = []profile.Cluster{{Name: cluster}, {Name: "other", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://other"}}}
	var out []string
	for _, set := range applied(t, profile.ArgoCD, tree)["argocd"] {
		known := map[string]any{"nameNormalized": cluster}
		if r == nil {
			known, _ = k8s.List(k8s.Items(set, "spec", "generators")[0], "list", "elements")[0].(map[string]any)
		}
		// sprig's function "contains", which Argo CD offers in templates, gets the part first.
		contains := func(part, s string) bool { return strings.Contains(s, part) }
		name, err := template.New("").Funcs(template.FuncMap{"contains": contains}).Parse(k8s.Text(set, "spec", "template", "metadata", "name"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := name.Execute(&text, known); err != nil {
			t.Fatal(err)
		}
		out = append(out, text.String())
	}
	slices.Sort(out)
	return out
}

// TestRenamed checks that each Application has a source that is removed when the environment is renamed.
// An Application with the old name then fails, instead of reverting changes of the Application with the new
// name.
func TestRenamed(t *testing.T) {
	p, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	for _, clusters := range [][]profile.Cluster{{{Name: "a"}}, {{Name: "a"}, {Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}}} {
		tree := clusterTree()
		tree.Clusters = clusters
		own, _ := p.Apply(tree)
		tree.GitOps.Name = "renamed"
		_, beside := p.Apply(tree)
		for _, o := range own["argocd"] {
			app := o
			if o.Kind() == "ApplicationSet" {
				app = k8s.Map(o, "spec", "template")
			}
			there := 0
			for _, source := range k8s.Items(app, "spec", "sources") {
				dir, ours := strings.CutPrefix(k8s.Text(source, "path"), "rendered/argocd/")
				if _, kept := beside["argocd/"+dir+"/README.md"]; !ours || kept {
					there++
				}
			}
			if all := len(k8s.Items(app, "spec", "sources")); there != all-1 {
				t.Errorf("%s: %d of %d sources exist after renaming, want all but one", o.Key(), there, all)
			}
		}
		if _, there := beside["argocd/renamed/README.md"]; !there || len(own["argocd"]) != 2 {
			t.Errorf("%d objects, additional files %v", len(own["argocd"]), beside)
		}
	}
}

// TestDestinations checks that each Application has its cluster as destination.
func TestDestinations(t *testing.T) {
	tree := clusterTree()
	tree.Clusters = []profile.Cluster{{Name: "a"}, {Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}, {Name: "c", ArgoCDCluster: profile.ArgoCDCluster{Destination: "known-as"}, Prefix: "clusters/c/"}}
	set := applied(t, profile.ArgoCD, tree)["argocd"][0]
	want := []any{
		map[string]any{"application": "env-a-operators", "cluster": "a", "prefix": "", "server": "https://kubernetes.default.svc"},
		map[string]any{"application": "env-b-operators", "cluster": "b", "prefix": "", "server": "https://b"},
		map[string]any{"application": "env-c-operators", "cluster": "c", "prefix": "clusters/c/", "name": "known-as"},
	}
	if d := cmp.Diff(want, k8s.List(k8s.Items(set, "spec", "generators")[0], "list", "elements")); d != "" {
		t.Error(d)
	}
	tree.Clusters = tree.Clusters[2:]
	if got := k8s.Map(applied(t, profile.ArgoCD, tree)["argocd"][0], "spec", "destination"); !cmp.Equal(got, map[string]any{"name": "known-as"}) {
		t.Errorf("one cluster: destination %v", got)
	}

	tree.GitOps.Clusters = &profile.Registered{Selector: profile.Selector{MatchLabels: map[string]string{"env": "lab"}}}
	for clusters, dir := range map[int]string{1: "all", 2: "clusters/{{.name}}/all"} {
		tree.Clusters = []profile.Cluster{{Name: "lab"}, {Name: "prod", Prefix: "clusters/prod/"}}[:clusters]
		set = applied(t, profile.ArgoCD, tree)["argocd"][0]
		if got := k8s.Text(k8s.Items(set, "spec", "generators")[0], "clusters", "selector", "matchLabels", "env"); got != "lab" {
			t.Errorf("%d overlays: the selector has env=%q", clusters, got)
		}
		spec := k8s.Map(set, "spec", "template", "spec")
		if got := k8s.Text(k8s.Items(spec, "sources")[1], "path"); got != "rendered/"+dir || k8s.Text(spec, "destination", "server") != "{{.server}}" {
			t.Errorf("%d overlays: %s has destination %v", clusters, got, k8s.Map(spec, "destination"))
		}
	}
}

// TestSyncPolicy checks that Applications contain the settings of spec.gitops.
func TestSyncPolicy(t *testing.T) {
	tree := clusterTree()
	tree.GitOps.Labels = map[string]string{"team": "platform"}
	tree.GitOps.SyncPolicy = profile.SyncPolicy{
		Automated: &profile.Automated{Prune: true, SelfHeal: true}, SyncOptions: []string{"ServerSideApply=true"},
		Retry: &profile.Retry{Limit: -1, Backoff: profile.Backoff{Duration: "1m"}},
	}
	tree.GitOps.IgnoreDifferences = []profile.IgnoreDifference{{Kind: "Deployment", Group: "apps", JSONPointers: []string{"/spec/replicas"}}}
	for _, clusters := range [][]profile.Cluster{{{Name: "a"}}, {{Name: "a"}, {Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}}} {
		tree.Clusters = clusters
		for _, o := range applied(t, profile.ArgoCD, tree)["argocd"] {
			app := o
			if o.Kind() == "ApplicationSet" {
				app = k8s.Map(o, "spec", "template")
			}
			policy := map[string]any{
				"automated":   map[string]any{"prune": true, "selfHeal": true},
				"retry":       map[string]any{"limit": int64(-1), "backoff": map[string]any{"duration": "1m"}},
				"syncOptions": k8s.Values("ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true", "ServerSideApply=true"),
			}
			if d := cmp.Diff(policy, k8s.Map(app, "spec", "syncPolicy")); d != "" {
				t.Errorf("%s: %s", o.Key(), d)
			}
			ignored := k8s.Items(app, "spec", "ignoreDifferences")
			if len(ignored) == 0 || k8s.Text(ignored[len(ignored)-1], "kind") != "Deployment" || k8s.Text(app, "metadata", "labels", "team") != "platform" {
				t.Errorf("%s: ignores %v, labels %v", o.Key(), ignored, k8s.Map(app, "metadata", "labels"))
			}
		}
	}
	tree.GitOps.SyncPolicy = profile.SyncPolicy{}
	policy := k8s.Map(applied(t, profile.ArgoCD, tree)["argocd"][0], "spec", "template", "spec", "syncPolicy")
	if policy["automated"] != nil || k8s.At(policy, "retry", "limit") != int64(5) {
		t.Errorf("without these settings: %v", policy)
	}
}

// TestOrder checks that no object is in an earlier wave than the objects that make it healthy.
func TestOrder(t *testing.T) {
	p, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	wave := func(apiVersion, kind string, at profile.ApplyPosition) int {
		o := p.Annotate(k8s.New(apiVersion, kind, "ns", "x"), at)
		n, err := strconv.Atoi(k8s.Text(o, "metadata", "annotations", "argocd.argoproj.io/sync-wave"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const certs, apps, rbac, hooks = "cert-manager.io/v1", "apps/v1", "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
	first := profile.ApplyPosition{Issuer: true}
	order := [][]int{
		{wave("v1", "Namespace", profile.ApplyPosition{}), wave("v1", "Namespace", first), wave("v1", "Namespace", profile.ApplyPosition{Level: 3})},
		{wave("apiextensions.k8s.io/v1", "CustomResourceDefinition", profile.ApplyPosition{}), wave("apiextensions.k8s.io/v1", "CustomResourceDefinition", first)},
		{wave(rbac, "ClusterRole", first), wave("v1", "ServiceAccount", first)},
		{wave("v1", "Service", first)},
		// The operator issues its own certificates.
		{wave(apps, "Deployment", first), wave(certs, "Issuer", first), wave(certs, "Certificate", first)},
		{wave(hooks, "ValidatingWebhookConfiguration", first)},
		{wave("example.com/v1", "Thing", first)},
	}
	for level := range 102 { // levels above maxLevel share their waves
		at, needed := profile.ApplyPosition{Level: min(level, 100)}, profile.ApplyPosition{Level: min(level, 100), Provider: profile.EarlierOperator}
		if level == 101 {
			at.Level, needed.Level = 1000, 1000
			order = order[:len(order)-6]
		}
		order = append(order, [][]int{
			{wave(rbac, "ClusterRole", at), wave("v1", "ServiceAccount", at)},
			{wave(certs, "Issuer", at), wave(certs, "ClusterIssuer", needed), wave(certs, "Certificate", profile.ApplyPosition{Level: at.Level, Provider: profile.OtherOperator})},
			{wave("v1", "Service", at), wave("operators.coreos.com/v2", "OperatorCondition", profile.ApplyPosition{Level: at.Level, Provider: profile.OtherOperator})},
			// The operator may wait for the custom resource, or vice versa.
			{wave(apps, "Deployment", at), wave("example.com/v1", "Thing", needed), wave("example.com/v1", "Thing", profile.ApplyPosition{Level: at.Level, Provider: profile.NoOperator})},
			{wave(hooks, "ValidatingWebhookConfiguration", at)},
			{wave("example.com/v1", "Thing", at)},
		}...)
	}
	foreign := profile.ApplyPosition{Provider: profile.OtherOperator}
	order = append(order, []int{wave("example.com/v1", "Thing", foreign), wave("monitoring.coreos.com/v1", "ServiceMonitor", profile.ApplyPosition{Level: 7, Provider: profile.OtherOperator})})
	for i, waves := range order {
		if slices.Min(waves) != slices.Max(waves) || i > 0 && waves[0] <= order[i-1][0] {
			t.Errorf("position %d has waves %v, the previous one %v", i, waves, order[max(i-1, 0)])
		}
	}
}

// TestFluxClusters checks that each cluster has its own directory, and that each Kustomization of a cluster
// depends on the previous one.
func TestFluxClusters(t *testing.T) {
	tree := clusterTree()
	tree.Clusters = []profile.Cluster{{Name: "a"}, {Name: "b", FluxCluster: profile.FluxCluster{KubeConfig: "b-kubeconfig"}, Prefix: "clusters/b/"}}
	for _, own := range []bool{false, true} {
		tree.OwnCRDs = own
		for dir, objects := range applied(t, profile.Flux, tree) {
			cluster := path.Base(dir)
			crds := map[bool]string{false: "./rendered/crds", true: "./rendered/clusters/" + cluster + "/crds"}[own]
			at := map[string]string{"a": "./rendered/", "b": "./rendered/clusters/b/"}[cluster]
			type entry struct{ Name, Path, After, Secret string }
			secret := map[string]string{"b": "b-kubeconfig"}[cluster]
			prefix := "env-" + cluster + "-"
			want := []entry{
				{prefix + "crds", crds, "", secret},
				{prefix + "reporter", at + "reporter", prefix + "crds", secret},
				{prefix + "installations", at + "installations", prefix + "reporter", secret},
				{prefix + "platform", at + "all", prefix + "crds", secret},
				{prefix + "independent", at + "all", prefix + "platform", secret},
				{prefix + "operators", at + "all", prefix + "independent", secret},
			}
			var got []entry
			for _, o := range objects {
				l := entry{Name: o.Name(), Path: k8s.Text(o, "spec", "path"), Secret: k8s.Text(o, "spec", "kubeConfig", "secretRef", "name")}
				for _, d := range k8s.Items(o, "spec", "dependsOn") {
					l.After = k8s.Text(d, "name")
				}
				got = append(got, l)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", cluster, d)
			}
		}
	}
	if got := len(applied(t, profile.Flux, tree)); got != 2 {
		t.Errorf("%d directories, want one for each cluster", got)
	}
}
