package profile

import (
	"maps"
	"path"

	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Input is what an ApplicationSet or a ResourceSet of the user's own is told of a
// cluster. No field is called path: Argo CD has one of its own in its place.
type Input struct {
	Environment string            `json:"environment" doc:"Name of the environment, as the names of Applications or Kustomizations begin with it."`
	Cluster     string            `json:"cluster" doc:"Name of the cluster."`
	RepoURL     string            `json:"repoURL" doc:"spec.gitops.repoURL; empty where it is not said."`
	Revision    string            `json:"revision" doc:"spec.gitops.revision: branch, tag or commit."`
	Directory   string            `json:"directory" doc:"Path in the repository of what is to be applied: the cluster's overlay, or its Kustomizations."`
	Values      map[string]string `json:"values" doc:"spec.clusters[].values."`

	Application       string             `json:"application,omitempty" doc:"Argo CD: name of the Application."`
	Piece             string             `json:"piece,omitempty" doc:"Argo CD: what the Application is of: namespace.package, namespace-<name>, reporter; by cluster, operators or reporter."`
	Destination       *Destination       `json:"destination,omitempty" doc:"Argo CD: where it goes."`
	Sources           []Source           `json:"sources,omitempty" doc:"Argo CD: what it is made of."`
	IgnoreDifferences []IgnoreDifference `json:"ignoreDifferences,omitempty" doc:"Argo CD: spec.gitops.ignoreDifferences."`
}

// Destination is where an Application goes, by one of two names.
type Destination struct {
	Server string `json:"server,omitempty" doc:"URL of the API server."`
	Name   string `json:"name,omitempty" doc:"Name by which Argo CD has the cluster."`
}

// Source is one source of an Application.
type Source struct {
	RepoURL        string     `json:"repoURL" doc:"The repository's URL."`
	TargetRevision string     `json:"targetRevision" doc:"Branch, tag or commit."`
	Path           string     `json:"path" doc:"Directory in it."`
	Directory      *Directory `json:"directory,omitempty" doc:"How a directory is read that is no kustomization."`
}

// Directory is how plain files are read.
type Directory struct {
	Recurse bool   `json:"recurse,omitempty" doc:"With the directories in it."`
	Exclude string `json:"exclude,omitempty" doc:"Files to leave out."`
}

// InputSchema returns the JSON schema of what is said of one cluster: of a member of
// a list in inputs/, and of spec.defaultValues of a
// ResourceSetInputProvider.
func InputSchema() []byte {
	return jsonschema.Output("https://quayside.dev/schema/inputs.schema.json", "what is said of a cluster in inputs/ of a tree", Input{})
}

// environmentKey is on the objects of inputs/, so that a ResourceSet can select
// those of an environment.
const environmentKey = "quayside.dev/environment"

// input returns what every tool is told of a cluster.
func (t Tree) input(c Cluster, dir ...string) Input {
	g := t.GitOps
	values := map[string]string{}
	maps.Copy(values, c.Values)
	return Input{Environment: g.Name, Cluster: c.Name, RepoURL: g.RepoURL, Revision: g.Revision, Directory: path.Join(g.Path, path.Join(dir...)), Values: values}
}

// Inputs returns, for each piece, a file with a list for a file generator
// (generators.git.files), which makes an Application of each member.
func (argoCD) Inputs(t Tree) ([]kobj.Object, map[string][]byte) {
	out := map[string][]byte{}
	list := func(name string, member func(c Cluster) (Input, bool)) {
		var all []any
		for _, c := range t.Clusters {
			in, gets := member(c)
			if !gets {
				continue
			}
			to := c.argoDestination()
			in.Destination, in.Piece = &to, name
			said := fields(&in)
			if said["ignoreDifferences"] == nil {
				said["ignoreDifferences"] = []any{} // a template may ask for it
			}
			all = append(all, said)
		}
		out[name+".yaml"] = yamlnode.Encode(all)
	}
	if t.GitOps.Granularity != PerCluster {
		for _, p := range t.Pieces {
			list(p.Name, func(c Cluster) (Input, bool) {
				in := t.input(c)
				in.Sources = pieceSources(t, p, c.Prefix)
				in.Application, in.Directory = named(t.GitOps.ownerOf(c.Name), p.Name), in.Sources[len(in.Sources)-1].Path
				in.IgnoreDifferences = t.GitOps.IgnoreDifferences
				return in, p.gets(c.Name)
			})
		}
		return nil, out
	}
	for _, part := range argoParts(t) {
		list(part, func(c Cluster) (Input, bool) {
			in := t.input(c)
			in.Sources = argoSources(t, part, c.Name, c.Prefix)
			in.Application, in.Directory = t.GitOps.namedOf(c.Name, part), in.Sources[len(in.Sources)-2].Path
			in.IgnoreDifferences = t.GitOps.IgnoreDifferences
			return in, true
		})
	}
	return nil, out
}

// Inputs returns a ResourceSetInputProvider of Flux Operator for each cluster, which
// a ResourceSet selects by its labels.
func (flux) Inputs(t Tree) ([]kobj.Object, map[string][]byte) {
	var out []kobj.Object
	for _, c := range t.Clusters {
		in := t.input(c, string(Flux), c.Name)
		o := t.GitOps.object("fluxcd.controlplane.io/v1", "ResourceSetInputProvider", t.GitOps.namedOf(c.Name, "inputs"))
		o = kobj.Label(o, map[string]string{environmentKey: t.GitOps.Name})
		o["spec"] = map[string]any{"type": "Static", "defaultValues": fields(&in)}
		out = append(out, o)
	}
	return out, nil
}

// Inputs returns none: nothing is known of what applies the tree.
func (plain) Inputs(Tree) ([]kobj.Object, map[string][]byte) { return nil, nil }
