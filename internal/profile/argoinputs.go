package profile

import (
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ArgoCDInput are the fields of an Input that only Argo CD uses.
type ArgoCDInput struct {
	Application       string              `json:"application,omitempty" doc:"Argo CD: name of the Application."`
	Piece             string              `json:"piece,omitempty" doc:"Argo CD: content of the Application: namespace.package, namespace-<name> or reporter; with one Application per cluster, operators or reporter."`
	Destination       *Destination        `json:"destination,omitempty" doc:"Argo CD: destination of the Application."`
	Sources           []ApplicationSource `json:"sources,omitempty" doc:"Argo CD: source of the Application."`
	IgnoreDifferences []IgnoreDifference  `json:"ignoreDifferences,omitempty" doc:"Argo CD: spec.gitops.ignoreDifferences."`
}

// Destination is the target cluster of an Application: its URL or its name.
type Destination struct {
	Server string `json:"server,omitempty" doc:"URL of the API server."`
	Name   string `json:"name,omitempty" doc:"Name of the cluster in Argo CD."`
}

// ApplicationSource is one source of an Application.
type ApplicationSource struct {
	RepoURL        string     `json:"repoURL" doc:"The repository's URL."`
	TargetRevision string     `json:"targetRevision" doc:"Branch, tag or commit."`
	Path           string     `json:"path" doc:"Directory in the repository."`
	Directory      *Directory `json:"directory,omitempty" doc:"Options for directories without a kustomization."`
}

// Directory configures a source that is a directory without a kustomization.
type Directory struct {
	Recurse bool   `json:"recurse,omitempty" doc:"Includes subdirectories."`
	Exclude string `json:"exclude,omitempty" doc:"Files to leave out."`
}

// Inputs returns a file for each piece or, with granularity cluster, for each part. Each file is a
// list of clusters for a Git file generator (generators.git.files), which creates an Application
// for each item.
func (argoCD) Inputs(t Tree) ([]k8s.Object, map[string][]byte) {
	out := map[string][]byte{}
	addFile := func(name string, member func(c Cluster) (Input, bool)) {
		var all []any
		for _, c := range t.Clusters {
			in, ok := member(c)
			if !ok {
				continue
			}
			destination := c.argoDestination()
			in.Destination, in.Piece = &destination, name
			fields := fieldMap(&in)
			if fields["ignoreDifferences"] == nil {
				fields["ignoreDifferences"] = []any{} // not omitted if empty, because templates may refer to it
			}
			all = append(all, fields)
		}
		out[name+".yaml"] = yamlnode.Encode(all)
	}
	if t.GitOps.Granularity != PerCluster {
		for _, p := range t.Pieces {
			addFile(p.Name, func(c Cluster) (Input, bool) {
				in := t.newInput(c)
				in.Sources = pieceSources(t, p, c.Prefix)
				in.Application, in.Directory = objectName(t.GitOps.ownerOf(c.Name), p.Name), in.Sources[len(in.Sources)-1].Path
				in.IgnoreDifferences = t.GitOps.IgnoreDifferences
				return in, p.isFor(c.Name)
			})
		}
		return nil, out
	}
	for _, part := range argoParts(t) {
		addFile(part, func(c Cluster) (Input, bool) {
			in := t.newInput(c)
			in.Sources = argoSources(t, part, c.Name, c.Prefix)
			in.Application, in.Directory = t.GitOps.clusterPartName(c.Name, part), in.Sources[len(in.Sources)-2].Path
			in.IgnoreDifferences = t.GitOps.IgnoreDifferences
			return in, true
		})
	}
	return nil, out
}
