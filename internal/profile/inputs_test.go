package profile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestInputs checks that the inputs of a cluster have the same values as its Applications, and no values
// of other clusters.
func TestInputs(t *testing.T) {
	tree := clusterTree()
	tree.GitOps.IgnoreDifferences = []profile.IgnoreDifference{{Kind: "Secret", JSONPointers: []string{"/data"}}}
	tree.Clusters = []profile.Cluster{{Name: "a", Values: map[string]string{"region": "eu"}}, {Name: "b.c", ArgoCDCluster: profile.ArgoCDCluster{Destination: "known-as"}}, {Name: "d", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://d"}, Prefix: "clusters/d/"}}
	p, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	objects, beside := p.Inputs(tree)
	if len(objects) != 0 || len(beside) != 2 {
		t.Fatalf("%d objects and %d files, want two files", len(objects), len(beside))
	}
	ones := map[string][]k8s.Object{}
	for _, c := range tree.Clusters {
		one := tree
		one.Clusters = []profile.Cluster{c}
		ones[c.Name] = applied(t, profile.ArgoCD, one)["argocd"]
	}
	for part, dir := range []string{"all", "reporter"} {
		name, wants := []string{"operators", "reporter"}[part], []any{}
		for _, c := range tree.Clusters {
			app := ones[c.Name][part]
			wants = append(wants, inputOf(tree, c, app.Name(), name, "rendered/"+c.Prefix+dir, k8s.Map(app, "spec")))
		}
		if d := cmp.Diff(string(yamlnode.Encode(wants)), string(beside[name+".yaml"])); d != "" {
			t.Errorf("(-of the Applications +of the inputs):\n%s", d)
		}
	}
}

// TestInputsOfPieces compares the inputs of each piece with its ApplicationSet.
func TestInputsOfPieces(t *testing.T) {
	tree := pieceTree()
	tree.Clusters = []profile.Cluster{{Name: "a", Values: map[string]string{"region": "eu"}}, {Name: "b.c", ArgoCDCluster: profile.ArgoCDCluster{Destination: "known-as"}, Prefix: "clusters/b.c/"}}
	tree.Pieces[1].Clusters = []string{"a"}
	p, err := profile.Lookup(profile.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	sets, _ := p.Apply(tree)
	_, beside := p.Inputs(tree)
	if len(beside) != len(tree.Pieces) {
		t.Errorf("%d files for %d pieces", len(beside), len(tree.Pieces))
	}
	for i, piece := range tree.Pieces {
		var wants []any
		for _, c := range tree.Clusters {
			if piece.Clusters != nil && !slices.Contains(piece.Clusters, c.Name) {
				continue
			}
			m := p.Member(tree.GitOps, c)
			spec := k8s.Copy(k8s.Map(sets["pieces"][i], "spec", "template", "spec"))
			for _, source := range k8s.Items(spec, "sources") {
				source["path"] = strings.ReplaceAll(k8s.Text(source, "path"), "{{.prefix}}", c.Prefix)
			}
			to := map[string]any{}
			for key, value := range map[string]string{"server": m.Server, "name": m.Name} {
				if value != "" {
					to[key] = value
				}
			}
			spec["destination"] = to
			name := strings.Replace(k8s.Text(sets["pieces"][i], "spec", "template", "metadata", "name"), "{{.application}}", m.Application, 1)
			wants = append(wants, inputOf(tree, c, name, piece.Name, "rendered/"+c.Prefix+piece.Dir, spec))
		}
		if d := cmp.Diff(string(yamlnode.Encode(wants)), string(beside[piece.Name+".yaml"])); d != "" {
			t.Errorf("%s: (-of the Applications +of the inputs):\n%s", piece.Name, d)
		}
	}
}

// inputOf returns the expected inputs for an Application in a cluster.
func inputOf(tree profile.Tree, c profile.Cluster, application, piece, dir string, spec map[string]any) map[string]any {
	values := map[string]any{}
	for key, v := range c.Values {
		values[key] = v
	}
	ignored := spec["ignoreDifferences"]
	if ignored == nil {
		ignored = []any{}
	}
	return map[string]any{
		"environment": "env", "cluster": c.Name, "repoURL": tree.GitOps.RepoURL, "revision": "main", "values": values, "directory": dir,
		"application": application, "piece": piece, "destination": spec["destination"], "sources": spec["sources"], "ignoreDifferences": ignored,
	}
}

// TestInputsOfFlux checks that each cluster has an object with a unique name and with the directory
// of its Kustomizations.
func TestInputsOfFlux(t *testing.T) {
	tree := clusterTree()
	tree.GitOps.Labels = map[string]string{"team": "platform"}
	tree.Clusters = []profile.Cluster{{Name: "a", Values: map[string]string{"region": "eu"}}, {Name: "inputs"}}
	p, err := profile.Lookup(profile.Flux)
	if err != nil {
		t.Fatal(err)
	}
	objects, beside := p.Inputs(tree)
	if len(objects) != 2 || len(beside) != 0 {
		t.Fatalf("%d objects and %d files, want two objects", len(objects), len(beside))
	}
	for i, o := range objects {
		want := k8s.New("fluxcd.controlplane.io/v1", "ResourceSetInputProvider", "gitops", []string{"env-a-inputs", "env-inputs-inputs"}[i])
		want = k8s.Label(want, map[string]string{"team": "platform", "quayside.dev/environment": "env"})
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
