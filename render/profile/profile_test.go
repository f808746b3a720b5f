package profile_test

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

func objects() []kobj.Object {
	crd := kobj.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")
	big := kobj.With(crd, strings.Repeat("x", 300<<10), "spec", "text")
	hook := kobj.New("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w")
	hook["webhooks"] = []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}
	return []kobj.Object{
		kobj.New("v1", "Namespace", "", "ns"), crd, big, kobj.New("apps/v1", "Deployment", "ns", "d"), kobj.New("example.com/v1", "Thing", "ns", "t"),
		kobj.Annotate(hook, map[string]string{"cert-manager.io/inject-ca-from": "ns/c"}),
		kobj.Annotate(crd, map[string]string{"note": "${a}"}),
	}
}

func given() profile.Tree {
	return profile.Tree{
		GitOps: profile.GitOps{
			RepoURL: "https://git.example.com/fleet.git", Revision: "main", Path: "rendered", Namespace: "gitops", Project: "default",
			SourceKind: "GitRepository", SourceName: "fleet",
		},
		Clusters: []profile.Cluster{{Name: "lab"}}, HealthChecks: true,
		APIs: []catalog.GVK{{Group: "example.com", Version: "v1", Kind: "Thing"}}, Objects: objects(),
		Reporter: &profile.Workload{Namespace: "quayside-system", Name: "reporter"},
	}
}

// TestProfiles takes every profile of the table through the same cases.
func TestProfiles(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			p, err := profile.Of(profile.Name(name))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects() {
				before := kobj.Copy(o)
				once := p.Adorn(o)
				if !kobj.Equal(o, before) {
					t.Errorf("%s was changed", o.Key())
				}
				if !kobj.Equal(once, p.Adorn(once)) {
					t.Errorf("%s is another after the second time", o.Key())
				}
				stripped := kobj.Without(kobj.With(once, kobj.Map(o, "metadata", "annotations"), "metadata", "annotations"), "metadata", "annotations")
				if !kobj.Equal(stripped, kobj.Without(o, "metadata", "annotations")) {
					t.Errorf("%s: more than annotations was changed", o.Key())
				}
				for key, value := range kobj.TextMap(o, "metadata", "annotations") {
					if kobj.Text(once, "metadata", "annotations", key) != value {
						t.Errorf("%s: annotation %s was changed", o.Key(), key)
					}
				}
			}
			in := kobj.New("quayside.dev/v1alpha1", "Installation", "ns", "x")
			if kobj.Text(p.AdornInstallation(in), "metadata", "name") != "x" || kobj.Map(in, "metadata", "annotations") != nil {
				t.Error("an Installation was changed in place, or is another")
			}
			own, beside := p.Apply(given())
			if (p.Kind() == "") != (len(own) == 0) || (p.Kind() == "") != (p.Namespace() == "") {
				t.Errorf("Kind is %q, Namespace %q, of %d objects", p.Kind(), p.Namespace(), len(own))
			}
			seen := map[kobj.Key]bool{}
			for _, o := range own {
				if seen[o.Key()] || o.Namespace() != "gitops" || !strings.HasSuffix(p.Kind(), strings.TrimSuffix(o.Kind(), "Set")) {
					t.Errorf("%s stands twice, or is none of the tool's own", o.Key())
				}
				seen[o.Key()] = true
			}
			for file := range beside {
				if path.Base(file) != file || file == "kustomization.yaml" {
					t.Errorf("%s does not lie beside the objects", file)
				}
			}
			for _, part := range []string{"rendered/crds", "rendered/clusters/lab", "rendered/clusters/lab/reporter"} {
				if len(own) > 0 && !strings.Contains(text(own), part+"\n") {
					t.Errorf("nothing applies %s", part)
				}
			}
			again, _ := p.Apply(given())
			if d := cmp.Diff(own, again); d != "" {
				t.Errorf("the second time it is something else: %s", d)
			}
		})
	}
}

// TestNeeded takes away each field that a profile says it needs.
func TestNeeded(t *testing.T) {
	for _, name := range profile.Names() {
		p, err := profile.Of(profile.Name(name))
		if err != nil {
			t.Fatal(err)
		}
		if missing := profile.Missing(p, given().GitOps); len(missing) > 0 {
			t.Errorf("%s: %v is missing, of all that there is", name, missing)
		}
		all := map[string]bool{}
		for _, f := range p.Needed(profile.GitOps{}) {
			all[f.Name] = true
		}
		missing := map[string]bool{}
		for _, f := range profile.Missing(p, profile.GitOps{}) {
			missing[f] = true
		}
		if !maps.Equal(all, missing) || len(all) == 0 != (p.Kind() == "") {
			t.Errorf("%s: needs %v, misses %v", name, all, missing)
		}
	}
}

func TestOf(t *testing.T) {
	if _, err := profile.Of("argo"); err == nil || err.Error() != `no profile "argo" (have argocd, flux, plain)` {
		t.Errorf("got %v", err)
	}
	if p, err := profile.Of(""); err != nil || p.Kind() != "" {
		t.Errorf("an empty name is not the plain one: %v", err)
	}
}

// TestSyncOptions merges the options that an object has with those of the
// profile: each name once, and the object's own value.
func TestSyncOptions(t *testing.T) {
	p, err := profile.Of(profile.ArgoCD)
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
		o := p.Adorn(kobj.Annotate(kobj.New("v1", "Namespace", "", "ns"), map[string]string{key: have}))
		if got := kobj.Text(o, "metadata", "annotations", key); got != want {
			t.Errorf("%q: got %q, want %q", have, got, want)
		}
	}
}

func text(own []kobj.Object) string {
	var out strings.Builder
	for _, o := range own {
		out.Write(yamlnode.Encode(o))
	}
	return out.String()
}
