package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// ExecutedAction is an action that was started, but may not be complete.
type ExecutedAction struct {
	Step       int    // number of the step in the plan
	Action     int    // number of the action in the step, from 1
	CreatedUID string // UID of the object that the action created; empty if none
}

// RevertInput is a plan, and the part of it that was executed.
type RevertInput struct {
	Plan     *Plan
	Executed []ExecutedAction       // in the order of execution
	Before   map[k8s.Ref]k8s.Object // backup of each object, from before its first change
	Stopped  bool                   // whether OLM is stopped by the plan
}

// Revert is a plan for returning operators to OLM, with the objects that its actions need.
type Revert struct {
	Plan    *Plan
	Objects map[k8s.Ref]k8s.Object // objects to create, and backups to restore from
}

// MakeRevert returns the plan for returning operators to OLM. It covers the namespaces whose clean-up has not
// begun. Skipped contains the other namespaces, with instructions. If no action was started, the plan has no
// steps. The plan creates the Subscriptions before it deletes objects of the tree, so that operators never lack
// required objects.
func MakeRevert(in RevertInput) *Revert {
	m := &revertBuilder{RevertInput: in, result: &Revert{Objects: map[k8s.Ref]k8s.Object{}}, done: map[*Action]ExecutedAction{}}
	for _, d := range in.Executed {
		m.done[&in.Plan.Steps[d.Step-1].Actions[d.Action-1]] = d
	}
	p := *in.Plan
	p.Operators, p.Skipped, p.Steps = []Operator{}, []SkippedOperator{}, []Step{}
	m.result.Plan = &p
	var back []*executedPart
	for _, at := range m.executedParts() {
		switch {
		case !at.hasBegun():
		case at.cleaned > 0:
			p.Skipped = append(p.Skipped, m.skippedNamespace(at))
		default:
			back = append(back, at)
			for _, op := range in.Plan.Operators {
				if op.Namespace == at.namespace {
					p.Operators = append(p.Operators, op)
				}
			}
		}
	}
	m.addSteps(back)
	return m.result
}

// revertBuilder builds the plan for returning to OLM.
type revertBuilder struct {
	RevertInput
	result *Revert
	done   map[*Action]ExecutedAction
}

// executedPart contains the executed actions of one namespace, or of steps for the whole cluster.
type executedPart struct {
	namespace string

	guarded   []Action // actions that restore annotations
	added     []Action // actions that delete objects which the plan added, last added first
	changed   []Action // actions that restore objects which the plan changed
	detach    []Action // actions of the detach step, except deletions with dependents; nil if none was started
	records   []Action // actions that create Helm's records again
	suspended []Action // actions that resume HelmReleases
	cleaned   int      // number of started clean-up actions

	alreadyDetached bool // whether OLM did not manage the operators when the plan was made
}

func (at *executedPart) hasBegun() bool {
	return at.cleaned > 0 || len(at.guarded)+len(at.added)+len(at.changed)+len(at.detach)+len(at.records)+len(at.suspended) > 0
}

// executedParts returns the executed actions by namespace, in the order of the plan.
func (m *revertBuilder) executedParts() []*executedPart {
	var out []*executedPart
	by := map[string]*executedPart{}
	for i := range m.Plan.Steps {
		s := &m.Plan.Steps[i]
		at := by[s.Namespace]
		if at == nil {
			at = &executedPart{namespace: s.Namespace, alreadyDetached: m.wasDetached(s.Namespace)}
			by[s.Namespace], out = at, append(out, at)
		}
		m.recordStep(at, s)
	}
	return out
}

// wasDetached reports whether OLM managed none of the plan's operators in a namespace at the time the plan was
// made.
func (m *revertBuilder) wasDetached(namespace string) bool {
	return namespace != "" && !slices.ContainsFunc(m.Plan.Operators, func(op Operator) bool { return op.Namespace == namespace && !op.Detached })
}

// recordStep adds to at the actions that undo the executed actions of a step.
func (m *revertBuilder) recordStep(at *executedPart, s *Step) {
	begun := 0
	for i := range s.Actions {
		a := &s.Actions[i]
		d, started := m.done[a]
		if !started {
			continue
		}
		begun++
		undo := verbs()[a.Do].undo
		if undo == nil {
			continue
		}
		switch back, _ := undo(*a, d, m.Before[a.Object]); back.Do { //nolint:exhaustive // the detach step is undone as a whole
		case Annotate:
			at.guarded = append(at.guarded, back)
		case Restore:
			if !slices.ContainsFunc(at.changed, func(b Action) bool { return b.Object == a.Object }) {
				at.changed = append(at.changed, back)
			}
		case Create:
			if snapshot.IsReleaseRecord(back.Object.Key()) {
				at.records = append(at.records, back)
			}
		case ResumeRelease:
			at.suspended = append(at.suspended, back)
		case Delete:
			at.added = slices.Insert(at.added, 0, back)
		}
	}
	switch {
	case begun == 0:
	case s.Name == Detach:
		at.detach = slices.DeleteFunc(slices.Clone(s.Actions), func(a Action) bool { return a.Do == Delete })
	case s.Name == CleanUp:
		at.cleaned += begun
	}
}

// undos returns all actions that can undo an action. Which of them is used depends on the earlier state of the
// object.
func undos(a Action) []Action {
	var out []Action
	if undo := verbs()[a.Do].undo; undo != nil {
		for _, before := range []k8s.Object{nil, {}} {
			if back, ok := undo(a, ExecutedAction{CreatedUID: "any"}, before); ok {
				out = append(out, back)
			}
		}
	}
	return out
}

// undoAnnotate returns an action that restores the annotations.
func undoAnnotate(a Action, _ ExecutedAction, before k8s.Object) (Action, bool) {
	was := k8s.TextMap(before, "metadata", "annotations")
	undo := Action{Do: Annotate, Object: a.Object, UID: a.UID, Set: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(a.Set)) {
		if value, ok := was[key]; ok && value != a.Set[key] {
			undo.Set[key] = value
		} else {
			undo.Unset = append(undo.Unset, key)
		}
	}
	return undo, true
}

// undoApply returns an action that restores an object if it existed before, and otherwise deletes it. A new
// object that contains others, such as a Namespace, is not deleted.
func undoApply(a Action, done ExecutedAction, before k8s.Object) (Action, bool) {
	uid := cmp.Or(a.UID, done.CreatedUID)
	switch {
	case uid == "":
	case before != nil:
		return Action{Do: Restore, Object: a.Object, UID: uid}, true
	case a.UID == "" && !a.Object.HoldsOthers():
		return Action{Do: Delete, Object: a.Object, UID: uid}, true
	}
	return Action{}, false
}

func undoTransfer(a Action, _ ExecutedAction, before k8s.Object) (Action, bool) {
	return Action{Do: Restore, Object: a.Object, UID: a.UID}, before != nil
}

// undoOrphan returns an action that creates a deleted Subscription again. OLM then installs the operator of
// this Subscription.
func undoOrphan(a Action, _ ExecutedAction, _ k8s.Object) (Action, bool) {
	return Action{Do: Create, Object: a.Object}, a.Object.Kind == "Subscription"
}

// undoScale returns an action that scales to the earlier number of replicas.
func undoScale(a Action, _ ExecutedAction, _ k8s.Object) (Action, bool) {
	a.From, a.To = a.To, a.From
	return a, true
}

// skippedNamespace returns the entry for a namespace that cannot return to OLM, with the reason.
func (m *revertBuilder) skippedNamespace(at *executedPart) SkippedOperator {
	if at.alreadyDetached {
		return SkippedOperator{Namespace: at.namespace, Reasons: []string{fmt.Sprintf(
			"%s of OLM already deleted; they are not needed, because OLM no longer managed these operators. To restore the previous pods, revert the commit that finished the adoption, and apply the tree after the revert",
			diag.Count(at.cleaned, "object"))}}
	}
	var csvs []string
	for _, op := range m.Plan.Operators {
		if op.Namespace == at.namespace {
			csvs = append(csvs, op.CSV)
		}
	}
	return SkippedOperator{Namespace: at.namespace, Reasons: []string{fmt.Sprintf(
		"%s of OLM already deleted, and only OLM can recreate them. Suspend the GitOps tool, create the OperatorGroup if it is missing, and a Subscription with spec.startingCSV for each of %s;"+
			" once each ClusterServiceVersion is Succeeded, delete the objects with %s: %s and without olm.managed: \"true\", except Namespaces and CustomResourceDefinitions",
		diag.Count(at.cleaned, "object"), strings.Join(csvs, ", "), k8s.LabelManagedBy, k8s.Manager)}}
}

// addSteps adds all steps of the return to OLM, in order.
func (m *revertBuilder) addSteps(back []*executedPart) {
	if len(back) == 0 && !m.Stopped {
		return
	}
	m.addStep(Step{Name: Suspend, Title: "Prevent GitOps tools from applying the tree", Manual: m.suspendText(back)})
	each := func(do func(*executedPart)) {
		for _, at := range back {
			do(at)
		}
	}
	detaches := slices.ContainsFunc(back, func(at *executedPart) bool { return at.detach != nil })
	if detaches {
		m.addControllerSteps(Stop, IsStopped)
	}
	each(m.addDetachStep)
	each(m.addRestoreStep)
	each(m.addRecordSteps)
	each(m.addSubscribeStep)
	if detaches || m.Stopped {
		m.addControllerSteps(Start, IsReady)
	}
	each(m.addWaitStep)
	each(m.addWithdrawStep)
	each(m.addUnguardStep)
	each(m.addResumeStep)
}

func (m *revertBuilder) addStep(s Step) {
	s.Number = len(m.result.Plan.Steps) + 1
	m.result.Plan.Steps = append(m.result.Plan.Steps, s)
}

func (m *revertBuilder) suspendText(back []*executedPart) string {
	if m.Plan.IsForReleases() {
		return "If a GitOps tool already applies the tree of this plan (its field manager is " + m.Plan.Manager + "), suspend the tool, and revert the commit that added that tree." +
			" Restore the declaration of a HelmRelease or Application in Git. Otherwise the GitOps tool would undo the next steps. Resume the tool when all steps are done."
	}
	if !slices.ContainsFunc(back, func(at *executedPart) bool { return !at.alreadyDetached }) {
		return "If a GitOps tool already applies the tree of this plan (its field manager is " + m.Plan.Manager + "), suspend the tool, and revert the commit that added that tree." +
			" Otherwise the GitOps tool would undo the next steps. Resume the tool when all steps are done."
	}
	return "If a GitOps tool already applies the tree (its field manager is " + m.Plan.Manager + "), suspend the tool, and revert the commit that replaced the Subscriptions by the tree." +
		" Otherwise the GitOps tool would undo the next steps and delete the Subscriptions. Resume the tool when all steps are done."
}

// addControllerSteps adds the steps of the original plan that stop or start OLM's controllers, including manual
// steps. Such a step is for the whole cluster. It is therefore added only once.
func (m *revertBuilder) addControllerSteps(name StepKind, is Condition) {
	seen := map[string]bool{}
	for _, s := range m.Plan.Steps {
		if s.Name != name || seen[s.Title] {
			continue
		}
		seen[s.Title] = true
		s.Namespace, s.Before = "", nil
		s.After = slices.DeleteFunc(slices.Clone(s.After), func(c Check) bool { return c.Check != is })
		m.addStep(s)
	}
}

// addDetachStep adds a step that completes an interrupted detach and waits for the deletions. A
// ClusterServiceVersion that remained without a Subscription would prevent OLM from installing the operator.
func (m *revertBuilder) addDetachStep(at *executedPart) {
	if at.detach == nil {
		return
	}
	m.addStep(Step{
		Name: Detach, Namespace: at.namespace, Title: "Make OLM forget the operators" + inNamespace(at) + " as far as not done yet",
		Actions: at.detach, After: []Check{{Check: Deleted, Objects: deletedRefs(at.detach)}},
	})
}

func deletedRefs(actions []Action) []k8s.Ref {
	var out []k8s.Ref
	for _, a := range actions {
		if a.Do == Orphan {
			out = append(out, a.Object)
		}
	}
	return out
}

func (m *revertBuilder) addRestoreStep(at *executedPart) {
	s := Step{Name: HandBack, Namespace: at.namespace, Title: "Restore the objects that the tree changed" + inNamespace(at)}
	for _, a := range at.changed {
		s.Actions = append(s.Actions, a)
		before := m.Before[a.Object]
		if before.Is(k8s.APIServiceGroup, "APIService") { // when OLM starts, it deletes APIServices whose labels name a missing owner
			for _, key := range ownerLabels() {
				before = k8s.Without(before, "metadata", "labels", key)
			}
		}
		m.result.Objects[a.Object] = before
	}
	if len(s.Actions) > 0 {
		m.addStep(s)
	}
}

func inNamespace(at *executedPart) string {
	if at.namespace == "" {
		return ""
	}
	return " in " + at.namespace
}

// addSubscribeStep adds a step that creates the deleted Subscriptions again. Operators that other operators
// require come first.
func (m *revertBuilder) addSubscribeStep(at *executedPart) {
	s := Step{Name: Subscribe, Namespace: at.namespace, Title: "Recreate the Subscriptions at the running versions" + inNamespace(at)}
	for _, sub := range m.deletedSubscriptions(at) {
		ref := k8s.RefTo(sub)
		s.Actions = append(s.Actions, Action{Do: Create, Object: ref})
		m.result.Objects[ref] = newSubscription(sub)
	}
	if len(s.Actions) > 0 {
		m.addStep(s)
	}
}

// deletedSubscriptions returns the backups of the Subscriptions that the detach step deletes. Required
// operators come before their dependents, because OLM could otherwise create a second Subscription for a
// required operator. The detach step has the reverse order: it deletes the ClusterServiceVersions of dependents
// first.
func (m *revertBuilder) deletedSubscriptions(at *executedPart) []k8s.Object {
	var out []k8s.Object
	var csvs []string
	for _, ref := range deletedRefs(at.detach) {
		if o, ok := m.Before[ref]; ok && o.Is(k8s.OLMGroup, "Subscription") {
			out = append(out, o)
		}
		if ref.Kind == "ClusterServiceVersion" && ref.Namespace == at.namespace {
			csvs = append(csvs, ref.Name)
		}
	}
	turn := func(sub k8s.Object) int { return slices.Index(csvs, k8s.Text(sub, "status", "installedCSV")) }
	slices.SortStableFunc(out, func(a, b k8s.Object) int { return cmp.Compare(turn(b), turn(a)) })
	return out
}

// newSubscription returns a Subscription to create, made from its backup. Its startingCSV is the installed
// version in the backup's status.
func newSubscription(sub k8s.Object) k8s.Object {
	meta := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if v := k8s.At(sub, "metadata", key); v != nil {
			meta[key] = v
		}
	}
	var owners []any
	for _, o := range k8s.Items(sub, "metadata", "ownerReferences") {
		if k8s.Group(k8s.Text(o, "apiVersion")) != k8s.OLMGroup {
			owners = append(owners, o)
		}
	}
	if owners != nil {
		meta["ownerReferences"] = owners
	}
	if csv := k8s.Text(sub, "status", "installedCSV"); csv != "" {
		sub = k8s.With(sub, csv, "spec", "startingCSV")
	}
	return k8s.With(k8s.Without(sub, "status"), any(meta), "metadata")
}

// addWaitStep adds a step that waits until OLM has installed the operators. If the Subscriptions require
// approval, the step is manual.
func (m *revertBuilder) addWaitStep(at *executedPart) {
	if at.detach == nil {
		return
	}
	installed := Check{Check: Succeeded}
	for _, a := range at.detach {
		if a.Do == Orphan && a.Object.Kind == "ClusterServiceVersion" && a.Object.Namespace == at.namespace {
			installed.Objects = append(installed.Objects, a.Object)
		}
	}
	s := Step{Name: Approve, Namespace: at.namespace, Title: "Wait until OLM has installed all operators" + inNamespace(at), After: []Check{installed}}
	if slices.ContainsFunc(m.deletedSubscriptions(at), func(o k8s.Object) bool { return k8s.Text(o, "spec", "installPlanApproval") == "Manual" }) {
		s.Title = "Approve OLM's InstallPlans" + inNamespace(at)
		s.Manual = "Approve only the InstallPlan that installs the running version (kubectl get installplans -n " + at.namespace + ")."
	}
	m.addStep(s)
}

// addWithdrawStep adds a step that deletes the objects that the tree added.
func (m *revertBuilder) addWithdrawStep(at *executedPart) {
	if len(at.added) == 0 {
		return
	}
	s := Step{Name: Withdraw, Namespace: at.namespace, Title: "Delete the objects that the tree added" + inNamespace(at), Actions: slices.Clone(at.added)}
	slices.SortStableFunc(s.Actions, func(a, b Action) int { return refRank(a.Object) - refRank(b.Object) })
	var refs []k8s.Ref
	for _, a := range s.Actions {
		refs = append(refs, a.Object)
	}
	s.After = []Check{{Check: Deleted, Objects: refs}}
	m.addStep(s)
}

// refRank returns the position of an object in the deletion order: webhook configurations,
// bindings, roles, then other objects.
func refRank(r k8s.Ref) int {
	i := slices.Index([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"}, r.Kind)
	if i < 0 {
		return 6
	}
	return i
}

// addUnguardStep adds a step that restores the annotations that the guard step changed.
func (m *revertBuilder) addUnguardStep(at *executedPart) {
	s := Step{Name: Unguard, Namespace: at.namespace, Title: "Let GitOps tools prune again" + inNamespace(at)}
	gone := deletedRefs(at.detach)
	for _, a := range at.guarded {
		if slices.Contains(gone, a.Object) {
			continue
		}
		s.Actions = append(s.Actions, a)
	}
	if len(s.Actions) > 0 {
		m.addStep(s)
	}
}
