package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// addSteps adds all steps. The first steps detach the operators of all namespaces, while OLM is stopped once.
// The other steps do not need a stopped OLM.
func (m *planBuilder) addSteps() {
	if m.plan.IsForReleases() {
		for _, b := range m.blocks {
			m.addReleaseSteps(b)
		}
		return
	}
	isForExtensions := len(m.extensionBlocks()) > 0
	if m.plan.OLM = m.findControllers(); isForExtensions {
		m.plan.OLM = m.findExtensionController()
	}
	m.addUnmanageStep()
	leaving := slices.DeleteFunc(slices.Clone(m.blocks), func(b *block) bool { return b.hasLeftovers })
	for _, b := range leaving {
		m.addGuardSteps(b)
		m.addPrepareStep(b, append(b.addedItems(true), b.addedItems(false)...))
	}
	if m.stopsOLM() {
		m.addStopStep(leaving)
	}
	for _, b := range leaving {
		m.addBackupStep(b)
	}
	for _, b := range leaving {
		m.addDetachStep(b, b.detachedItems())
		m.addApplyStep(b)
	}
	if m.stopsOLM() {
		m.addStartStep(leaving)
	}
	if !isForExtensions { // OLM v1 keeps no state over a restart
		m.addRestartStep(leaving)
	}
	m.addManageStep()
	for _, b := range leaving {
		if !isForExtensions {
			m.addTransferStep(b)
		}
		m.addCleanUpStep(b)
	}
	for _, b := range m.blocks[len(leaving):] {
		m.addLeftoverSteps(b)
	}
	for _, b := range m.blocks {
		m.addCertificatesStep(b)
	}
	m.addUninstallStep()
}

// addStep adds a step, unless the step has neither actions nor a manual instruction.
func (m *planBuilder) addStep(s Step) {
	if s.Manual == "" && len(s.Actions) == 0 {
		return
	}
	s.Number = len(m.plan.Steps) + 1
	m.plan.Steps = append(m.plan.Steps, s)
}

// addBackupStep adds the step that backs up the objects of a block.
func (m *planBuilder) addBackupStep(b *block) {
	s := Step{
		Name: Backup, Namespace: b.namespace, Title: "Back up OLM's objects of " + b.namespace + ", and the objects to change, to files",
		Actions: actionsFor(Save, b.backedUpItems()),
	}
	if b.isInstalled() {
		s.Before = append(m.stoppedChecks(), Check{Check: SameVersion}) // fails if the objects were changed before OLM was stopped
	}
	m.addStep(s)
}

// stoppedChecks returns the check for stopped controllers, or nil if the plan does not stop OLM.
func (m *planBuilder) stoppedChecks() []Check {
	if m.Mode != Stopped || len(m.plan.OLM) == 0 {
		return nil
	}
	return []Check{{Check: IsStopped, Objects: m.plan.ControllerRefs()}}
}

func actionsFor(do Verb, items []item) []Action {
	var out []Action
	for _, i := range items {
		out = append(out, newAction(do, i))
	}
	return out
}

// newAction returns an action on the live object of an item.
func newAction(do Verb, i item) Action {
	a := Action{Do: do, Object: i.ref()}
	if i.live != nil {
		a.UID = i.live.UID
	}
	return a
}

func (b *block) itemsWhere(is func(item) bool) []item {
	var out []item
	for _, i := range b.items {
		if is(i) {
			out = append(out, i)
		}
	}
	return out
}

// existingItems returns the items that are both in the cluster and in the tree.
func (b *block) existingItems() []item {
	return b.itemsWhere(func(i item) bool { return i.live != nil && i.ours != nil })
}

// detachedItems returns the objects that must be deleted to detach the operators from OLM, in deletion order.
// Subscriptions come first. Then, for each operator, its ClusterServiceVersion comes before the copies.
func (b *block) detachedItems() []item {
	all := b.itemsWhere(func(i item) bool { return i.RemovedAt == adopt.AtDetach })
	turn := func(i item) int {
		switch {
		case i.Kind == "Subscription", i.Group == k8s.OLMv1Group && i.Kind != "ClusterExtension":
			return 0 // revisions come before the ClusterExtension that owns them
		}
		for n, op := range b.operators {
			if i.Name == op.CSV && (i.Namespace == op.Namespace || i.live.Labels[snapshot.CopiedFrom] == op.Namespace) {
				return n + 1
			}
		}
		return len(b.operators) + 1
	}
	slices.SortStableFunc(all, func(x, y item) int {
		return cmp.Or(cmp.Compare(turn(x), turn(y)), strings.Compare(x.Name, y.Name), compareBool(isCopy(x.live), isCopy(y.live)))
	})
	return all
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func isCopy(o *snapshot.LiveObject) bool { return o.Labels[snapshot.CopiedFrom] != "" }

// needsGuard reports whether a GitOps tool could delete an object once its declaration is removed from Git.
func (b *block) needsGuard(i item) bool {
	return i.live != nil && !isCopy(i.live) && i.Is("Subscription."+k8s.OLMGroup, "OperatorGroup."+k8s.OLMGroup, "ClusterExtension."+k8s.OLMv1Group)
}

// backedUpItems returns the items to back up: those to be deleted, and those that the tree or the garbage
// collector changes. It omits copies of ClusterServiceVersions, because OLM would create them again.
func (b *block) backedUpItems() []item {
	return b.itemsWhere(func(i item) bool {
		switch {
		case i.live == nil || b.needsGuard(i) || isCopy(i.live) || i.Is("Namespace"):
			return false
		case i.ours != nil || i.RemovedAt == adopt.AtDetach || i.RemovedAt == adopt.AtCleanUp:
			return true
		}
		return slices.ContainsFunc(i.live.Owners, func(o snapshot.Owner) bool {
			return o.Kind == "ClusterServiceVersion" || snapshot.IsOwnerInOLMv1(o.APIVersion, o.Kind)
		})
	})
}

// addGuardSteps adds a step that prevents GitOps tools from pruning objects whose declarations the adoption
// removes from Git. These are OLM's declarations, and the Namespace with everything in it.
func (m *planBuilder) addGuardSteps(b *block) {
	items := b.itemsWhere(b.needsGuard)
	for _, group := range m.Snapshot.Kind(k8s.OLMGroup, "OperatorGroup") {
		if group.Namespace == b.namespace && !slices.ContainsFunc(items, func(i item) bool { return i.live == group }) {
			items = append(items, newLiveItem(group))
		}
	}
	if namespace := m.Snapshot.Get(k8s.Key{Kind: "Namespace", Name: b.namespace}); namespace != nil {
		items = append(items, newLiveItem(namespace))
	}
	s := Step{
		Name: Guard, Namespace: b.namespace, Title: "Prevent GitOps tools from pruning the declarations of " + b.namespace + ", and the Namespace",
		Before: healthyChecks(b), Actions: actionsFor(Save, items),
	}
	for _, i := range items {
		a := newAction(Annotate, i)
		before, after := i.live.Body(), profile.Guard(i.live.Body())
		a.Set = k8s.TextMap(after, "metadata", "annotations")
		maps.DeleteFunc(a.Set, func(key, value string) bool { return k8s.Text(before, "metadata", "annotations", key) == value })
		if len(a.Set) > 0 {
			s.Actions = append(s.Actions, a)
		}
	}
	m.addStep(s)
	m.addSuspendStep(b, items)
}

// addSuspendStep adds a manual step to suspend the GitOps tools that would recreate OLM's objects.
func (m *planBuilder) addSuspendStep(b *block, items []item) {
	appliers := appliersOf(items, func(i item) bool { return i.Group == k8s.OLMGroup || i.Group == k8s.OLMv1Group })
	if appliers == "" || len(b.detachedItems()) == 0 {
		return
	}
	m.addStep(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend the GitOps tool that applies the declarations of " + b.namespace,
		Manual: "Suspend the GitOps tool that applies the " + b.declarationKinds() + " of namespace " + b.namespace + ", otherwise it recreates them after their deletion, and OLM installs again: " +
			appliers + ". Resume it when it has fetched the merged pull request that removes them from Git and adds the tree. Otherwise it applies the previous commit again.",
	})
}

// appliersOf returns the GitOps tools that apply the items for which selects returns true.
func appliersOf(items []item, selects func(item) bool) string {
	var out []string
	for _, i := range items {
		if by := profile.ApplierOf(i.live.Body()); by != "" && selects(i) && !slices.Contains(out, by) {
			out = append(out, by)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// healthyChecks returns checks for two conditions: OLM has no work left for the operators of a block, and
// nothing has changed since the plan was made.
func healthyChecks(b *block) []Check {
	if !b.isInstalled() {
		return nil
	}
	return append(succeededChecks(b), Check{Check: SameVersion})
}

// succeededChecks returns checks for the condition that OLM has no work left for the operators of the blocks.
func succeededChecks(blocks ...*block) []Check {
	var csvs, extensions []k8s.Ref
	for _, b := range blocks {
		csvs, extensions = append(csvs, b.installedCSVs()...), append(extensions, b.extensions()...)
	}
	switch {
	case len(extensions) > 0:
		return []Check{{Check: Installed, Objects: extensions}}
	case len(csvs) > 0:
		return []Check{{Check: Succeeded, Objects: csvs}, {Check: NoPlan}}
	}
	return nil
}

// isInstalled reports whether OLM or Helm manages the operators of a block.
func (b *block) isInstalled() bool {
	return len(b.installedCSVs())+len(b.extensions())+len(b.records()) > 0
}

// installedCSVs returns the ClusterServiceVersions, without copies, that the detach of a block
// deletes.
func (b *block) installedCSVs() []k8s.Ref {
	return itemRefs(b.itemsWhere(func(i item) bool {
		return i.Is("ClusterServiceVersion."+k8s.OLMGroup) && i.RemovedAt == adopt.AtDetach && !isCopy(i.live)
	}))
}

func itemRefs(items []item) []k8s.Ref {
	var out []k8s.Ref
	for _, i := range items {
		out = append(out, i.ref())
	}
	return out
}

// addPrepareStep adds a step that applies new objects of the tree. It omits objects that the cluster would
// reject, and that OLM could therefore not create either. New webhooks use OLM's certificates. Until OLM's
// webhooks are deleted, the API server calls both the old and the new webhooks.
func (m *planBuilder) addPrepareStep(b *block, added []item) {
	title := "Add the tree's objects with new names to " + b.namespace
	var applied []item
	for _, i := range added {
		if why := m.refused[i.Key]; why != "" {
			title += "; not " + i.String() + ", which the cluster would refuse: " + why
			continue
		}
		applied = append(applied, i)
	}
	m.addStep(Step{
		Name: Prepare, Namespace: b.namespace, Title: title,
		Before: healthyChecks(b), Actions: actionsFor(Apply, sortByPhase(applied)), After: []Check{{Check: Prepared}},
	})
}

// sortByPhase returns items in the order in which they are applied.
func sortByPhase(items []item) []item {
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(x, y item) int { return cmp.Compare(profile.Phase(x.ours), profile.Phase(y.ours)) })
	return out
}

// addDetachStep adds the step that detaches the operators of a block from OLM.
func (m *planBuilder) addDetachStep(b *block, detached []item) {
	s := Step{
		Name: Detach, Namespace: b.namespace, Title: "Make OLM forget the operators of " + b.namespace + ": " + b.packageNames(),
		Before: append(healthyChecks(b), m.stoppedChecks()...), After: append([]Check{{Check: Deleted, Objects: itemRefs(detached)}}, unchangedChecks(b)...),
	}
	disown := disownActions(b)
	s.Actions = append(s.Actions, disown...)
	s.Actions = append(s.Actions, releaseActions(b)...)
	for _, i := range detached {
		s.Actions = append(s.Actions, finalizerActions(i)...)
		if i.Kind == "ClusterServiceVersion" && !isCopy(i.live) {
			a := newAction(Unfinalize, i)
			if a.Finalizer = finalizer; m.Mode == Live {
				a.Unset = operatorAnnotations()
			}
			s.Actions = append(s.Actions, a)
		}
		s.Actions = append(s.Actions, newAction(Orphan, i))
	}
	if m.Mode == Live {
		s.Actions = append(s.Actions, disown...) // OLM may have set the labels again
		s.Actions = append(s.Actions, actionsFor(Delete, b.itemsWhere(func(i item) bool { return i.ours != nil && i.live != nil && isLostInLiveMode(i.ClassifiedObject) }))...)
	}
	m.addStep(s)
}

// disownActions returns actions that remove OLM's owner labels from APIServices. OLM would delete an APIService
// when the ClusterServiceVersion in its labels is missing.
func disownActions(b *block) []Action {
	if len(b.installedCSVs()) == 0 {
		return nil
	}
	var out []Action
	for _, i := range b.itemsWhere(func(i item) bool { return i.Is("APIService."+k8s.APIServiceGroup) && i.live != nil }) {
		a := newAction(Unlabel, i)
		for _, key := range ownerLabels() {
			if _, ok := i.live.Labels[key]; ok {
				a.Unset = append(a.Unset, key)
			}
		}
		if len(a.Unset) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// ownerLabels returns the labels in which OLM records the owner of a cluster-scoped object.
func ownerLabels() []string { return []string{"olm.owner", "olm.owner.kind", "olm.owner.namespace"} }

// operatorAnnotations returns the annotations in which OLM records the OperatorGroup of a
// ClusterServiceVersion.
func operatorAnnotations() []string {
	return []string{"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"}
}

// finalizer is OLM's finalizer on ClusterServiceVersions.
const finalizer = "operators.coreos.com/csv-cleanup"

// isLostInLiveMode reports whether an object is lost if OLM runs during the detach. This happens to
// OperatorConditions: OLM makes the ClusterServiceVersion their owner again, and they are deleted together with
// it.
func isLostInLiveMode(o adopt.ClassifiedObject) bool {
	return o.Group == k8s.OLMGroup && o.Kind == "OperatorCondition"
}

func (b *block) packageNames() string {
	var out []string
	for _, op := range b.operators {
		out = append(out, op.Package)
	}
	return strings.Join(out, ", ")
}

// unchangedChecks returns checks that the workloads are unchanged. If the tree has another version of an
// operator, permissions and conversions may differ, and unchangedChecks omits their checks.
func unchangedChecks(blocks ...*block) []Check {
	if slices.ContainsFunc(blocks, func(b *block) bool { return b.hasLeftovers && slices.ContainsFunc(b.items, isUpgraded) }) {
		return []Check{{Check: SameUID}, {Check: NoOwner}, {Check: Available}, {Check: NoRestart}}
	}
	return []Check{{Check: SameUID}, {Check: NoOwner}, {Check: Conversion}, {Check: Available}, {Check: Permissions}, {Check: NoRestart}}
}

// addApplyStep adds the step that applies the tree's objects that exist in the cluster.
func (m *planBuilder) addApplyStep(b *block) {
	m.addStep(Step{
		Name: Tree, Namespace: b.namespace, Title: "Apply the rest of the tree to " + b.namespace,
		Actions: m.applyActions(b.existingItems()), After: readyChecks(b),
	})
}

// readyChecks returns checks that the workloads are unchanged and that all pods are ready.
func readyChecks(b *block) []Check {
	deployments := itemRefs(b.itemsWhere(func(i item) bool { return i.Is("Deployment.apps") && i.live != nil && i.ours != nil }))
	if len(deployments) == 0 {
		return unchangedChecks(b)
	}
	return append([]Check{{Check: IsReady, Objects: deployments}}, unchangedChecks(b)...)
}

// applyActions returns the actions that apply items. The items must exist in the cluster.
func (m *planBuilder) applyActions(items []item) []Action {
	var out []Action
	for _, i := range sortByPhase(items) {
		a := newApplyAction(i)
		if m.Mode == Live && isLostInLiveMode(i.ClassifiedObject) {
			a.UID = "" // the detach step deletes the object: apply creates it again
		}
		out = append(out, a)
	}
	return out
}

// newApplyAction returns an action that applies an existing object. If a GitOps tool currently applies the
// object from other files, the action also sets the annotations that prevent pruning. They stay until the tool
// applies the tree. Without them, a user might confirm the deletion of the object when the merge removes it
// from the other files.
func newApplyAction(i item) Action {
	a := newAction(Apply, i)
	a.Force = true
	if profile.ApplierOf(i.live.Body()) == "" {
		return a
	}
	for key, value := range k8s.TextMap(profile.Guard(i.ours), "metadata", "annotations") {
		if was := k8s.Text(i.ours, "metadata", "annotations", key); was != "" && was != value {
			if a.Set == nil {
				a.Set = map[string]string{}
			}
			a.Set[key] = value
		}
	}
	return a
}

// addTransferStep adds a step that makes the plan's manager the owner of OLM's fields. The step covers
// operators whose pods the tree restarts anyway. It omits CRDs and APIServices, because they would lose their
// CA.
func (m *planBuilder) addTransferStep(b *block) {
	restarts := map[string]bool{}
	for _, op := range m.plan.Operators {
		if op.Namespace == b.namespace && len(op.Restarts) > 0 {
			restarts[op.Package] = true
		}
	}
	var items []item
	for _, op := range b.operators {
		for _, o := range op.Objects {
			if i := m.newItem(o); restarts[op.Package] && i.live != nil && i.ours != nil && !k8s.IsCRD(i.ours) && !i.Is("APIService."+k8s.APIServiceGroup) {
				items = append(items, i)
			}
		}
	}
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take ownership of OLM's fields in " + b.namespace + ", for operators that restarted: " + strings.Join(slices.Sorted(maps.Keys(restarts)), ", "),
		After: unchangedChecks(b),
	}
	for _, i := range sortByPhase(items) {
		if m.Mode == Live && isLostInLiveMode(i.ClassifiedObject) {
			continue
		}
		s.Actions = append(s.Actions, newAction(TransferFields, i), newApplyAction(i))
	}
	m.addStep(s)
}

// addCertificatesStep adds a manual step to replace the certificates that OLM issued in a namespace before they
// expire.
func (m *planBuilder) addCertificatesStep(b *block) {
	first := ""
	var of []string
	for _, op := range m.plan.Operators {
		if op.Namespace == b.namespace && op.Certificates != "" {
			of = append(of, op.Package+" ("+op.Certificates+")")
			if first == "" || op.Certificates < first {
				first = op.Certificates
			}
		}
	}
	if first == "" {
		return
	}
	m.addStep(Step{
		Name: Certificates, Namespace: b.namespace, Title: "Replace OLM's certificates in " + b.namespace + " before " + first,
		Manual: fmt.Sprintf("OLM issued the certificates of %s, and they are no longer renewed: before %s, upgrade these operators or run 'quayside adopt run --finish', render and merge, to have the provider of spec.certificates issue them. Confirm that you have noted this.", strings.Join(of, ", "), first),
	})
}
