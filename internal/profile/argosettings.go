package profile

import "github.com/quayside/quayside/internal/k8s"

// Registered selects clusters by the labels of their Secrets in Argo CD.
type Registered struct {
	Selector Selector `json:"selector" doc:"Labels of the clusters' Secrets. Default: all clusters."`
}

// Selector is a label selector.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty" doc:"Labels with their values."`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty" doc:"Requirements."`
}

// Requirement is a requirement on one label.
type Requirement struct {
	Key      string   `json:"key" form:"required nonempty" doc:"Label."`
	Operator string   `json:"operator" form:"required enum=In|NotIn|Exists|DoesNotExist" doc:"How the label relates to values."`
	Values   []string `json:"values,omitempty" doc:"Values."`
}

// SyncPolicy configures the synchronization by Argo CD.
type SyncPolicy struct {
	Automated   *Automated `json:"automated,omitempty" doc:"Synchronizes without being asked. Without it, a person does."`
	Retry       *Retry     `json:"retry,omitempty" doc:"Tries again what failed. Default: without end, after 10 seconds, then twice as long each time, at most a minute; by cluster, five times."`
	SyncOptions []string   `json:"syncOptions,omitempty" form:"nonempty" doc:"Options beside those that are set in any case, such as ServerSideApply=true."`
}

// Automated configures automatic synchronization.
type Automated struct {
	Prune      bool `json:"prune,omitempty" default:"false" doc:"Whether what is no longer rendered is deleted. A Namespace waits for a person all the same; Argo CD never deletes a custom resource definition."`
	SelfHeal   bool `json:"selfHeal,omitempty" default:"false" doc:"Whether what was changed in the cluster is changed back."`
	AllowEmpty bool `json:"allowEmpty,omitempty" default:"false" doc:"By cluster: whether the last operator may be pruned. By operator, one that is uninstalled always may."`
}

// Retry configures the retries of a failed synchronization.
type Retry struct {
	Limit   int32   `json:"limit" form:"required" doc:"How often; less than 0 is without end."`
	Backoff Backoff `json:"backoff" doc:"How long to wait."`
}

// Backoff is the waiting time before the next attempt.
type Backoff struct {
	Duration    string `json:"duration,omitempty" doc:"Before the first one, such as 15s."`
	Factor      int32  `json:"factor,omitempty" doc:"How many times longer with each."`
	MaxDuration string `json:"maxDuration,omitempty" doc:"At most, such as 3m."`
}

// IgnoreDifference selects fields of objects that are not compared.
type IgnoreDifference struct {
	Group                 string   `json:"group,omitempty" doc:"API group."`
	Kind                  string   `json:"kind" form:"required nonempty" doc:"Kind."`
	Namespace             string   `json:"namespace,omitempty" doc:"Namespace. Default: every one."`
	Name                  string   `json:"name,omitempty" doc:"Name. Default: every one."`
	JSONPointers          []string `json:"jsonPointers,omitempty" form:"nonempty" doc:"Fields, as JSON pointers."`
	JQPathExpressions     []string `json:"jqPathExpressions,omitempty" form:"nonempty" doc:"Fields, as jq paths."`
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty" form:"nonempty" doc:"Fields that these managers wrote."`
}

// sound reports whether the selector is valid for the API server.
func (s Selector) sound() bool {
	_, ok := k8s.SelectorOf(fieldMap(&s))
	return ok
}
