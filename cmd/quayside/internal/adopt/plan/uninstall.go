package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/render/needs"
)

// packagesAPI is the APIService of OLM's packageserver.
const packagesAPI = "v1.packages." + k8s.OLMGroup

// NeededError is returned if OLM cannot be uninstalled. By lists the operators and objects that need OLM.
type NeededError struct{ By []string }

// Error lists the operators and objects that need OLM.
func (e *NeededError) Error() string {
	return "OLM is still needed: " + strings.Join(e.By, "; ") + ": adopt or uninstall these operators first ('quayside adopt plan', 'quayside adopt check')"
}

// IsReadForUninstall reports whether MakeUninstall needs the objects of a kind.
func IsReadForUninstall(group, kind string) bool {
	return group != "" || kind != "Secret" && kind != "ConfigMap"
}

// MakeUninstall returns the plan for uninstalling OLM. If crds is true, the plan also deletes OLM's CRDs that
// have no custom resources. If OLM is still needed, the error is a *NeededError. MakeUninstall does not use
// in.Report, and does not modify its input.
func MakeUninstall(in Input, crds bool) (*Plan, error) {
	in.Mode = Removal
	f, err := newFacts(in)
	if err != nil {
		return nil, err
	}
	m := newBuilder(&selection{facts: f, planned: []Operator{}, skipped: []SkippedOperator{}})
	if m.plan.OLM = m.findControllers(); len(m.plan.OLM) == 0 || m.isOpenShift() {
		return nil, errors.New("the Deployments olm-operator and catalog-operator were not found, or OLM is part of the platform (OpenShift): OLM cannot be uninstalled")
	}
	diagnosis := adopt.DiagnoseTree(m.Lock, m.Rendered)
	if by := usesOfOLM(m.Snapshot, diagnosis); len(by) > 0 {
		return nil, &NeededError{by}
	}
	namespace := m.plan.OLM[0].Object.Namespace
	declarations, programs := olmDeclarations(m.Snapshot), m.olmPrograms(namespace)
	deleted := append(slices.Clone(declarations), programs...)
	var definitions []*snapshot.LiveObject
	kept := ""
	for _, crd := range olmCRDs(m.Snapshot) {
		switch why := m.keepReason(crd, diagnosis, deleted); {
		case !crds:
		case why != "":
			kept += " " + crd.Name + " stays: " + why + "."
		default:
			definitions = append(definitions, crd)
		}
	}
	m.addReleaseStep(append(slices.Clone(deleted), definitions...))
	m.addStep(Step{Name: Backup, Title: "Back up OLM's objects to files", Actions: actionsFor(Save, liveItems(append(slices.Clone(deleted), definitions...)))})
	m.addDeleteStep("Delete OLM's declarations and packageserver", declarations,
		Check{Check: IsReady, Objects: m.plan.ControllerRefs()}, Check{Check: IsUnused, Objects: []k8s.Ref{olmCRD("clusterserviceversions"), olmCRD("subscriptions")}})
	m.addDeleteStep("Delete OLM's programs and permissions", programs)
	m.addDeleteStep("Delete OLM's CRDs", definitions, Check{Check: IsUnused, Objects: itemRefs(liveItems(definitions))})
	m.addStep(Step{
		Name: Uninstall, Title: "Delete the namespace of OLM",
		Manual: "Delete the Namespace " + namespace + ", and others that were created for OLM, if they contain nothing else that you need ('kubectl get all,configmaps,secrets -n " + namespace + "')." + kept,
	})
	return m.result()
}

// DeletesCRDs reports whether the plan deletes CRDs.
func (p *Plan) DeletesCRDs() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Actions, func(a Action) bool { return a.Object.Kind == "CustomResourceDefinition" })
	})
}

// usesOfOLM returns the operators and declarations that need OLM.
func usesOfOLM(s *snapshot.Snapshot, d *adopt.Diagnosis) []string {
	var out []string
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" && csv.Name != snapshot.Packageserver {
			out = append(out, "ClusterServiceVersion "+csv.Namespace+"/"+csv.Name)
		}
	}
	for _, o := range s.Kind(k8s.OLMGroup, "Subscription") {
		out = append(out, "Subscription "+o.Namespace+"/"+o.Name)
	}
	for _, op := range d.Operators {
		if op.NeedsOLM == needs.NeedsOLM {
			out = append(out, "operator "+op.Key()+" of the lock")
		}
	}
	return out
}

// olmDeclarations returns packageserver and the objects of OLM's kinds. Without operators, these objects have
// no effect. They are deleted first, because OLM must still run to remove their finalizers.
func olmDeclarations(s *snapshot.Snapshot) []*snapshot.LiveObject {
	var out []*snapshot.LiveObject
	for _, csv := range s.Kind(k8s.OLMGroup, "ClusterServiceVersion") {
		if !isCopy(csv) {
			out = append(out, csv)
		}
	}
	for _, kind := range []string{"InstallPlan", "CatalogSource", "OperatorGroup", "OLMConfig"} {
		out = append(out, s.Kind(k8s.OLMGroup, kind)...)
	}
	return out
}

// olmPrograms returns the objects that OLM itself consists of: Deployments, their Services, ServiceAccounts and
// permissions, the API of packageserver, and other objects that OLM created for itself.
func (m *facts) olmPrograms(namespace string) []*snapshot.LiveObject {
	names := programNames()
	accounts := map[string]bool{}
	var out []*snapshot.LiveObject
	add := func(group, kind string, is func(*snapshot.LiveObject) bool) {
		for _, o := range m.Snapshot.Kind(group, kind) {
			if is(o) {
				out = append(out, o)
			}
		}
	}
	add("apiregistration.k8s.io", "APIService", func(o *snapshot.LiveObject) bool { return o.Name == packagesAPI })
	add("apps", "Deployment", func(o *snapshot.LiveObject) bool {
		mine := o.Namespace == namespace && slices.Contains(names, o.Name)
		if mine {
			accounts[cmp.Or(k8s.Text(o.Body(), "spec", "template", "spec", "serviceAccountName"), "default")] = true
		}
		return mine
	})
	add("", "Service", func(o *snapshot.LiveObject) bool {
		return o.Namespace == namespace && slices.Contains(names, k8s.Text(o.Body(), "spec", "selector", "app"))
	})
	add("", "ServiceAccount", func(o *snapshot.LiveObject) bool {
		return o.Namespace == namespace && o.Name != "default" && accounts[o.Name]
	})
	roles := map[k8s.Key]bool{} // whether a role is bound only to OLM's own accounts
	binding := func(o *snapshot.LiveObject) bool {
		body := o.Body()
		subjects := k8s.Items(body, "subjects")
		mine := len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s map[string]any) bool {
			return k8s.Text(s, "kind") != "ServiceAccount" || k8s.Text(s, "namespace") != namespace || !accounts[k8s.Text(s, "name")]
		})
		role := k8s.BoundRole(body)
		others, seen := roles[role]
		roles[role] = mine && (!seen || others)
		return mine
	}
	add(k8s.RBACGroup, "ClusterRoleBinding", binding)
	add(k8s.RBACGroup, "RoleBinding", binding)
	role := func(o *snapshot.LiveObject) bool {
		_, isDefault := o.Labels["kubernetes.io/bootstrapping"]
		ours := m.tree[o.Key] != nil || o.Labels[k8s.LabelManagedBy] == k8s.Manager
		return !isDefault && !ours && (roles[o.Key] || isRoleOfOLM(o))
	}
	add(k8s.RBACGroup, "ClusterRole", role)
	add(k8s.RBACGroup, "Role", role)
	add(k8s.OLMGroup, "Operator", func(*snapshot.LiveObject) bool { return true })
	return out
}

// isRoleOfOLM reports whether a role is part of OLM's manifests, or was created by OLM for packageserver or an
// OperatorGroup.
func isRoleOfOLM(o *snapshot.LiveObject) bool {
	return o.Name == "aggregate-olm-edit" || o.Name == "aggregate-olm-view" || o.Labels["olm.owner.kind"] == "OperatorGroup" || o.Labels["olm.owner"] == snapshot.Packageserver ||
		slices.ContainsFunc(o.Owners, func(by snapshot.Owner) bool { return by.Name == packagesAPI })
}

func olmCRDs(s *snapshot.Snapshot) []*snapshot.LiveObject {
	return slices.DeleteFunc(s.Kind(k8s.CRDGroup, "CustomResourceDefinition"), func(o *snapshot.LiveObject) bool { return !isOLMCRD(o.Name) })
}

func isOLMCRD(name string) bool {
	plural, ok := strings.CutSuffix(name, "."+k8s.OLMGroup)
	return ok && slices.Contains([]string{"catalogsources", "clusterserviceversions", "installplans", "olmconfigs", "operatorconditions", "operatorgroups", "operators", "subscriptions"}, plural)
}

func olmCRD(plural string) k8s.Ref {
	return k8s.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: plural + "." + k8s.OLMGroup}
}

// keepReason returns the reason why a CRD of OLM cannot be deleted, or "".
func (m *facts) keepReason(crd *snapshot.LiveObject, d *adopt.Diagnosis, deleted []*snapshot.LiveObject) string {
	if m.tree[crd.Key] != nil {
		return "the tree has it"
	}
	for _, op := range d.Operators {
		if slices.Contains(op.Definitions, crd.Name) {
			return op.Key() + " watches its objects"
		}
	}
	for _, o := range m.Snapshot.Kind(k8s.OLMGroup, k8s.Text(crd.Body(), "spec", "names", "kind")) {
		if !slices.Contains(deleted, o) && !isCopy(o) {
			return o.String() + " exists"
		}
	}
	return ""
}

func liveItems(objects []*snapshot.LiveObject) []item {
	var out []item
	for _, o := range objects {
		out = append(out, newLiveItem(o))
	}
	return out
}

// addReleaseStep adds a manual step to remove OLM's manifests from Git. Without a GitOps tool that applies
// them, it adds none.
func (m *planBuilder) addReleaseStep(objects []*snapshot.LiveObject) {
	appliers := appliersOf(liveItems(objects), func(item) bool { return true })
	if appliers == "" {
		return
	}
	m.addStep(Step{
		Name: Suspend, Title: "Remove OLM's manifests from Git",
		Manual: "Remove the manifests of OLM and its catalogs from Git, or suspend the GitOps tool that applies them, otherwise the tool creates them again: " + appliers + ".",
	})
}

// addDeleteStep adds a step that deletes objects of OLM itself.
func (m *planBuilder) addDeleteStep(title string, objects []*snapshot.LiveObject, before ...Check) {
	if len(objects) == 0 {
		return
	}
	m.addStep(Step{Name: Uninstall, Title: title, Before: before, Actions: actionsFor(Delete, liveItems(objects)), After: []Check{{Check: Deleted, Objects: itemRefs(liveItems(objects))}}})
}

// isProgramOfOLM reports whether an object is one of OLM's Deployments, accounts or APIs.
func (p *Plan) isProgramOfOLM(r k8s.Ref) bool {
	isThere := len(p.OLM) > 0 && r.Namespace == p.OLM[0].Object.Namespace
	switch r.Key().GroupKind() {
	case "ClusterServiceVersion." + k8s.OLMGroup:
		return r.Name == snapshot.Packageserver
	case "CustomResourceDefinition." + k8s.CRDGroup:
		return isOLMCRD(r.Name)
	case "APIService." + k8s.APIServiceGroup:
		return r.Name == packagesAPI
	case "Deployment.apps":
		return isThere && slices.Contains(programNames(), r.Name)
	case "Service", "ServiceAccount":
		return isThere
	}
	return false
}

func programNames() []string {
	return []string{"catalog-operator", "olm-operator", snapshot.Packageserver}
}
