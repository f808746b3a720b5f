package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// stepVerbs returns the verbs that are allowed in each kind of step. Other kinds of steps have no
// actions.
func stepVerbs() map[StepKind][]Verb {
	return map[StepKind][]Verb{
		Guard:     {Save, Annotate},
		Prepare:   {Apply},
		Stop:      {Scale},
		Backup:    {Save},
		Detach:    {Unlabel, Disown, Unfinalize, Orphan, Delete},
		Tree:      {Apply},
		Start:     {Scale},
		Restart:   {RestartPods},
		Fields:    {TransferFields, Apply},
		CleanUp:   {Unlabel, Delete},
		HandBack:  {Restore},
		Subscribe: {Create},
		Withdraw:  {Delete},
		Unguard:   {Annotate},
		Uninstall: {Delete},
	}
}

// CheckLimits returns an error if a plan has an action that is not allowed in any cluster: a verb
// in the wrong kind of step, a verb for an object that it must not affect, or a change of other
// metadata than OLM's and the guard's. It is called before a plan is executed.
func (p *Plan) CheckLimits() error {
	if err := p.CheckExecutable(); err != nil {
		return err
	}
	var faults []error
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			why := ""
			if !slices.Contains(stepVerbs()[s.Name], a.Do) {
				why = fmt.Sprintf("a step %q does not %s", s.Name, a.Do)
			} else {
				why = p.actionFault(s.Name, a)
			}
			if why != "" {
				faults = append(faults, fmt.Errorf("step %d, action %d: %s %s is refused: %s", s.Number, i+1, a.Do, a.Object, why))
			}
		}
	}
	return errors.Join(faults...)
}

// CheckExecutable returns an error if OLM v1 manages an operator of the plan: quayside does not detach
// such operators.
func (p *Plan) CheckExecutable() error {
	i := slices.IndexFunc(p.Operators, func(op Operator) bool { return op.Extension != "" })
	if i < 0 {
		return nil
	}
	op := p.Operators[i]
	return fmt.Errorf("quayside does not execute plans for OLM v1, which manages %s/%s by ClusterExtension %s: carry out the steps that 'quayside adopt plan --namespace %s --kubectl' prints, and check each with 'quayside adopt verify'",
		op.Namespace, op.Package, op.Extension, op.Namespace)
}

// actionFault returns the reason why an action is not allowed, or "". The verb itself must be
// allowed in the step.
func (p *Plan) actionFault(step StepKind, a Action) string {
	kind := a.Object.Key().GroupKind()
	switch a.Do { //nolint:exhaustive // the other verbs only read, or write objects whose digest is in the plan
	case Annotate:
		if !slices.Contains([]string{"Namespace", "Subscription." + k8s.OLMGroup, "OperatorGroup." + k8s.OLMGroup}, kind) {
			return "only declarations of OLM and Namespaces are protected from pruning"
		}
		return guardFault(a)
	case Apply:
		return guardFault(a)
	case Create:
		if kind != "Subscription."+k8s.OLMGroup {
			return "only Subscriptions are created again"
		}
	case Scale, RestartPods:
		return p.scaleFault(step, a)
	case Orphan:
		if kind != "Subscription."+k8s.OLMGroup && kind != "ClusterServiceVersion."+k8s.OLMGroup {
			return "only Subscriptions and ClusterServiceVersions are detached"
		}
	case Unfinalize:
		annotations := []string{"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"}
		if kind != "ClusterServiceVersion."+k8s.OLMGroup || a.Finalizer != finalizer || slices.ContainsFunc(a.Unset, func(key string) bool { return !slices.Contains(annotations, key) }) {
			return "only OLM's finalizer and annotations are removed, from ClusterServiceVersions"
		}
	case Unlabel:
		if slices.ContainsFunc(a.Unset, func(key string) bool {
			return !strings.HasPrefix(key, "olm.") && !strings.HasPrefix(key, k8s.OLMGroup+"/")
		}) {
			return "only OLM's labels are removed"
		}
		if step == Detach && kind != "APIService."+k8s.APIServiceGroup {
			return "only APIServices lose labels here"
		}
	case TransferFields:
		if kind == "CustomResourceDefinition.apiextensions.k8s.io" || kind == "APIService."+k8s.APIServiceGroup {
			return "its CA certificate would be lost"
		}
	case Delete:
		if step == Uninstall {
			return p.uninstallFault(kind, a.Object)
		}
		return deleteFault(step, kind, a.Object)
	}
	return ""
}

// guardFault returns the reason why an action is not allowed if it changes annotations other than
// those of the guard, and "" otherwise.
func guardFault(a Action) string {
	guard := k8s.TextMap(profile.Guard(k8s.New("v1", "Namespace", "", "x")), "metadata", "annotations")
	for _, key := range append(slices.Sorted(maps.Keys(a.Set)), a.Unset...) {
		if _, ok := guard[key]; !ok {
			return fmt.Sprintf("annotation %q does not protect from pruning", key)
		}
	}
	return ""
}

// scaleFault returns the reason why an action must not scale or restart an object, or "". A plan
// may only restart OLM's controllers, and scale them to 0 and back to their replicas in the plan.
func (p *Plan) scaleFault(step StepKind, a Action) string {
	i := slices.IndexFunc(p.OLM, func(w Workload) bool { return w.Object == a.Object && w.UID == a.UID })
	switch {
	case i < 0 || a.Object.Key().GroupKind() != "Deployment.apps" || a.Object.Name != "olm-operator" && a.Object.Name != "catalog-operator":
		return "only OLM's controllers are scaled and restarted"
	case step == Stop && (a.From != p.OLM[i].Replicas || a.To != 0) || step == Start && (a.From != 0 || a.To != p.OLM[i].Replicas):
		return "controllers are stopped, and started with their replicas"
	}
	return ""
}

// deleteFault returns the reason why a step must not delete an object, or "".
func deleteFault(step StepKind, kind string, r k8s.Ref) string {
	var can []string
	switch step { //nolint:exhaustive // no other step deletes
	case Detach:
		can = []string{"OperatorCondition." + k8s.OLMGroup}
	case CleanUp:
		for _, k := range []string{"InstallPlan", "OperatorGroup", "Operator", "OperatorCondition"} {
			can = append(can, k+"."+k8s.OLMGroup)
		}
		for _, k := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			can = append(can, k+"."+k8s.RBACGroup)
		}
		can = append(can, "ValidatingWebhookConfiguration."+k8s.AdmissionGroup, "MutatingWebhookConfiguration."+k8s.AdmissionGroup)
	case Withdraw:
		if !r.HoldsOthers() {
			return ""
		}
	}
	if slices.Contains(can, kind) {
		return ""
	}
	return "no plan deletes an object of this kind here"
}

// CheckDerived returns an error unless the plan equals derived, the plan that is made from the
// current cluster, lock and inspection. It ignores differences in Skipped.
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
				return fmt.Errorf("step %d, action %d: %s %s is not in the plan that quayside derives from the cluster now: the plan was edited, or the cluster has changed: make a new plan", s.Number, i+1, a.Do, a.Object)
			}
		}
	}
	a, b := *p, *derived
	a.Skipped, b.Skipped = nil, nil
	if line := firstDifference(string(Format(&a)), string(Format(&b))); line != "" {
		return fmt.Errorf("the plan differs from the plan that quayside derives from the cluster now, first at %q: the plan was edited, or the cluster has changed: make a new plan", line)
	}
	return nil
}

// actionText returns an action in its step, for comparison.
func actionText(s Step, a Action) string {
	return string(Format(&Plan{Steps: []Step{{Name: s.Name, Namespace: s.Namespace, Actions: []Action{a}}}}))
}

// firstDifference returns the first line of a that differs from the same line of b, "the end" if
// that line is empty or missing in a, or "" if the texts are equal.
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

// CheckRevert returns an error if back, the plan for a return to OLM, has an action that does not
// correspond to an action of p. It can restore the objects that p applies or whose fields p
// transfers, delete those that p adds, create those that p detaches, and repeat or undo other actions
// of p.
func (p *Plan) CheckRevert(back *Plan) error {
	named := map[Verb]map[k8s.Ref]bool{}
	add := func(do Verb, r k8s.Ref) {
		if named[do] == nil {
			named[do] = map[k8s.Ref]bool{}
		}
		named[do][r] = true
	}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			switch {
			case a.Do == Apply || a.Do == TransferFields:
				add(Restore, a.Object)
				if a.UID == "" {
					add(Delete, a.Object)
				}
			case a.Do == Orphan:
				add(Create, a.Object)
				add(a.Do, a.Object)
			case a.Do != Delete:
				add(a.Do, a.Object)
			}
		}
	}
	for _, s := range back.Steps {
		for i, a := range s.Actions {
			if !named[a.Do][a.Object] {
				return fmt.Errorf("step %d, action %d of the revert: the plan does not list %s for %s", s.Number, i+1, a.Object, a.Do)
			}
		}
	}
	return nil
}
