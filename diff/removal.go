package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// Removal is the plan for an operator that goes: two steps, each of which is
// reviewed by itself, because custom resources need a running operator to be
// deleted properly.
type Removal struct {
	Operator   string     `json:"operator"`
	Version    string     `json:"version,omitempty"`
	Resources  []Resource `json:"resources,omitempty"`  // of this repository, by kind and name: delete these first
	Kinds      []Kind     `json:"kinds,omitempty"`      // what to look for in the cluster
	Webhooks   []Ref      `json:"webhooks,omitempty"`   // go with the operator; left behind they would block writes
	Pruned     []Ref      `json:"pruned,omitempty"`     // what pruning deletes
	Stays      []Ref      `json:"stays,omitempty"`      // protected from pruning: for a person to delete
	StillOwned []Ref      `json:"stillOwned,omitempty"` // definitions that another operator still renders
	Clusters   []string   `json:"clusters,omitempty"`   // that it goes from; nil: all
}

// Resource is a custom resource of the repository.
type Resource struct {
	Object     Ref      `json:"object"`
	Path       string   `json:"path"`
	Finalizers []string `json:"finalizers,omitempty"` // somebody has to remove them, or deletion hangs
}

// Kind is a kind that only the operator that goes looks after.
type Kind struct {
	Group      string `json:"group"`
	Kind       string `json:"kind"`
	Plural     string `json:"plural"`
	Finalizers bool   `json:"finalizers"` // the operator's roles let it set finalizers: objects hang once it is gone
}

// planRemovals returns a plan for every operator of before that after no longer has, by
// name: without those that another one follows, and those that are left behind.
func planRemovals(before, after *view) []Removal {
	gone := map[string]string{}
	followed := func(operator string) bool {
		_, before := before.leaves(operator)
		_, after := after.leaves(operator)
		return before || after
	}
	for _, p := range before.Pins {
		if _, stays := after.pin(p.Key()); !stays && !after.hasOperator(p.Key()) {
			gone[p.Key()] = p.Version
		}
	}
	for _, o := range before.order {
		if _, pinned := before.pin(o.Operator); strings.Contains(o.Operator, "/") && !pinned && !after.hasOperator(o.Operator) {
			gone[o.Operator] = ""
		}
	}
	maps.DeleteFunc(gone, func(operator, _ string) bool { return followed(operator) || leftBehind(before, after, operator) })
	var out []Removal
	for _, operator := range names(gone) {
		out = append(out, planRemoval(before, after, operator, gone[operator]))
	}
	return out
}

func planRemoval(before, after *view, operator, version string) Removal {
	r := Removal{Operator: operator, Version: version}
	for _, o := range before.order {
		ref := o.Ref()
		switch {
		case o.Operator != operator:
		case after.byKey[ref.key()] != nil:
			r.StillOwned = append(r.StillOwned, ref)
		case before.protects(o):
			r.Stays = append(r.Stays, ref)
		default:
			r.Pruned = append(r.Pruned, ref)
			if ref.is(webhookKinds()...) {
				r.Webhooks = append(r.Webhooks, ref)
			}
		}
		if o.Operator == operator && ref.is(crdKind) && after.byKey[ref.key()] == nil {
			r.kind(before, o)
		}
	}
	for _, k := range r.Kinds {
		for _, o := range after.of(kobj.Key{Group: k.Group, Kind: k.Kind}) {
			r.Resources = append(r.Resources, Resource{o.Ref(), o.Path, kobj.Texts(o.Content, "metadata", "finalizers")})
		}
	}
	slices.SortFunc(r.Resources, func(a, b Resource) int { return a.Object.Compare(b.Object) })
	return r
}

func (r *Removal) kind(before *view, crd *Object) {
	defined := kinds.Define(crd.Content)
	k := Kind{Group: defined.Group, Kind: defined.Kind, Plural: defined.Plural}
	for _, o := range before.order {
		if o.Operator != r.Operator || !strings.HasSuffix(o.Ref().Kind, "Role") {
			continue
		}
		for _, rule := range kobj.Items(o.Content, "rules") {
			k.Finalizers = k.Finalizers || slices.Contains(kobj.Texts(rule, "apiGroups"), k.Group) && slices.Contains(kobj.Texts(rule, "resources"), k.Plural+"/finalizers")
		}
	}
	r.Kinds = append(r.Kinds, k)
}

// Step is one reviewed change of a plan.
type Step struct {
	Title string
	Lines []string
}

// Steps returns the plan in words.
func (r Removal) Steps() []Step {
	first := Step{Title: "First pull request: delete the custom resources, while the operator still runs"}
	for _, res := range r.Resources {
		line := fmt.Sprintf("delete %s (%s)", res.Object, res.Path)
		if len(res.Finalizers) > 0 {
			line += "; its finalizers are " + some(res.Finalizers, 3) + ": it stays until they are gone"
		}
		first.Lines = append(first.Lines, line)
	}
	for _, k := range r.Kinds {
		line := fmt.Sprintf("see that none is left in the cluster: kubectl get %s --all-namespaces", groupKind(k.Group, k.Plural))
		if k.Finalizers {
			line += " (the operator sets finalizers on them: what is left when it goes hangs)"
		}
		first.Lines = append(first.Lines, line)
	}
	second := Step{Title: "Second pull request: this one, without the subscription"}
	if len(first.Lines) == 0 {
		second.Title = "This pull request: without the subscription"
	}
	if len(r.Webhooks) > 0 {
		second.Lines = append(second.Lines, fmt.Sprintf("see that the webhook configurations go with the operator, or writes of what they watch fail: %s", some(refs(r.Webhooks), 5)))
	}
	if len(r.Pruned) > 0 {
		second.Lines = append(second.Lines, fmt.Sprintf("pruning deletes %s: %s", plural(len(r.Pruned), "object", "objects"), some(refs(r.Pruned), 8)))
	}
	last := Step{Title: "Afterwards, by hand"}
	for _, ref := range r.Stays {
		who := "Argo CD asks before it prunes it, Flux leaves it"
		if ref.Kind == "CustomResourceDefinition" {
			who = "neither Argo CD nor Flux prunes it"
		}
		last.Lines = append(last.Lines, fmt.Sprintf("%s is protected and stays: %s; delete it when nothing of it is needed", ref, who))
	}
	for _, ref := range r.StillOwned {
		last.Lines = append(last.Lines, fmt.Sprintf("%s stays: another operator needs it", ref))
	}
	var out []Step
	for _, s := range []Step{first, second, last} {
		if len(s.Lines) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func refs(list []Ref) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.String()
	}
	return out
}
