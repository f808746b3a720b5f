package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// TestInputs wants what is said of a cluster to be what the Application of that
// cluster alone has, of each part, with nothing of another cluster.
func TestInputs(t *testing.T) {
	tree := given()
	tree.GitOps.IgnoreDifferences = []profile.IgnoreDifference{{Kind: "Secret", JSONPointers: []string{"/data"}}}
	tree.Clusters = []profile.Cluster{{Name: "a", Values: map[string]string{"region": "eu"}}, {Name: "b.c", Destination: "known-as"}, {Name: "d", Server: "https://d"}}
	p, err := profile.Of(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	objects, beside := p.Inputs(tree)
	if len(objects) != 0 || len(beside) != 1 {
		t.Fatalf("%d objects and %d files, want one file", len(objects), len(beside))
	}
	wants, ones := []any{}, map[string][]kobj.Object{}
	for _, c := range tree.Clusters {
		one := tree
		one.Clusters = []profile.Cluster{c}
		ones[c.Name] = applied(t, profile.ArgoCD, one)[""]
	}
	for part, dir := range []string{"", "/reporter"} {
		for _, c := range tree.Clusters {
			app := ones[c.Name][part]
			values := map[string]any{}
			for key, v := range c.Values {
				values[key] = v
			}
			wants = append(wants, map[string]any{
				"environment": "env", "cluster": c.Name, "repoURL": tree.GitOps.RepoURL, "revision": "main", "values": values,
				"directory": "rendered/clusters/" + c.Name + dir, "application": app.Name(), "part": []string{"operators", "reporter"}[part],
				"destination": app["spec"].(map[string]any)["destination"], "sources": app["spec"].(map[string]any)["sources"],
				"ignoreDifferences": app["spec"].(map[string]any)["ignoreDifferences"],
			})
		}
	}
	if d := cmp.Diff(string(yamlnode.Encode(wants)), string(beside["clusters.yaml"])); d != "" {
		t.Errorf("(-of the Applications +of the inputs):\n%s", d)
	}
}

// TestInputsOfFlux wants an object for each cluster, by a name that nothing else of
// the environment has, that says where its Kustomizations are.
func TestInputsOfFlux(t *testing.T) {
	tree := given()
	tree.GitOps.Labels = map[string]string{"team": "platform"}
	tree.Clusters = []profile.Cluster{{Name: "a", Values: map[string]string{"region": "eu"}}, {Name: "inputs"}}
	p, err := profile.Of(profile.Flux)
	if err != nil {
		t.Fatal(err)
	}
	objects, beside := p.Inputs(tree)
	if len(objects) != 2 || len(beside) != 0 {
		t.Fatalf("%d objects and %d files, want two objects", len(objects), len(beside))
	}
	for i, o := range objects {
		want := kobj.New("fluxcd.controlplane.io/v1", "ResourceSetInputProvider", "gitops", []string{"env-a-inputs", "env-inputs-inputs"}[i])
		want = kobj.Label(want, map[string]string{"team": "platform", "quayside.dev/environment": "env"})
		values := map[string]any{}
		if i == 0 {
			values["region"] = "eu"
		}
		want["spec"] = map[string]any{"type": "Static", "defaultValues": map[string]any{
			"environment": "env", "cluster": tree.Clusters[i].Name, "repoURL": tree.GitOps.RepoURL, "revision": "main", "values": values,
			"directory": "rendered/flux/" + tree.Clusters[i].Name,
		}}
		if d := cmp.Diff(want, o); d != "" {
			t.Error(d)
		}
	}
}
