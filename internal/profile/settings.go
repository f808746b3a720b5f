package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// GitOps is spec.gitops in quayside.yaml. It embeds the fields of each profile.
type GitOps struct {
	Name            string            `json:"name" doc:"Prefix of the names of Applications or Kustomizations. Default: metadata.name, or else the directory of the workspace in the repository, or else quayside."`
	RepoURL         string            `json:"repoURL" doc:"URL of the repository. The argocd profile needs it."`
	Revision        string            `json:"revision" default:"\"main\"" doc:"Branch, tag or commit."`
	Path            string            `json:"path" doc:"Path of the tree in the repository. Default: spec.output."`
	Namespace       string            `json:"namespace" doc:"Namespace of the Applications or Kustomizations. Default: argocd or flux-system, by profile."`
	Granularity     string            `json:"granularity" default:"\"operator\"" form:"enum=operator|cluster" doc:"Content of one Application or Kustomization: one operator, so that an unhealthy operator does not block others; or all operators of a cluster."`
	Labels          map[string]string `json:"labels" doc:"Labels of the Applications or Kustomizations."`
	RemovedClusters string            `json:"removedClusters" default:"\"keep\"" form:"enum=keep|delete" doc:"Whether operators are kept or deleted when their cluster is removed from spec.clusters, or when their Applications or Kustomizations are deleted."`
	ArgoCDSettings
	Inputs bool `json:"inputs" default:"false" doc:"Writes the data of each cluster to inputs/ in the tree, for your own ApplicationSet or ResourceSet. Apply either inputs/, or argocd/ or flux/."`
	FluxSettings
}

// Cluster is an entry of spec.clusters in quayside.yaml. It embeds the fields of each profile.
type Cluster struct {
	Name string `json:"name" form:"required nonempty" doc:"Name of the cluster and of its overlay."`
	ArgoCDCluster
	FluxCluster
	Values            map[string]string `json:"values" doc:"Your own values for spec.gitops.inputs, such as {region: eu}."`
	KubernetesVersion string            `json:"kubernetesVersion" form:"pattern=^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" doc:"Version of this cluster. Default: spec.kubernetesVersion."`
	Operators         []string          `json:"operators" default:"[\"*\"]" form:"nonempty" doc:"Operators of the cluster: namespace/package; * matches any text."`
	Provides          Provides          `json:"provides" doc:"APIs and objects of this cluster, in addition to spec.provides."`
	Config            json.RawMessage   `json:"config" doc:"Default configuration of all operators in this cluster, in the format of a Subscription's spec.config."`

	// HelmValues are separate from Values: inputs/ contains Values, but not HelmValues.
	HelmValues map[string]json.RawMessage `json:"helmValues" doc:"Values of Helm charts in this cluster, by operator: namespace/package. These values override the values of the Subscription, as a second file of values does for Helm."`

	// Fields that are derived from other files of the workspace and from other settings.
	Overlays []string `json:"-"` // parts that overlays/<name>/ changes: "" for all pieces, names of pieces, or "resources"
	Prefix   string   `json:"-"` // directory of its pieces in the tree: "", or "clusters/<name>/" if a piece differs in this cluster

	ValuesAt map[string]diag.Pos `json:"-"` // positions of HelmValues, by operator
}

// WithDefaults returns c, extended by the APIs and objects that d provides. If c has no Kubernetes version,
// it gets the version of d.
func (c Cluster) WithDefaults(d Cluster) Cluster {
	c.KubernetesVersion = cmp.Or(c.KubernetesVersion, d.KubernetesVersion)
	c.Provides = Provides{APIs: slices.Concat(d.Provides.APIs, c.Provides.APIs), Objects: slices.Concat(d.Provides.Objects, c.Provides.Objects)}
	return c
}

// Provides lists APIs and objects that exist in clusters independently of the rendered tree.
type Provides struct {
	APIs    []string `json:"apis" form:"nonempty" doc:"Group and version of each API, such as cert-manager.io/v1."`
	Objects []string `json:"objects" form:"nonempty" doc:"Objects that operators refer to, such as Secret/namespace/name or StorageClass//fast."`
}

// Gets reports whether the cluster gets an operator ("namespace/package"). It returns an error for
// an invalid pattern in Operators.
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

// ClustersThatGet returns the names of the clusters that get an operator, in the order of clusters.
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

// Shared returns the settings that affect the content of the cluster's pieces, as JSON. Clusters
// with equal results share pieces. The name of the cluster and the settings of GitOps tools do not
// affect the content and are omitted.
func (c Cluster) Shared() string {
	config := c.Config // canonical JSON; invalid JSON is reported later
	c.Name, c.Values, c.Config, c.Provides = "", nil, nil, Provides{}
	if len(c.HelmValues) == 0 {
		c.HelmValues = nil
	}
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous { // an embedded struct: the settings of a tool
			v.Field(i).SetZero()
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("profile: %+v: %v", c, err)) // impossible: the fields are strings and lists of strings
	}
	return string(data) + string(config)
}

// ObjectSettings returns the settings that change objects of operators in the cluster, as text, or
// "" if there are none. These are the settings that Shared returns, except for the Kubernetes version and the
// selection of operators.
func (c Cluster) ObjectSettings() string {
	c.KubernetesVersion, c.Operators = "", nil // these fields select versions and operators
	if config := string(c.Config); config == "null" || config == "{}" {
		c.Config = nil
	}
	if s := c.Shared(); s != (Cluster{}).Shared() {
		return s
	}
	return ""
}
