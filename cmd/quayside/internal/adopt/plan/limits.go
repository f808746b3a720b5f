package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// CheckLimits returns an error for each action that is forbidden in all plans. There are two cases:
//   - The verb is not allowed in this kind of step, or on this object.
//   - The action changes metadata other than OLM's metadata and the annotations that protect from pruning.
//
// Call CheckLimits before a plan is executed.
func (p *Plan) CheckLimits() error {
	if err := p.CheckExecutable(); err != nil {
		return err
	}
	var faults []error
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			why, v := "", verbs()[a.Do]
			if !slices.Contains(v.steps, s.Name) {
				why = fmt.Sprintf("a step %q does not %s", s.Name, a.Do)
			} else if v.fault != nil {
				why = v.fault(p, s.Name, a)
			}
			if why != "" {
				faults = append(faults, fmt.Errorf("step %d, action %d: %s %s is refused: %s", s.Number, i+1, a.Do, a.Object, why))
			}
		}
	}
	return errors.Join(faults...)
}

// CheckExecutable returns an error if OLM v1 manages an operator of the plan. quayside does not
// execute such plans.
func (p *Plan) CheckExecutable() error {
	i := slices.IndexFunc(p.Operators, func(op Operator) bool { return op.Extension != "" })
	if i < 0 {
		return nil
	}
	op := p.Operators[i]
	return fmt.Errorf("quayside does not execute plans for OLM v1, which manages %s/%s by ClusterExtension %s: carry out the steps that 'quayside adopt plan --namespace %s --kubectl' prints, and check each with 'quayside adopt verify'",
		op.Namespace, op.Package, op.Extension, op.Namespace)
}

func annotateFault(p *Plan, step StepKind, a Action) string {
	if !a.Object.Key().Is("Namespace", "Subscription."+k8s.OLMGroup, "OperatorGroup."+k8s.OLMGroup) {
		return "only declarations of OLM and Namespaces are protected from pruning"
	}
	return guardFault(p, step, a)
}

// guardFault returns the reason why an action must not set an annotation, or "". Only annotations
// that protect from pruning are allowed.
func guardFault(_ *Plan, _ StepKind, a Action) string {
	guard := k8s.TextMap(profile.Guard(k8s.New("v1", "Namespace", "", "x")), "metadata", "annotations")
	for _, key := range append(slices.Sorted(maps.Keys(a.Set)), a.Unset...) {
		if _, ok := guard[key]; !ok {
			return fmt.Sprintf("annotation %q does not protect from pruning", key)
		}
	}
	return ""
}

func createFault(_ *Plan, _ StepKind, a Action) string {
	if !a.Object.Key().Is("Subscription."+k8s.OLMGroup) && !snapshot.IsReleaseRecord(a.Object.Key()) {
		return "only Subscriptions and Helm's records are created again"
	}
	return ""
}

// scaleFault returns the reason why an action must not scale or restart an object, or "". A plan
// may only restart OLM's controllers, scale them to 0, and scale them back.
func scaleFault(p *Plan, step StepKind, a Action) string {
	i := slices.IndexFunc(p.OLM, func(w Workload) bool { return w.Object == a.Object && w.UID == a.UID })
	switch {
	case i < 0 || !a.Object.Key().Is("Deployment.apps") || a.Object.Name != "olm-operator" && a.Object.Name != "catalog-operator":
		return "only OLM's controllers are scaled and restarted"
	case step == Stop && (a.From != p.OLM[i].Replicas || a.To != 0) || step == Start && (a.From != 0 || a.To != p.OLM[i].Replicas):
		return "controllers are stopped, and started with their replicas"
	}
	return ""
}

func orphanFault(_ *Plan, _ StepKind, a Action) string {
	if !a.Object.Key().Is("Subscription."+k8s.OLMGroup, "ClusterServiceVersion."+k8s.OLMGroup) {
		return "only Subscriptions and ClusterServiceVersions are detached"
	}
	return ""
}

func unfinalizeFault(_ *Plan, _ StepKind, a Action) string {
	foreign := func(key string) bool { return !slices.Contains(operatorAnnotations(), key) }
	if !a.Object.Key().Is("ClusterServiceVersion."+k8s.OLMGroup) || a.Finalizer != finalizer || slices.ContainsFunc(a.Unset, foreign) {
		return "only OLM's finalizer and annotations are removed, from ClusterServiceVersions"
	}
	return ""
}

func unlabelFault(_ *Plan, step StepKind, a Action) string {
	switch {
	case slices.ContainsFunc(a.Unset, func(key string) bool { return !isLabelOfOLM(key) }):
		return "only OLM's labels are removed"
	case step == Detach && !a.Object.Key().Is("APIService."+k8s.APIServiceGroup):
		return "only APIServices lose labels here"
	}
	return ""
}

func transferFault(_ *Plan, _ StepKind, a Action) string {
	if a.Managers != nil {
		return ""
	}
	if a.Object.Key().Is("CustomResourceDefinition."+k8s.CRDGroup, "APIService."+k8s.APIServiceGroup) {
		return "its CA certificate would be lost"
	}
	return ""
}

// deleteFault returns the reason why a step must not delete an object, or "".
func deleteFault(p *Plan, step StepKind, a Action) string {
	kinds := map[StepKind]string{
		Detach:    "OperatorCondition." + k8s.OLMGroup,
		CleanUp:   listKinds(k8s.OLMGroup, "InstallPlan OperatorGroup Operator OperatorCondition") + listKinds(k8s.RBACGroup, rbacKinds) + listKinds(k8s.AdmissionGroup, "ValidatingWebhookConfiguration MutatingWebhookConfiguration"),
		Uninstall: listKinds(k8s.OLMGroup, "InstallPlan CatalogSource OperatorGroup OLMConfig Operator") + listKinds(k8s.RBACGroup, rbacKinds),
	}
	switch {
	case step == Uninstall && p.Mode != Removal:
	case a.Object.Key().Is(strings.Fields(kinds[step])...), step == Withdraw && !a.Object.HoldsOthers(), step == Forget && snapshot.IsReleaseRecord(a.Object.Key()), step == Uninstall && p.isProgramOfOLM(a.Object):
		return ""
	}
	return "no plan deletes an object of this kind here"
}

// rbacKinds are the kinds of roles and bindings.
const rbacKinds = "Role RoleBinding ClusterRole ClusterRoleBinding"

// listKinds appends the group to each kind in a space-separated list.
func listKinds(group, kinds string) string {
	return strings.ReplaceAll(kinds+" ", " ", "."+group+" ")
}

// CheckDerived returns an error if p differs from derived, a plan that was made from the current cluster, lock
// and inspection. Differences in Skipped are ignored.
func (p *Plan) CheckDerived(derived *Plan) error {
	known := map[string]bool{}
	for _, s := range derived.Steps {
		for _, a := range s.Actions {
			known[actionText(s, a)] = true
		}
	}
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			if !known[actionText(s, a)] {
				return fmt.Errorf("step %d, action %d: %s %s is not in the plan that quayside would make now: the plan was edited, or the cluster has changed; make a new plan", s.Number, i+1, a.Do, a.Object)
			}
		}
	}
	a, b := *p, *derived
	a.Skipped, b.Skipped = nil, nil
	if line := firstDifference(string(Format(&a)), string(Format(&b))); line != "" {
		return fmt.Errorf("the plan differs from the plan that quayside would make now, first at %q: the plan was edited, or the cluster has changed; make a new plan", line)
	}
	return nil
}

// actionText returns the text of an action and its step, for comparing actions.
func actionText(s Step, a Action) string {
	return string(Format(&Plan{Steps: []Step{{Name: s.Name, Namespace: s.Namespace, Actions: []Action{a}}}}))
}

// firstDifference compares two texts line by line, and returns the first line of a that differs from b. It
// returns "" if the texts are equal, and "the end" if that line is empty or b has more lines than a.
func firstDifference(a, b string) string {
	if a == b {
		return ""
	}
	theirs := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(theirs) || line != theirs[i] {
			return cmp.Or(strings.TrimSpace(line), "the end")
		}
	}
	return "the end"
}

// CheckRevert returns an error if back, a plan for returning to OLM, has an action that does not undo an action
// of p.
func (p *Plan) CheckRevert(back *Plan) error {
	undone := map[Verb]map[k8s.Ref]bool{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			undo := undos(a)
			if s.Name == Detach && a.Do != Delete { // completes an interrupted detach step
				undo = append(undo, a)
			}
			for _, undo := range undo {
				if undone[undo.Do] == nil {
					undone[undo.Do] = map[k8s.Ref]bool{}
				}
				undone[undo.Do][undo.Object] = true
			}
		}
	}
	for _, s := range back.Steps {
		for i, a := range s.Actions {
			if !undone[a.Do][a.Object] {
				return fmt.Errorf("step %d, action %d of the revert: the plan has no action %s on %s", s.Number, i+1, a.Do, a.Object)
			}
		}
	}
	return nil
}
