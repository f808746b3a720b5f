package profile_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

func objects() []k8s.Object {
	crd := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")
	big := k8s.With(crd, strings.Repeat("x", 300<<10), "spec", "text")
	hook := k8s.New("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w")
	hook["webhooks"] = []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}
	return []k8s.Object{
		k8s.New("v1", "Namespace", "", "ns"), crd, big, k8s.New("apps/v1", "Deployment", "ns", "d"), k8s.New("example.com/v1", "Thing", "ns", "t"),
		k8s.Annotate(hook, map[string]string{"cert-manager.io/inject-ca-from": "ns/c"}),
		k8s.Annotate(crd, map[string]string{"note": "${a}"}),
	}
}

// clusterTree returns a tree with granularity cluster.
func clusterTree() profile.Tree {
	return profile.Tree{
		GitOps: profile.GitOps{
			Name: "env", RepoURL: "https://git.example.com/fleet.git", Revision: "main", Path: "rendered", Namespace: "gitops", ArgoCDSettings: profile.ArgoCDSettings{Project: "default"},
			FluxSettings: profile.FluxSettings{SourceRef: profile.SourceRef{Kind: "GitRepository", Name: "fleet"}}, Granularity: profile.PerCluster,
		},
		Clusters: []profile.Cluster{{Name: "lab"}}, HealthChecks: true,
		APIs:     []catalog.GVK{{Group: "example.com", Version: "v1", Kind: "Thing"}},
		Reporter: &profile.Workload{Namespace: "quayside-system", Name: "reporter"},
	}
}

// pieceTree returns a tree with granularity operator: a Namespace, two operators of which one requires
// the other, and the reporter.
func pieceTree() profile.Tree {
	tree := clusterTree()
	tree.GitOps.Granularity = ""
	tree.Pieces = []profile.Piece{
		{Name: "namespace-ns", Dir: "namespaces/ns"},
		{Name: "ns.pkg", Dir: "operators/ns.pkg", CRDs: []string{"crds/pkg"}, Needs: []string{"namespace-ns", "other.base"}, APIs: tree.APIs},
		{Name: "other.base", Dir: "operators/other.base", CRDs: []string{"crds/base", "crds/pkg"}, Needs: []string{"namespace-ns"}},
		{Name: "reporter", Dir: "reporter", Reports: true},
		{Name: "installations", Dir: "installations", CRDs: []string{"crds/quayside"}, Plain: true, Reports: true},
	}
	return tree
}

// TestProfiles checks all profiles with the same cases.
func TestProfiles(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := profile.Lookup(profile.Name(name))
			if err != nil {
				t.Fatal(err)
			}
			places := []profile.ApplyPosition{{}, {Issuer: true}, {Level: 2, Provider: profile.EarlierOperator}, {Provider: profile.OtherOperator}}
			for i, o := range slices.Repeat(objects(), len(places)) {
				at := places[i/len(objects())]
				before := k8s.Copy(o)
				once := p.Annotate(o, at)
				if !k8s.Equal(o, before) {
					t.Errorf("Annotate modified %s", o.Key())
				}
				if !k8s.Equal(once, p.Annotate(once, at)) {
					t.Errorf("annotating %s twice gives another result", o.Key())
				}
				stripped := k8s.Without(k8s.With(once, k8s.Map(o, "metadata", "annotations"), "metadata", "annotations"), "metadata", "annotations")
				if !k8s.Equal(stripped, k8s.Without(o, "metadata", "annotations")) {
					t.Errorf("%s: Annotate changed more than annotations", o.Key())
				}
				for key, value := range k8s.TextMap(o, "metadata", "annotations") {
					if k8s.Text(once, "metadata", "annotations", key) != value {
						t.Errorf("%s: annotation %s was changed", o.Key(), key)
					}
				}
			}
			in := k8s.New("quayside.dev/v1alpha1", "Installation", "ns", "x")
			if k8s.Text(p.AnnotateInstallation(in), "metadata", "name") != "x" || k8s.Map(in, "metadata", "annotations") != nil {
				t.Error("AnnotateInstallation modified its argument, or returned another object")
			}
			for _, newTree := range []func() profile.Tree{clusterTree, pieceTree} {
				checkApplied(t, p, newTree)
			}
		})
	}
}

// checkApplied checks the objects that apply a tree. They must be unique, have the tool's kinds, and apply
// every directory of the tree, but no additional files.
func checkApplied(t *testing.T, p profile.Profile, newTree func() profile.Tree) {
	t.Helper()
	own, beside := p.Apply(newTree())
	if (p.About().Kind == "") != (len(own) == 0) || (p.About().Kind == "") != (p.About().Namespace == "") {
		t.Errorf("Kind is %q, Namespace %q, of %d objects", p.About().Kind, p.About().Namespace, len(own))
	}
	seen := map[k8s.Key]bool{}
	for _, o := range all(own) {
		if seen[o.Key()] || o.Namespace() != "gitops" || !strings.HasSuffix(p.About().Kind, strings.TrimSuffix(o.Kind(), "Set")) {
			t.Errorf("%s: duplicate, or not a kind of the tool", o.Key())
		}
		seen[o.Key()] = true
	}
	for file := range beside {
		kept := strings.HasSuffix(path.Dir(file), "/env") // file of the environment's directory
		if path.Clean("/"+file) != "/"+file || path.Base(file) == "kustomization.yaml" || path.Ext(file) == ".yaml" && file != "argocd/argocd-cm-patch.yaml" || path.Ext(file) != ".yaml" && !kept {
			t.Errorf("unexpected additional file %s", file)
		}
	}
	dirs := []string{"crds", "all", "reporter", "installations"}
	if pieces := newTree().Pieces; pieces != nil {
		dirs = nil
		for _, piece := range pieces {
			dirs = append(append(dirs, piece.Dir), piece.CRDs...)
		}
	}
	var paths []string
	for _, o := range all(own) {
		paths = append(paths, pathsOf(o, p.About().Appliers)...)
	}
	for _, dir := range dirs {
		if len(own) > 0 && !slices.Contains(paths, "rendered/"+dir) {
			t.Errorf("no object applies %s: %q", dir, paths)
		}
	}
	again, _ := p.Apply(newTree())
	if d := cmp.Diff(own, again); d != "" {
		t.Errorf("the second call returns other objects: %s", d)
	}
}

// pathsOf returns the directories that an object of the tool applies, for clusters without a
// prefix.
func pathsOf(o k8s.Object, appliers []profile.Applier) []string {
	var out []string
	for _, a := range appliers {
		if o.Group() != a.Group || o.Kind() != a.Kind {
			continue
		}
		for _, field := range a.Paths {
			for _, dir := range textsAt(map[string]any(o), strings.Split(field, ".")) {
				out = append(out, path.Clean(strings.ReplaceAll(dir, "{{.prefix}}", "")))
			}
		}
	}
	return out
}

// textsAt returns the texts at a field path. [] is any item of a list.
func textsAt(v any, fields []string) []string {
	if text, is := v.(string); is && len(fields) == 0 {
		return []string{text}
	}
	if len(fields) == 0 {
		return nil
	}
	next := []any{}
	switch v := v.(type) {
	case map[string]any:
		next = append(next, v[fields[0]])
	case []any:
		if fields[0] == "[]" {
			next = v
		}
	}
	var out []string
	for _, v := range next {
		out = append(out, textsAt(v, fields[1:])...)
	}
	return out
}

// all returns the objects of all directories, sorted by directory.
func all(own map[string][]k8s.Object) []k8s.Object {
	var out []k8s.Object
	for _, dir := range slices.Sorted(maps.Keys(own)) {
		out = append(out, own[dir]...)
	}
	return out
}

// TestFaults checks the faults of missing settings, and of two clusters with the same address.
func TestFaults(t *testing.T) {
	in := func(clusters ...profile.Cluster) []profile.Cluster {
		for i := range clusters {
			clusters[i].Name = string(rune('a' + i))
		}
		return clusters
	}
	registered := clusterTree().GitOps
	registered.Clusters = &profile.Registered{}
	told := registered
	told.Inputs = true
	unsound := clusterTree().GitOps
	unsound.Clusters = &profile.Registered{Selector: profile.Selector{MatchLabels: map[string]string{"a b": ""}}}
	for name, c := range map[string]struct {
		profile  profile.Name
		gitops   profile.GitOps
		clusters []profile.Cluster
		want     []string // fields of the faults
	}{
		"ok/argocd":             {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Destination: "b"}}), nil},
		"ok/flux":               {profile.Flux, clusterTree().GitOps, in(profile.Cluster{}, profile.Cluster{}, profile.Cluster{FluxCluster: profile.FluxCluster{KubeConfig: "c"}}), nil},
		"ok/plain":              {profile.Plain, profile.GitOps{}, in(profile.Cluster{}, profile.Cluster{}), nil},
		"ok/registered":         {profile.ArgoCD, registered, in(profile.Cluster{}, profile.Cluster{}), nil},
		"error/argocd":          {profile.ArgoCD, profile.GitOps{}, in(profile.Cluster{}), []string{"gitops.name", "gitops.namespace", "gitops.path", "gitops.project", "gitops.repoURL", "gitops.revision"}},
		"error/flux":            {profile.Flux, profile.GitOps{}, in(profile.Cluster{}), []string{"gitops.name", "gitops.namespace", "gitops.path", "gitops.sourceRef.kind", "gitops.sourceRef.name"}},
		"error/no server twice": {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{}, profile.Cluster{}), []string{"clusters[1].server"}},
		"error/local twice":     {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://kubernetes.default.svc/"}}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Destination: "in-cluster"}}, profile.Cluster{}), []string{"clusters[1].destination", "clusters[2].server"}},
		"error/server twice":    {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}, profile.Cluster{}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b/"}}), []string{"clusters[2].server"}},
		"error/name twice":      {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Destination: "b"}}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Destination: "b"}}), []string{"clusters[1].destination"}},
		"error/both":            {profile.ArgoCD, clusterTree().GitOps, in(profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b", Destination: "b"}}), []string{"clusters[0].destination"}},
		"error/inputs":          {profile.ArgoCD, told, in(profile.Cluster{}), []string{"gitops.inputs"}},
		"error/beside":          {profile.ArgoCD, registered, in(profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}}, profile.Cluster{ArgoCDCluster: profile.ArgoCDCluster{Destination: "b"}}), []string{"clusters[0].server", "clusters[1].destination"}},
		"error/selector":        {profile.ArgoCD, unsound, in(profile.Cluster{}), []string{"gitops.clusters.selector"}},
		"error/reached twice":   {profile.Flux, clusterTree().GitOps, in(profile.Cluster{FluxCluster: profile.FluxCluster{KubeConfig: "b"}}, profile.Cluster{}, profile.Cluster{FluxCluster: profile.FluxCluster{KubeConfig: "b"}}), []string{"clusters[2].kubeConfig"}},
	} {
		p, err := profile.Lookup(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range p.Faults(c.gitops, c.clusters) {
			got = append(got, f.Field)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: faults of %q, want %q", name, got, c.want)
		}
	}
}

// TestLookup checks an unknown name and the default profile.
func TestLookup(t *testing.T) {
	if _, err := profile.Lookup("argo"); err == nil || err.Error() != `unknown profile "argo": must be one of `+strings.Join(profile.Names(), ", ") {
		t.Errorf("got %v", err)
	}
	if p, err := profile.Lookup(""); err != nil || p.About().Kind != "" {
		t.Errorf("the default is not the plain profile: %v", err)
	}
}

// TestSyncOptions merges the options of an object with those of the profile. The result must contain each
// option once, and the object's value takes precedence.
func TestSyncOptions(t *testing.T) {
	p, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	const key = "argocd.argoproj.io/sync-options"
	for have, want := range map[string]string{
		"":                                    "Prune=confirm,PruneLast=true,Delete=confirm",
		"Prune=false":                         "Prune=false,PruneLast=true,Delete=confirm",
		" Prune=false , Replace=true,,":       "Prune=false,Replace=true,PruneLast=true,Delete=confirm",
		"Replace=true,Replace=false":          "Replace=true,Prune=confirm,PruneLast=true,Delete=confirm",
		"Delete=confirm,PruneLast=true,Prune": "Delete=confirm,PruneLast=true,Prune",
	} {
		o := p.Annotate(k8s.Annotate(k8s.New("v1", "Namespace", "", "ns"), map[string]string{key: have}), profile.ApplyPosition{})
		if got := k8s.Text(o, "metadata", "annotations", key); got != want {
			t.Errorf("%q: got %q, want %q", have, got, want)
		}
	}
}

// TestLargeObjects checks that Argo CD applies large objects of any kind server-side, because they do not
// fit into the annotation of client-side apply.
func TestLargeObjects(t *testing.T) {
	argo, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ConfigMap", "CustomResourceDefinition", "PersistentVolumeClaim"} {
		for size, want := range map[int]bool{1 << 10: false, 250 << 10: true} {
			o := k8s.New("v1", kind, "ns", "a")
			if kind == "CustomResourceDefinition" {
				o = k8s.New("apiextensions.k8s.io/v1", kind, "", "a")
			}
			o["data"] = map[string]any{"text": strings.Repeat("x", size)}
			options := k8s.Text(argo.Annotate(o, profile.ApplyPosition{}), "metadata", "annotations", "argocd.argoproj.io/sync-options")
			if got := strings.Contains(options, "ServerSideApply=true"); got != want {
				t.Errorf("%s of %d bytes: options %q, want ServerSideApply: %t", kind, size, options, want)
			}
		}
	}
}
