package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// controllers returns OLM's two controllers in the cluster; none where one of them
// cannot be found.
func (m *maker) controllers() []Workload {
	out := []Workload{}
	for _, name := range []string{"catalog-operator", "olm-operator"} {
		for _, o := range m.Snapshot.Kind("apps", "Deployment") {
			if o.Name != name || o.Labels["app"] != name {
				continue
			}
			replicas, ok := kobj.At(o.Body(), "spec", "replicas").(int64)
			if !ok {
				replicas = 1
			}
			a := m.on(Scale, item{Object: adopt.Object{Group: o.Group, Kind: o.Kind}, live: o})
			out = append(out, Workload{Object: a.Object, UID: a.UID, Replicas: replicas})
		}
	}
	if len(out) != 2 || out[0].Object.Namespace != out[1].Object.Namespace {
		return []Workload{}
	}
	return out
}

func (m *maker) workloads() []kobj.Ref {
	var out []kobj.Ref
	for _, w := range m.plan.OLM {
		out = append(out, w.Object)
	}
	return out
}

// stop stops OLM's controllers; a person does where they are not in the cluster.
func (m *maker) stop(b *block) {
	s := Step{
		Name: Stop, Namespace: b.namespace, Title: "Stop OLM's controllers",
		Before: append(m.healthy(b), Check{Check: SameVersion}),
	}
	if len(m.plan.OLM) == 0 {
		s.Manual = "Stop OLM's controllers, olm-operator and catalog-operator, which are not among what was read of the cluster (on hosted control planes they run elsewhere), and wait until no pod of theirs is left."
	}
	for _, w := range m.plan.OLM {
		s.Actions = append(s.Actions, Action{Do: Scale, Object: w.Object, UID: w.UID, From: w.Replicas, To: 0})
	}
	if len(m.plan.OLM) > 0 {
		s.After = []Check{{Check: IsStopped, Objects: m.workloads()}}
	}
	m.step(s)
}

// start starts OLM's controllers again.
func (m *maker) start(b *block) {
	s := Step{Name: Start, Namespace: b.namespace, Title: "Start OLM's controllers again", After: m.same(b)}
	if len(m.plan.OLM) == 0 {
		s.Manual = "Start OLM's controllers again, with the replicas that they had."
	} else {
		s.After = append([]Check{{Check: IsReady, Objects: m.workloads()}}, s.After...)
	}
	for _, w := range m.plan.OLM {
		s.Actions = append(s.Actions, Action{Do: Scale, Object: w.Object, UID: w.UID, From: 0, To: w.Replicas})
	}
	m.step(s)
}

// openShift reports whether the cluster is one of OpenShift, whose version operator
// keeps OLM running.
func (m *maker) openShift() bool {
	return m.Snapshot.Get(kobj.Key{Group: "config.openshift.io", Kind: "ClusterVersion", Name: "version"}) != nil
}

// stops reports whether some step of the plan stops OLM.
func (m *maker) stops() bool {
	return m.plan.Mode == Stopped && slices.ContainsFunc(m.blocks, func(b *block) bool { return len(b.detached()) > 0 })
}

// unmanage has a person keep OpenShift's version operator from starting OLM again.
func (m *maker) unmanage() {
	if !m.stops() || !m.openShift() {
		return
	}
	var overrides []string
	namespace := "openshift-operator-lifecycle-manager"
	for _, name := range []string{"catalog-operator", "olm-operator"} {
		overrides = append(overrides, fmt.Sprintf(`{"kind":"Deployment","group":"apps","namespace":%q,"name":%q,"unmanaged":true}`, namespace, name))
	}
	m.step(Step{
		Name: Stop, Title: "Keep OpenShift's version operator from starting OLM again",
		Manual: "OpenShift's version operator starts OLM again while it is stopped. Add these to spec.overrides of the ClusterVersion, beside those that are there: " +
			strings.Join(overrides, ", ") + " (oc edit clusterversion version). The cluster cannot be upgraded meanwhile.",
	})
}

// manageAgain has a person undo that.
func (m *maker) manageAgain() {
	if !m.stops() || !m.openShift() {
		return
	}
	m.step(Step{
		Name: Start, Title: "Let OpenShift's version operator manage OLM again",
		Manual: "Remove what was added to spec.overrides of the ClusterVersion (oc edit clusterversion version).",
	})
}

// uninstall tells what to do about OLM when nothing of it is in use any more. On
// OpenShift it is part of the platform and stays.
func (m *maker) uninstall() {
	if !slices.ContainsFunc(m.blocks, func(b *block) bool { return !b.sheds }) || m.openShift() {
		return
	}
	for _, csv := range m.Snapshot.CSVs() {
		if csv.CopiedFrom == "" && csv.Name != snapshot.Packageserver && !m.leaves(csv.Key) {
			return
		}
	}
	m.step(Step{
		Name: Uninstall, Title: "Uninstall OLM, or leave it without operators",
		Manual: "No operator is OLM's any more, as far as this plan knows. To uninstall it, see first that 'kubectl get clusterserviceversions -A' has no more than packageserver. Then delete OLM's Deployments, the APIService v1.packages.operators.coreos.com and the ClusterServiceVersion packageserver, and OLM's definitions. Leave operatorconditions.operators.coreos.com: with it would go the OperatorConditions of the operators, which the tree has." + m.watched(),
	})
}

// watched names the definitions without which operators do not start.
func (m *maker) watched() string {
	var names []string
	for _, op := range adopt.DiagnoseTree(m.Lock, m.Rendered).Operators {
		names = append(names, op.Definitions...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return ""
	}
	return " Leave too, for operators watch them and may not start without: " + strings.Join(names, ", ") + " (quayside adopt check says which operators)."
}

// leaves reports whether a ClusterServiceVersion goes with the plan.
func (m *maker) leaves(csv kobj.Key) bool {
	return slices.ContainsFunc(m.blocks, func(b *block) bool {
		return slices.ContainsFunc(b.detached(), func(i item) bool { return i.Key() == csv && i.Is(snapshot.OLM, "ClusterServiceVersion") })
	})
}
