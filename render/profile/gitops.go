package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/selector"
)

// GitOps is where the tree will live and how it is to be applied, as in
// quayside.yaml.
type GitOps struct {
	Name              string             `json:"name" doc:"What the names of the Applications or Kustomizations begin with. Default: metadata.name, else the directory of the workspace in the repository, else quayside."`
	RepoURL           string             `json:"repoURL" doc:"The repository's URL. Needed by the argocd profile."`
	Revision          string             `json:"revision" default:"\"main\"" doc:"Branch, tag or commit."`
	Path              string             `json:"path" doc:"Path of the tree in the repository. Default: spec.output."`
	Namespace         string             `json:"namespace" doc:"Namespace of the Applications or Kustomizations. Default: argocd or flux-system, by profile."`
	Granularity       string             `json:"granularity" default:"\"operator\"" form:"enum=operator|cluster" doc:"What one Application or Kustomization applies: an operator, so that one that does not become healthy holds back no other; or all of a cluster."`
	Labels            map[string]string  `json:"labels" doc:"Labels of the Applications or Kustomizations."`
	RemovedClusters   string             `json:"removedClusters" default:"\"keep\"" form:"enum=keep|delete" doc:"What becomes of the operators of a cluster that is taken out, and of all when what applies them is deleted: they stay, or go with it."`
	Project           string             `json:"project" default:"\"default\"" doc:"Argo CD project."`
	Clusters          *Registered        `json:"clusters" doc:"Argo CD: the clusters that are registered with it, in place of the destinations in spec.clusters. Where spec.clusters has one entry, all of them get it; else each gets the one of its name."`
	SyncPolicy        SyncPolicy         `json:"syncPolicy" doc:"Argo CD: when and how it synchronizes."`
	IgnoreDifferences []IgnoreDifference `json:"ignoreDifferences" doc:"Argo CD: fields that others write."`
	Inputs            bool               `json:"inputs" default:"false" doc:"Whether the tree gets inputs/, from which an ApplicationSet or a ResourceSet of your own learns of each cluster. Apply that, or argocd/ or flux/, and not both."`
	SourceRef         SourceRef          `json:"sourceRef" doc:"Flux source. Its name is needed by the flux profile."`
}

// What RemovedClusters may be; "" is Keep.
const (
	Keep   = "keep"
	Delete = "delete"
)

// SourceRef names a Flux source.
type SourceRef struct {
	Kind      string `json:"kind" default:"\"GitRepository\"" form:"enum=GitRepository|OCIRepository|Bucket" doc:"Kind of the source."`
	Name      string `json:"name" doc:"Name of the source."`
	Namespace string `json:"namespace" doc:"Namespace of the source. Default: spec.gitops.namespace."`
}

// Registered chooses clusters by the labels of the Secrets that Argo CD keeps
// them in.
type Registered struct {
	Selector Selector `json:"selector" doc:"Labels of the clusters' Secrets. Default: all clusters."`
}

// Selector is a label selector.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty" doc:"Labels with their values."`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty" doc:"Requirements."`
}

// Requirement is one on a label.
type Requirement struct {
	Key      string   `json:"key" form:"required nonempty" doc:"Label."`
	Operator string   `json:"operator" form:"required enum=In|NotIn|Exists|DoesNotExist" doc:"How the label relates to values."`
	Values   []string `json:"values,omitempty" doc:"Values."`
}

// SyncPolicy is when and how Argo CD synchronizes.
type SyncPolicy struct {
	Automated   *Automated `json:"automated,omitempty" doc:"Synchronizes without being asked. Without it, a person does."`
	Retry       *Retry     `json:"retry,omitempty" doc:"Tries again what failed. Default: without end, after 10 seconds, then twice as long each time, at most a minute; by cluster, five times."`
	SyncOptions []string   `json:"syncOptions,omitempty" form:"nonempty" doc:"Options beside those that are set in any case, such as ServerSideApply=true."`
}

// Automated is what Argo CD does without being asked.
type Automated struct {
	Prune      bool `json:"prune,omitempty" default:"false" doc:"Whether what is no longer rendered is deleted. A Namespace waits for a person all the same; Argo CD never deletes a custom resource definition."`
	SelfHeal   bool `json:"selfHeal,omitempty" default:"false" doc:"Whether what was changed in the cluster is changed back."`
	AllowEmpty bool `json:"allowEmpty,omitempty" default:"false" doc:"By cluster: whether the last operator may be pruned. By operator, one that is uninstalled always may."`
}

// Retry says how often a failed synchronization is tried again.
type Retry struct {
	Limit   int32   `json:"limit" form:"required" doc:"How often; less than 0 is without end."`
	Backoff Backoff `json:"backoff" doc:"How long to wait."`
}

// Backoff is how long to wait before the next attempt.
type Backoff struct {
	Duration    string `json:"duration,omitempty" doc:"Before the first one, such as 15s."`
	Factor      int32  `json:"factor,omitempty" doc:"How many times longer with each."`
	MaxDuration string `json:"maxDuration,omitempty" doc:"At most, such as 3m."`
}

// IgnoreDifference names fields of objects that are not compared.
type IgnoreDifference struct {
	Group                 string   `json:"group,omitempty" doc:"API group."`
	Kind                  string   `json:"kind" form:"required nonempty" doc:"Kind."`
	Namespace             string   `json:"namespace,omitempty" doc:"Namespace. Default: every one."`
	Name                  string   `json:"name,omitempty" doc:"Name. Default: every one."`
	JSONPointers          []string `json:"jsonPointers,omitempty" form:"nonempty" doc:"Fields, as JSON pointers."`
	JQPathExpressions     []string `json:"jqPathExpressions,omitempty" form:"nonempty" doc:"Fields, as jq paths."`
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty" form:"nonempty" doc:"Fields that these managers wrote."`
}

// Fault is a setting that a profile cannot work with.
type Fault struct {
	Field   string // of quayside.yaml's spec: "gitops.repoURL", "clusters[1].server"
	Message string // "missing: …"
}

// fields returns a value as an object's fields; v is a pointer to a struct.
func fields(v any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(fmt.Sprintf("profile: %T: %v", v, err)) // the types above all convert
	}
	return out
}

// object returns one of the tool's own objects.
func (g GitOps) object(apiVersion, kind, name string) kobj.Object {
	return kobj.Label(kobj.New(apiVersion, kind, g.Namespace, name), g.Labels)
}

// named returns the name of a part of all clusters, as long as a label's value
// may be.
func (g GitOps) named(part string) string {
	return kobj.Fit(g.Name+"-"+part, kobj.MaxLabel)
}

// namedOf returns the name of a part of one cluster, as long as a label's value
// may be. Whatever lies on one hub has a name of its own: no environment has a dot
// in its name, and no part a dash, so that the first dot, else the first dash, ends
// the environment's and the last dash begins the part's.
func (g GitOps) namedOf(cluster, part string) string {
	return kobj.Fit(g.Name+g.joint(strings.Contains(cluster, "."))+cluster+"-"+part, kobj.MaxLabel)
}

// joint returns what stands between the environment's name and that of a cluster,
// which has a dot or none.
func (g GitOps) joint(dotted bool) string {
	if dotted || strings.Contains(g.Name, "-") {
		return "."
	}
	return "-"
}

// missing returns a fault for each field without a value.
func missing(by Name, what string, values map[string]string) []Fault {
	var out []Fault
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if values[field] == "" {
			out = append(out, Fault{"gitops." + field, fmt.Sprintf("missing: the %s profile needs it to render %s", by, what)})
		}
	}
	return out
}

// twice returns a fault for each cluster that is where one before it is, of
// those that are somewhere.
func twice(clusters []Cluster, where func(Cluster) (field, place string)) []Fault {
	var out []Fault
	first := map[string]string{}
	for i, c := range clusters {
		field, place := where(c)
		switch before, seen := first[place]; {
		case place == "":
		case seen:
			out = append(out, Fault{
				fmt.Sprintf("clusters[%d].%s", i, field),
				fmt.Sprintf("cluster %q is at %s, and so is cluster %q: what is applied to one would be taken for the other's", c.Name, place, before),
			})
		default:
			first[place] = c.Name
		}
	}
	return out
}

// sound reports whether the API server takes the selector.
func (s Selector) sound() bool {
	_, ok := selector.Of(fields(&s))
	return ok
}
