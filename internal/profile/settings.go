package profile

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
)

// GitOps configures the location of the tree and its application, as in quayside.yaml. Each
// profile declares its own fields.
type GitOps struct {
	Name            string            `json:"name" doc:"What the names of the Applications or Kustomizations begin with. Default: metadata.name, else the directory of the workspace in the repository, else quayside."`
	RepoURL         string            `json:"repoURL" doc:"The repository's URL. Needed by the argocd profile."`
	Revision        string            `json:"revision" default:"\"main\"" doc:"Branch, tag or commit."`
	Path            string            `json:"path" doc:"Path of the tree in the repository. Default: spec.output."`
	Namespace       string            `json:"namespace" doc:"Namespace of the Applications or Kustomizations. Default: argocd or flux-system, by profile."`
	Granularity     string            `json:"granularity" default:"\"operator\"" form:"enum=operator|cluster" doc:"What one Application or Kustomization applies: an operator, so that one that does not become healthy holds back no other; or all of a cluster."`
	Labels          map[string]string `json:"labels" doc:"Labels of the Applications or Kustomizations."`
	RemovedClusters string            `json:"removedClusters" default:"\"keep\"" form:"enum=keep|delete" doc:"What becomes of the operators of a cluster that is taken out, and of all when what applies them is deleted: they stay, or go with it."`
	ArgoCDSettings
	Inputs bool `json:"inputs" default:"false" doc:"Whether the tree gets inputs/, from which an ApplicationSet or a ResourceSet of your own learns of each cluster. Apply that, or argocd/ or flux/, and not both."`
	FluxSettings
}

// Cluster is a target cluster of the tree, or of a part of it, as in quayside.yaml. It is the
// only type for the settings of a cluster. Each profile declares its own fields.
type Cluster struct {
	Name string `json:"name" form:"required nonempty" doc:"Name of the overlay."`
	ArgoCDCluster
	FluxCluster
	Values            map[string]string `json:"values" doc:"Yours, for spec.gitops.inputs, such as {region: eu}."`
	KubernetesVersion string            `json:"kubernetesVersion" form:"pattern=^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" doc:"Version of this cluster. Default: spec.kubernetesVersion."`
	Operators         []string          `json:"operators" default:"[\"*\"]" form:"nonempty" doc:"Which operators the cluster gets: namespace/package, where * stands for any text."`
	Config            json.RawMessage   `json:"config" doc:"As a Subscription's spec.config: what the operators of this cluster get on top of their own."`

	// Derived from the files of the workspace, and from all settings together.
	Overlays []string `json:"-"` // the team's changes in overlays/<name>/: "" for all pieces, the names of single ones, "resources"
	Prefix   string   `json:"-"` // of the directories of its pieces in the tree: "", or "clusters/<name>/" if any piece differs
}

// Gets reports whether one of the cluster's globs matches an operator. An empty list matches
// all.
func (c Cluster) Gets(operator string) (bool, error) {
	if len(c.Operators) == 0 {
		return true, nil
	}
	found := false
	for _, glob := range c.Operators {
		ok, err := path.Match(glob, operator)
		if err != nil {
			return false, fmt.Errorf("operators: %q: %w", glob, err)
		}
		found = found || ok || glob == "*"
	}
	return found, nil
}

// ClustersThatGet returns the names of the clusters that get an operator, in the given order.
func ClustersThatGet(operator string, clusters []Cluster) ([]string, error) {
	var out []string
	for _, c := range clusters {
		gets, err := c.Gets(operator)
		if err != nil {
			return nil, err
		}
		if gets {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// GetsAll reports whether the cluster gets every operator.
func (c Cluster) GetsAll() bool {
	return len(c.Operators) == 0 || slices.Contains(c.Operators, "*") || slices.Contains(c.Operators, "*/*")
}

// Shared returns the settings that affect the content of a cluster's pieces, as canonical
// JSON. Clusters with equal results share pieces. The name and the tool's settings of the
// cluster have no effect on them.
func (c Cluster) Shared() string {
	config := c.Config // already canonical, or invalid JSON that is refused when it is used
	c.Name, c.Values, c.Config = "", nil, nil
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous { // settings of a tool
			v.Field(i).SetZero()
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("profile: %+v: %v", c, err)) // strings and lists of them
	}
	return string(data) + string(config)
}
