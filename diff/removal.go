package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// Removal is the uninstall plan of an operator. It has two steps with separate pull requests,
// because deleting custom resources needs a running operator.
type Removal struct {
	Operator   string            `json:"operator"`
	Version    string            `json:"version,omitempty"`
	Resources  []RemovedResource `json:"resources,omitempty"`  // custom resources in the repository, which must be deleted first; sorted
	Kinds      []RemovedKind     `json:"kinds,omitempty"`      // kinds to check in the cluster
	Webhooks   []Ref             `json:"webhooks,omitempty"`   // webhook configurations to remove; if they remain, they block writes
	Pruned     []Ref             `json:"pruned,omitempty"`     // objects that the GitOps tool prunes
	Kept       []Ref             `json:"kept,omitempty"`       // objects that are protected from pruning and must be deleted manually
	StillOwned []Ref             `json:"stillOwned,omitempty"` // objects that another operator still renders
	Clusters   []string          `json:"clusters,omitempty"`   // clusters from which the operator is removed; nil means all
}

// RemovedResource is a custom resource in the repository.
type RemovedResource struct {
	Object     Ref      `json:"object"`
	Path       string   `json:"path"`
	Finalizers []string `json:"finalizers,omitempty"` // finalizers that the deletion waits for
}

// RemovedKind is a kind whose CRD is removed with the operator.
type RemovedKind struct {
	Group      string `json:"group"`
	Kind       string `json:"kind"`
	Plural     string `json:"plural"`
	Finalizers bool   `json:"finalizers"` // the operator may set finalizers, so that deletions hang without it
}

// planRemovals returns, sorted, an uninstall plan for each operator in the old state that is missing in the new
// state. Operators with a successor, and operators whose objects stay in the clusters, have no plan.
func planRemovals(before, after *view) []Removal {
	removed := map[string]string{}
	isReplaced := func(operator string) bool {
		_, before := before.replacedOperator(operator)
		_, after := after.replacedOperator(operator)
		return before || after
	}
	for _, p := range before.Pins {
		if _, stays := after.pin(p.Key()); !stays && !after.hasOperator(p.Key()) {
			removed[p.Key()] = p.Version
		}
	}
	for _, o := range before.order {
		if _, pinned := before.pin(o.Operator); strings.Contains(o.Operator, "/") && !pinned && !after.hasOperator(o.Operator) {
			removed[o.Operator] = ""
		}
	}
	maps.DeleteFunc(removed, func(operator, _ string) bool { return isReplaced(operator) || isLeftBehind(before, after, operator) })
	var out []Removal
	for _, operator := range sortedKeys(removed) {
		out = append(out, planRemoval(before, after, operator, removed[operator]))
	}
	return out
}

// planRemoval returns the uninstall plan of one operator.
func planRemoval(before, after *view, operator, version string) Removal {
	r := Removal{Operator: operator, Version: version}
	for _, o := range before.order {
		ref, key := o.Ref(), o.Key()
		switch {
		case o.Operator != operator:
		case after.byKey[key] != nil:
			r.StillOwned = append(r.StillOwned, ref)
		case before.isProtected(o):
			r.Kept = append(r.Kept, ref)
		default:
			r.Pruned = append(r.Pruned, ref)
			if key.Is(webhookKinds()...) {
				r.Webhooks = append(r.Webhooks, ref)
			}
		}
		if o.Operator == operator && key.Is(crdKind) && after.byKey[key] == nil {
			r.addKind(before, o)
		}
	}
	for _, k := range r.Kinds {
		for _, o := range after.objectsOf(k8s.Key{Group: k.Group, Kind: k.Kind}) {
			r.Resources = append(r.Resources, RemovedResource{o.Ref(), o.Path, k8s.Texts(o.Content, "metadata", "finalizers")})
		}
	}
	slices.SortFunc(r.Resources, func(a, b RemovedResource) int { return a.Object.Compare(b.Object) })
	return r
}

// addKind adds the kind that crd defines. It records whether the roles of the operator permit
// finalizers on it.
func (r *Removal) addKind(before *view, crd *Object) {
	defined := k8s.ParseCRD(crd.Content)
	k := RemovedKind{Group: defined.Group, Kind: defined.Kind, Plural: defined.Plural}
	for _, o := range before.order {
		if o.Operator != r.Operator || !strings.HasSuffix(o.Key().Kind, "Role") {
			continue
		}
		for _, rule := range k8s.Items(o.Content, "rules") {
			k.Finalizers = k.Finalizers || slices.Contains(k8s.Texts(rule, "apiGroups"), k.Group) && slices.Contains(k8s.Texts(rule, "resources"), k.Plural+"/finalizers")
		}
	}
	r.Kinds = append(r.Kinds, k)
}

// removalStep is a step of an uninstall plan.
type removalStep struct {
	Title string
	Lines []string
}

// steps returns the plan as titles and lines for display.
func (r Removal) steps() []removalStep {
	first := removalStep{Title: "First pull request: delete the custom resources, while the operator still runs"}
	for _, res := range r.Resources {
		line := fmt.Sprintf("delete %s (%s)", res.Object, res.Path)
		if len(res.Finalizers) > 0 {
			line += "; its deletion waits for the finalizers " + diag.Some(res.Finalizers, 3)
		}
		first.Lines = append(first.Lines, line)
	}
	for _, k := range r.Kinds {
		line := fmt.Sprintf("check that the cluster has no more objects: kubectl get %s --all-namespaces", k8s.Key{Group: k.Group, Kind: k.Plural}.GroupKind())
		if k.Finalizers {
			line += " (the operator sets finalizers on them: without the operator their deletion hangs)"
		}
		first.Lines = append(first.Lines, line)
	}
	second := removalStep{Title: "Second pull request: this one, without the subscription"}
	if len(first.Lines) == 0 {
		second.Title = "This pull request: without the subscription"
	}
	if len(r.Webhooks) > 0 {
		second.Lines = append(second.Lines, fmt.Sprintf("check that the webhook configurations are removed with the operator, otherwise writes to the watched kinds fail: %s", diag.Some(refNames(r.Webhooks), 5)))
	}
	if len(r.Pruned) > 0 {
		second.Lines = append(second.Lines, fmt.Sprintf("pruning deletes %s: %s", pluralize(len(r.Pruned), "object", "objects"), diag.Some(refNames(r.Pruned), 8)))
	}
	last := removalStep{Title: "Afterwards, by hand"}
	for _, ref := range r.Kept {
		protection := "" // end of the message: the protecting annotation
		if definition := ref.Kind == "CustomResourceDefinition"; definition || ref.Kind == "Namespace" {
			protection = ": " + profile.Protection(definition)
		}
		last.Lines = append(last.Lines, fmt.Sprintf("%s is protected and not pruned%s; delete it when it is no longer needed", ref, protection))
	}
	for _, ref := range r.StillOwned {
		last.Lines = append(last.Lines, fmt.Sprintf("%s is kept: another operator contains it", ref))
	}
	var out []removalStep
	for _, s := range []removalStep{first, second, last} {
		if len(s.Lines) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func refNames(list []Ref) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.String()
	}
	return out
}
