package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
)

// GitOps is spec.gitops of quayside.yaml. Each profile embeds its own fields.
type GitOps struct {
	Name            string            `json:"name" doc:"Prefix of the names of Applications or Kustomizations. Default: metadata.name, or else the directory of the workspace in the repository, or else quayside."`
	RepoURL         string            `json:"repoURL" doc:"The repository's URL. Needed by the argocd profile."`
	Revision        string            `json:"revision" default:"\"main\"" doc:"Branch, tag or commit."`
	Path            string            `json:"path" doc:"Path of the tree in the repository. Default: spec.output."`
	Namespace       string            `json:"namespace" doc:"Namespace of the Applications or Kustomizations. Default: argocd or flux-system, by profile."`
	Granularity     string            `json:"granularity" default:"\"operator\"" form:"enum=operator|cluster" doc:"Content of one Application or Kustomization: one operator, so that an unhealthy operator does not block others; or all operators of a cluster."`
	Labels          map[string]string `json:"labels" doc:"Labels of the Applications or Kustomizations."`
	RemovedClusters string            `json:"removedClusters" default:"\"keep\"" form:"enum=keep|delete" doc:"Treatment of the operators of a removed cluster, and of all operators when their Applications or Kustomizations are deleted: keep or delete them."`
	ArgoCDSettings
	Inputs bool `json:"inputs" default:"false" doc:"Writes inputs/ to the tree, the inputs of each cluster for your own ApplicationSet or ResourceSet. Apply this, or argocd/ or flux/, not both."`
	FluxSettings
}

// Cluster is an entry of spec.clusters in quayside.yaml. Each profile embeds its own fields.
type Cluster struct {
	Name string `json:"name" form:"required nonempty" doc:"Name of the overlay."`
	ArgoCDCluster
	FluxCluster
	Values            map[string]string `json:"values" doc:"Your own values for spec.gitops.inputs, such as {region: eu}."`
	KubernetesVersion string            `json:"kubernetesVersion" form:"pattern=^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" doc:"Version of this cluster. Default: spec.kubernetesVersion."`
	Operators         []string          `json:"operators" default:"[\"*\"]" form:"nonempty" doc:"Operators of the cluster: namespace/package; * matches any text."`
	Provides          Provides          `json:"provides" doc:"APIs and objects of this cluster, in addition to spec.provides."`
	Config            json.RawMessage   `json:"config" doc:"Defaults for all operators of this cluster, in the form of a Subscription's spec.config."`

	// Derived from other files of the workspace, and from all settings.
	Overlays []string `json:"-"` // the team's changes in overlays/<name>/: "" for changes of all pieces, names of pieces, "resources"
	Prefix   string   `json:"-"` // prefix of the directories of its pieces in the tree: "", or "clusters/<name>/" if any piece differs
}

// WithDefaults returns the cluster with the defaults of its workspace.
func (c Cluster) WithDefaults(kubernetesVersion string, provides Provides) Cluster {
	c.KubernetesVersion = cmp.Or(c.KubernetesVersion, kubernetesVersion)
	c.Provides = Provides{APIs: slices.Concat(provides.APIs, c.Provides.APIs), Objects: slices.Concat(provides.Objects, c.Provides.Objects)}
	return c
}

// Provides lists APIs and objects that clusters have without the rendered tree.
type Provides struct {
	APIs    []string `json:"apis" form:"nonempty" doc:"Group and version of each API, such as cert-manager.io/v1."`
	Objects []string `json:"objects" form:"nonempty" doc:"Objects that operators refer to, such as Secret/namespace/name or StorageClass//fast."`
}

// Gets reports whether an operator is installed in the cluster. It returns an error for an invalid
// glob in Operators.
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

// ClustersThatGet returns the names of the clusters in which an operator is installed, in the order
// of clusters.
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

// GetsAll reports whether every operator is installed in the cluster.
func (c Cluster) GetsAll() bool {
	return len(c.Operators) == 0 || slices.Contains(c.Operators, "*") || slices.Contains(c.Operators, "*/*")
}

// Shared returns the settings that affect the content of a cluster's pieces, as JSON. Clusters with
// equal results share pieces. It omits the name of the cluster and the settings of the tool, which do
// not affect the content.
func (c Cluster) Shared() string {
	config := c.Config // canonical, or else invalid JSON that is rejected later
	c.Name, c.Values, c.Config, c.Provides = "", nil, nil, Provides{}
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous { // the settings of a tool
			v.Field(i).SetZero()
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("profile: %+v: %v", c, err)) // the fields are strings and lists of strings
	}
	return string(data) + string(config)
}
