package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// IsForReleases reports whether Helm manages the operators of the plan.
func (p *Plan) IsForReleases() bool {
	return slices.ContainsFunc(p.Operators, func(op Operator) bool { return op.Release != "" })
}

// Origin returns the name of the program that manages the operators of the plan, for messages.
func (p *Plan) Origin() string {
	if p.IsForReleases() {
		return "Helm"
	}
	return "OLM"
}

// records returns the release Secrets of a block.
func (b *block) records() []item {
	return b.itemsWhere(func(i item) bool {
		return i.live != nil && snapshot.IsReleaseRecord(i.Key) && i.RemovedAt == adopt.AtDetach
	})
}

// separateReleases adds a reason to operators of Helm if the plan also adopts operators of OLM.
func (m *selection) separateReleases() {
	isAdopted := func(op *operator) bool { return op.adopted && len(op.reasons) == 0 }
	if !slices.ContainsFunc(m.operators, func(op *operator) bool { return isAdopted(op) && op.Release == nil }) {
		return
	}
	for _, op := range m.operators {
		if isAdopted(op) && op.Release != nil {
			op.reasons = []string{"Helm manages the operator, and this plan is for OLM: make a separate plan when the other operators of its namespace have left OLM ('quayside adopt plan --namespace " + op.Namespace + "')"}
		}
	}
}

// addReleaseSteps adds the steps for operators of Helm. Helm keeps a release only in Secrets, so that nothing
// has to be stopped except a HelmRelease of Flux. The step that deletes the Secrets is the last: until then,
// Helm can manage the operators again at any time.
func (m *planBuilder) addReleaseSteps(b *block) {
	flux := b.itemsWhere(func(i item) bool { return i.live != nil && i.Is("HelmRelease."+snapshot.FluxGroup) })
	changed := b.existingItems()
	same := Check{Check: SameRelease}
	m.addStep(Step{
		Name: Backup, Namespace: b.namespace, Title: "Back up Helm's records of " + b.packageNames() + ", and the objects to change, to files",
		Before: []Check{{Check: SameVersion}, same}, Actions: actionsFor(Save, append(changed, b.records()...)),
	})
	m.addStep(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend the HelmReleases of " + b.packageNames(),
		Actions: actionsFor(SuspendRelease, slices.DeleteFunc(flux, func(i item) bool { return k8s.True(i.live.Body(), "spec", "suspend") })),
	})
	appliers := appliersOf(changed, func(i item) bool { return !i.Is("Namespace") && i.live.Labels[snapshot.FluxRelease] == "" })
	if appliers != "" {
		m.addStep(Step{
			Name: Suspend, Namespace: b.namespace, Title: "Make the GitOps tool that applies the objects of " + b.packageNames() + " forget them",
			Manual: "The objects are applied by " + appliers + ": suspend it, or delete an Application without its resources ('argocd app delete --cascade=false'). It must not apply the objects again until the tree of this plan is merged.",
		})
	}
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take ownership of Helm's fields, and apply the tree: " + b.packageNames(),
		Before: []Check{same}, After: readyChecks(b),
	}
	for _, i := range sortByPhase(append(b.addedItems(true), append(changed, b.addedItems(false)...)...)) {
		switch managers := helmManagers(i); {
		case i.live == nil && (m.refused[i.Key] != "" || m.isHook(b, i)):
			continue
		case len(managers) > 0 && !losesSettings(i):
			a := newAction(TransferFields, i)
			a.Managers = managers
			s.Actions = append(s.Actions, a)
		}
		a := newAction(Apply, i)
		if i.live != nil {
			a = newApplyAction(i)
		}
		s.Actions = append(s.Actions, a)
	}
	m.addStep(s)
	m.addStep(Step{
		Name: Forget, Namespace: b.namespace, Title: "Make Helm forget " + b.packageNames() + ": delete the records of its releases",
		Before: append([]Check{same}, unchangedChecks(b)...), Actions: actionsFor(Delete, b.records()),
		After: append([]Check{{Check: Deleted, Objects: itemRefs(b.records())}}, unchangedChecks(b)...),
	})
}

// isHook reports whether an object is a hook of a release and does not exist in the cluster.
func (m *planBuilder) isHook(b *block, i item) bool {
	return slices.ContainsFunc(b.operators, func(op *operator) bool { return op.Release != nil && slices.Contains(op.Release.Hooks, i.String()) })
}

// losesSettings reports whether the tree lacks a live field of a CRD, a webhook configuration or an APIService.
// The object keeps the field, because it may be the CA that another program needs.
func losesSettings(i item) bool {
	return (k8s.IsCRD(i.ours) || i.IsWebhookConfig() || i.Is("APIService."+k8s.APIServiceGroup)) &&
		slices.ContainsFunc(i.Changes(), func(f adopt.Field) bool { return f.Kind == adopt.OnlyLive })
}

// helmManagers returns Helm's field managers for an object, sorted. It finds them by the fields that only Helm
// writes. Their names do not identify Helm: a program that embeds Helm, such as Flux, uses its own name.
func helmManagers(i item) []string {
	found := map[string]bool{}
	if i.live != nil {
		for _, e := range k8s.Items(i.live.Body(), "metadata", "managedFields") {
			if isWrittenByHelm(e) {
				found[k8s.Text(e, "manager")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isWrittenByHelm reports whether an entry of managedFields has an annotation that Helm sets on all objects of
// a release.
func isWrittenByHelm(entry map[string]any) bool {
	for key := range k8s.Map(entry, "fieldsV1", "f:metadata", "f:annotations") {
		if strings.HasPrefix(key, "f:meta.helm.sh/release-") {
			return true
		}
	}
	return false
}

// Records returns Helm's release records that the plan deletes in the steps of a namespace. The key is the
// namespace and the name of the release.
func (p *Plan) Records(namespace string) map[[2]string][]k8s.Ref {
	out := map[[2]string][]k8s.Ref{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if name := snapshot.ReleaseOf(a.Object.Key()); a.Do == Delete && s.Namespace == namespace && name != "" {
				at := [2]string{a.Object.Namespace, name}
				out[at] = append(out[at], a.Object)
			}
		}
	}
	return out
}

// takesFrom reports whether a transfer-fields action takes the fields in an entry of managedFields.
func (a Action) takesFrom(entry map[string]any) bool {
	if a.Managers == nil {
		return IsWrittenByOLM(entry)
	}
	return slices.Contains(a.Managers, k8s.Text(entry, "manager")) && k8s.Text(entry, "subresource") == ""
}

func suspendFault(_ *Plan, _ StepKind, a Action) string {
	if !a.Object.Key().Is("HelmRelease." + snapshot.FluxGroup) {
		return "only HelmReleases are suspended"
	}
	return ""
}

func isSuspended(_ *Plan, a Action, o k8s.Object) (done, known bool) {
	return k8s.True(o, "spec", "suspend") == (a.Do == SuspendRelease), !isGone(a, o)
}

func isSuspendSettled(t Attempt) (bool, error) {
	if t.Live == nil && t.Do == ResumeRelease {
		return true, nil // its declaration was removed
	}
	done, _ := isSuspended(t.Plan, t.Action, t.Live)
	return done, t.checkSame()
}

func suspendRelease(t Attempt) (q Request, more bool) {
	suspend := any(nil)
	if t.Do == SuspendRelease {
		suspend = true
	}
	return mergePatch(map[string]any{"metadata": map[string]any{"uid": t.liveText("uid")}, "spec": map[string]any{"suspend": suspend}}), false
}

func undoSuspend(a Action, _ ExecutedAction, _ k8s.Object) (Action, bool) {
	a.Do = ResumeRelease
	return a, true
}

// undoDelete returns an action that creates a deleted release record of Helm again. Other deletions cannot be
// undone.
func undoDelete(a Action, _ ExecutedAction, _ k8s.Object) (Action, bool) {
	if !snapshot.IsReleaseRecord(a.Object.Key()) {
		return Action{}, false
	}
	return Action{Do: Create, Object: a.Object, UID: a.UID}, true
}

// newRecord returns a Secret to create, made from its backup.
func newRecord(backup k8s.Object) k8s.Object {
	meta := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if v := k8s.At(backup, "metadata", key); v != nil {
			meta[key] = v
		}
	}
	return k8s.With(backup, any(meta), "metadata")
}

// addRecordSteps adds the step that creates the deleted release Secrets of Helm again.
func (m *revertBuilder) addRecordSteps(at *executedPart) {
	s := Step{Name: Records, Namespace: at.namespace, Title: "Restore Helm's records" + inNamespace(at), Actions: at.records}
	for _, a := range at.records {
		if backup := m.Before[a.Object]; backup != nil {
			m.result.Objects[a.Object] = newRecord(backup)
		}
	}
	if len(s.Actions) > 0 {
		m.addStep(s)
	}
}

func (m *revertBuilder) addResumeStep(at *executedPart) {
	if len(at.suspended) > 0 {
		m.addStep(Step{Name: Resume, Namespace: at.namespace, Title: "Resume the HelmReleases" + inNamespace(at), Actions: at.suspended})
	}
}
