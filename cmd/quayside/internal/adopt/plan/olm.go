package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// findControllers returns the Deployments of OLM's two controllers. It returns none if there are not exactly
// two, both in one namespace.
func (m *facts) findControllers() []Workload {
	out := append(m.deploymentsNamed("catalog-operator", "catalog-operator"), m.deploymentsNamed("olm-operator", "olm-operator")...)
	if len(out) != 2 || out[0].Object.Namespace != out[1].Object.Namespace {
		return []Workload{}
	}
	return out
}

// deploymentsNamed returns the Deployments with a name, in all namespaces. If the argument app is not empty,
// the label app must have this value.
func (m *facts) deploymentsNamed(name, app string) []Workload {
	out := []Workload{}
	for _, o := range m.Snapshot.Kind("apps", "Deployment") {
		if o.Name == name && (app == "" || o.Labels["app"] == app) {
			out = append(out, Workload{Object: refToLive(o), UID: o.UID, Replicas: Replicas(o.Body())})
		}
	}
	return out
}

// ControllerRefs returns the Deployments of OLM's controllers.
func (p *Plan) ControllerRefs() []k8s.Ref {
	var out []k8s.Ref
	for _, w := range p.OLM {
		out = append(out, w.Object)
	}
	return out
}

// addStopStep adds the step that stops OLM's controllers for all blocks.
func (m *planBuilder) addStopStep(blocks []*block) {
	m.addControllerStep(Step{Name: Stop, Title: "Stop OLM's controllers", Before: append(succeededChecks(blocks...), Check{Check: SameVersion})}, IsStopped,
		"Stop OLM's controllers, "+controllerNames(blocks)+", which were not found in the cluster (on hosted control planes they run elsewhere), and wait until none of their pods is left.",
		func(w Workload) Action { return Action{Do: Scale, From: w.Replicas, To: 0} })
}

// addStartStep adds the step that starts OLM's controllers again.
func (m *planBuilder) addStartStep(blocks []*block) {
	m.addControllerStep(Step{Name: Start, Title: "Start OLM's controllers again", After: unchangedChecks(blocks...)}, IsReady,
		"Start OLM's controllers again, with their previous replicas.",
		func(w Workload) Action { return Action{Do: Scale, From: 0, To: w.Replicas} })
}

// addRestartStep adds the step that restarts OLM's controllers once, if the plan detaches operators. OLM
// deletes some objects when it starts. The step shows, at a planned time, that the operators survive a restart
// of OLM.
func (m *planBuilder) addRestartStep(blocks []*block) {
	if !slices.ContainsFunc(blocks, func(b *block) bool { return len(b.detachedItems()) > 0 }) {
		return
	}
	m.addControllerStep(Step{Name: Restart, Title: "Restart OLM's controllers once, and check that the operators are unchanged", After: unchangedChecks(blocks...)}, IsReady,
		"Restart OLM's controllers, "+controllerNames(blocks)+", and wait until their new pods are ready.",
		func(Workload) Action { return Action{Do: RestartPods} })
}

// addControllerStep adds a step with one action for each of OLM's controllers, and a postcondition. If the
// controllers were not found in the cluster, the step is manual.
func (m *planBuilder) addControllerStep(s Step, is Condition, manual string, action func(Workload) Action) {
	if len(m.plan.OLM) == 0 {
		s.Manual = manual
	} else {
		s.After = append([]Check{{Check: is, Objects: m.plan.ControllerRefs()}}, s.After...)
	}
	for _, w := range m.plan.OLM {
		a := action(w)
		a.Object, a.UID = w.Object, w.UID
		s.Actions = append(s.Actions, a)
	}
	m.addStep(s)
}

// isOpenShift reports whether the cluster is OpenShift. Its version operator starts OLM again if the plan stops
// OLM.
func (m *facts) isOpenShift() bool {
	return m.Snapshot.Get(k8s.Key{Group: "config.openshift.io", Kind: "ClusterVersion", Name: "version"}) != nil
}

// stopsOLM reports whether any step of the plan stops OLM.
func (m *planBuilder) stopsOLM() bool {
	return m.Mode == Stopped && slices.ContainsFunc(m.blocks, func(b *block) bool { return len(b.detachedItems()) > 0 })
}

// addUnmanageStep adds a manual step that prevents OpenShift's version operator from starting OLM again.
func (m *planBuilder) addUnmanageStep() {
	if !m.stopsOLM() || !m.isOpenShift() {
		return
	}
	var overrides []string
	namespace := "openshift-operator-lifecycle-manager"
	for _, name := range []string{"catalog-operator", "olm-operator"} {
		overrides = append(overrides, fmt.Sprintf(`{"kind":"Deployment","group":"apps","namespace":%q,"name":%q,"unmanaged":true}`, namespace, name))
	}
	m.addStep(Step{
		Name: Stop, Title: "Prevent OpenShift's version operator from starting OLM again",
		Manual: "OpenShift's version operator would start OLM again. Add these to spec.overrides of the ClusterVersion: " +
			strings.Join(overrides, ", ") + " (oc edit clusterversion version). The cluster cannot be upgraded meanwhile.",
	})
}

// addManageStep adds a manual step that undoes the step of addUnmanageStep.
func (m *planBuilder) addManageStep() {
	if !m.stopsOLM() || !m.isOpenShift() {
		return
	}
	m.addStep(Step{
		Name: Start, Title: "Let OpenShift's version operator manage OLM again",
		Manual: "Remove the added entries from spec.overrides of the ClusterVersion (oc edit clusterversion version).",
	})
}

// addUninstallStep adds a manual step to uninstall OLM if the plan adopts OLM's last operators. On OpenShift,
// it adds no step, because OLM is part of the platform.
func (m *planBuilder) addUninstallStep() {
	if !slices.ContainsFunc(m.blocks, func(b *block) bool { return !b.hasLeftovers && !b.hasExtension() }) || m.isOpenShift() {
		return
	}
	for _, csv := range m.Snapshot.CSVs() {
		if csv.CopiedFrom == "" && csv.Name != snapshot.Packageserver && !m.removesCSV(csv.Key) {
			return
		}
	}
	m.addStep(Step{
		Name: Uninstall, Title: "Uninstall OLM, or leave it without operators",
		Manual: "OLM manages no operator of this plan any more. After the clean-up, 'quayside adopt uninstall-olm' checks that nothing needs OLM, and writes the plan that deletes it: do not delete OLM's CRDs yourself, because the tree has objects of their kinds. Confirm that you have noted this.",
	})
}

// removesCSV reports whether the plan deletes a ClusterServiceVersion.
func (m *selection) removesCSV(csv k8s.Key) bool {
	return slices.ContainsFunc(m.blocks, func(b *block) bool {
		return slices.ContainsFunc(b.detachedItems(), func(i item) bool { return i.Key == csv })
	})
}
