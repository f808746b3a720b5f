package profile

import (
	"maps"
	"path"

	"github.com/quayside/quayside/internal/jsonschema"
)

// Input is the data of one cluster for the user's own ApplicationSet or ResourceSet. No field is
// called path, because Argo CD sets a field of this name.
type Input struct {
	Environment string            `json:"environment" doc:"Name of the environment, the prefix of the names of Applications or Kustomizations."`
	Cluster     string            `json:"cluster" doc:"Name of the cluster."`
	RepoURL     string            `json:"repoURL" doc:"spec.gitops.repoURL; empty if it is not set."`
	Revision    string            `json:"revision" doc:"spec.gitops.revision: branch, tag or commit."`
	Directory   string            `json:"directory" doc:"Path in the repository to apply: the cluster's overlay, or its Kustomizations."`
	Values      map[string]string `json:"values" doc:"spec.clusters[].values."`

	ArgoCDInput `json:",inline"`
}

// InputSchema returns the JSON schema of Input. It applies to the items of the lists in inputs/, and to
// spec.defaultValues of a ResourceSetInputProvider.
func InputSchema() []byte {
	return jsonschema.Output("https://quayside.dev/schema/inputs.schema.json", "inputs of a cluster", Input{})
}

// newInput returns an Input with the fields that all tools use. dir contains the path elements of
// the directory in the tree.
func (t Tree) newInput(c Cluster, dir ...string) Input {
	g := t.GitOps
	values := map[string]string{}
	maps.Copy(values, c.Values)
	return Input{Environment: g.Name, Cluster: c.Name, RepoURL: g.RepoURL, Revision: g.Revision, Directory: path.Join(g.Path, path.Join(dir...)), Values: values}
}
