package profile

import (
	"fmt"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Registered selects clusters that are registered in Argo CD, by the labels of their Secrets.
type Registered struct {
	Selector Selector `json:"selector" doc:"Labels of the clusters' Secrets. Default: all clusters."`
}

// Selector is a label selector.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty" doc:"Labels with their values."`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty" doc:"Requirements on labels."`
}

// Requirement is a requirement on one label.
type Requirement struct {
	Key      string   `json:"key" form:"required nonempty" doc:"Label."`
	Operator string   `json:"operator" form:"required enum=In|NotIn|Exists|DoesNotExist" doc:"How values are compared with the label."`
	Values   []string `json:"values,omitempty" doc:"Values."`
}

// SyncPolicy configures how Argo CD syncs Applications.
type SyncPolicy struct {
	Automated   *Automated `json:"automated,omitempty" doc:"Automatic synchronization. Default: manual."`
	Retry       *Retry     `json:"retry,omitempty" doc:"Retries of a failed sync. Default: no limit, with waits of 10 seconds that double up to a minute. Default with one Application per cluster: five retries."`
	SyncOptions []string   `json:"syncOptions,omitempty" form:"nonempty" doc:"Additional sync options, such as ServerSideApply=true."`
}

// Automated configures automatic syncs.
type Automated struct {
	Prune      bool `json:"prune,omitempty" default:"false" doc:"Prunes objects that are no longer rendered. A Namespace still needs a confirmation; Argo CD never deletes a CRD."`
	SelfHeal   bool `json:"selfHeal,omitempty" default:"false" doc:"Reverts changes made in the cluster."`
	AllowEmpty bool `json:"allowEmpty,omitempty" default:"false" doc:"Applies to one Application per cluster: allows an Application without objects, so that Argo CD can prune the last operator. With one Application per operator, Argo CD always prunes an uninstalled operator."`
}

// Retry configures the retries of a failed sync.
type Retry struct {
	Limit   int32   `json:"limit" form:"required" doc:"Number of retries; a negative number means no limit."`
	Backoff Backoff `json:"backoff" doc:"Waits between retries."`
}

// Backoff configures the wait before a retry.
type Backoff struct {
	Duration    string `json:"duration,omitempty" doc:"First wait, such as 15s."`
	Factor      int32  `json:"factor,omitempty" doc:"Factor by which each wait is longer than the previous one."`
	MaxDuration string `json:"maxDuration,omitempty" doc:"Longest wait, such as 3m."`
}

// IgnoreDifference selects fields that Argo CD does not compare.
type IgnoreDifference struct {
	Group                 string   `json:"group,omitempty" doc:"API group."`
	Kind                  string   `json:"kind" form:"required nonempty" doc:"Kind."`
	Namespace             string   `json:"namespace,omitempty" doc:"Namespace. Default: all."`
	Name                  string   `json:"name,omitempty" doc:"Name. Default: all."`
	JSONPointers          []string `json:"jsonPointers,omitempty" form:"nonempty" doc:"Fields, as JSON pointers."`
	JQPathExpressions     []string `json:"jqPathExpressions,omitempty" form:"nonempty" doc:"Fields, as jq paths."`
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty" form:"nonempty" doc:"Fields that these field managers have written."`
}

// Unmatched returns a fault for each entry of ignoreDifferences that selects none of the objects.
func (argoCD) Unmatched(g GitOps, objects []k8s.Key) []Fault {
	var out []Fault
	for i, d := range g.IgnoreDifferences {
		if msg := d.unmatchedReason(objects); msg != "" {
			out = append(out, Fault{fmt.Sprintf("gitops.ignoreDifferences[%d]", i), msg})
		}
	}
	return out
}

// unmatchedReason returns the reason why d selects none of the objects, or "" if it selects one. As
// in Argo CD, kind and group are patterns, and an empty group means only the core group.
func (d IgnoreDifference) unmatchedReason(objects []k8s.Key) string {
	fields := []struct {
		name, want string
		have       func(k8s.Key) string
	}{
		{"kind", d.Kind, func(o k8s.Key) string { return o.Kind }},
		{"namespace", d.Namespace, func(o k8s.Key) string { return o.Namespace }},
		{"name", d.Name, func(o k8s.Key) string { return o.Name }},
		{"group", d.Group, func(o k8s.Key) string { return o.Group }},
	}
	near := make([][]string, len(fields)) // for each field, its values in the objects that match all other fields
	for _, o := range objects {
		var wrong []int
		for i, f := range fields {
			isPattern := f.name == "kind" || f.name == "group"
			ok := f.want == f.have(o) || !isPattern && f.want == ""
			if !ok && isPattern {
				ok, _ = path.Match(f.want, f.have(o)) // ignore the error: an invalid pattern matches nothing
			}
			if !ok && (f.name != "group" || f.want != "" || len(wrong) == 0) { // an empty group counts as wrong only if all other fields match
				wrong = append(wrong, i)
			}
		}
		switch len(wrong) {
		case 0:
			return ""
		case 1:
			near[wrong[0]] = append(near[wrong[0]], fields[wrong[0]].have(o))
		}
	}
	for i := range slices.Backward(fields) {
		f := fields[i]
		all := slices.Compact(slices.Sorted(slices.Values(near[i])))
		if meant := diag.DidYouMean(f.want, all); meant != "" || len(all) > 0 && len(all) <= 5 {
			return fmt.Sprintf("no such object with %s %q (available: %s)%s", f.name, f.want, diag.Some(all, 5), meant)
		}
	}
	return "selects no object: correct or delete it"
}

// isValid reports whether the API server accepts the selector.
func (s Selector) isValid() bool {
	_, ok := k8s.SelectorOf(fieldMap(&s))
	return ok
}
