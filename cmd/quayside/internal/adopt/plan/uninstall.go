package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/render/needs"
)

// packagesAPI is the APIService of OLM's packageserver.
const packagesAPI = "v1.packages." + k8s.OLMGroup

// NeededError reports that OLM cannot be uninstalled.
type NeededError struct{ By []string }

// Error lists what needs OLM.
func (e *NeededError) Error() string {
	return "OLM is still needed: " + strings.Join(e.By, "; ") + ": adopt or uninstall these operators first ('quayside adopt plan', 'quayside adopt check')"
}

// IsReadForUninstall reports whether the plan to uninstall OLM depends on objects of a kind.
func IsReadForUninstall(group, kind string) bool {
	return group != "" || kind != "Secret" && kind != "ConfigMap"
}

// MakeUninstall returns the plan to uninstall OLM, and with crds also OLM's CRDs without custom
// resources. The error is a *NeededError if anything still needs OLM. It does not use in.Report, and
// does not modify its input.
func MakeUninstall(in Input, crds bool) (*Plan, error) {
	in.Mode = Removal
	m, err := newBuilder(in)
	if err != nil {
		return nil, err
	}
	if m.plan.OLM = m.findControllers(); len(m.plan.OLM) == 0 || m.isOpenShift() {
		return nil, errors.New("the Deployments olm-operator and catalog-operator were not found, or OLM is part of the platform (OpenShift): it cannot be uninstalled")
	}
	diagnosis := adopt.DiagnoseTree(m.Lock, m.Rendered)
	if by := m.usesOfOLM(diagnosis); len(by) > 0 {
		return nil, &NeededError{by}
	}
	declarations, programs := m.olmDeclarations(), m.olmPrograms()
	deleted := append(slices.Clone(declarations), programs...)
	var definitions []*snapshot.Object
	kept := ""
	for _, crd := range m.olmCRDs() {
		switch why := m.keepReason(crd, diagnosis, deleted); {
		case !crds:
		case why != "":
			kept += " " + crd.Name + " stays: " + why + "."
		default:
			definitions = append(definitions, crd)
		}
	}
	m.addReleaseStep(append(slices.Clone(deleted), definitions...))
	m.addStep(Step{Name: Backup, Title: "Back up OLM's objects to files", Actions: m.liveActions(Save, append(slices.Clone(deleted), definitions...))})
	m.addDeleteStep("Delete OLM's declarations and packageserver", declarations,
		Check{Check: IsReady, Objects: m.plan.ControllerRefs()}, Check{Check: IsUnused, Objects: []k8s.Ref{olmCRD("clusterserviceversions"), olmCRD("subscriptions")}})
	m.addDeleteStep("Delete OLM's programs and permissions", programs)
	m.addDeleteStep("Delete OLM's CRDs", definitions, Check{Check: IsUnused, Objects: liveRefs(definitions)})
	namespace := m.plan.OLM[0].Object.Namespace
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
func (m *planBuilder) usesOfOLM(d *adopt.Diagnosis) []string {
	var out []string
	for _, csv := range m.Snapshot.CSVs() {
		if csv.CopiedFrom == "" && csv.Name != snapshot.Packageserver {
			out = append(out, "ClusterServiceVersion "+csv.Namespace+"/"+csv.Name)
		}
	}
	for _, o := range m.Snapshot.Kind(k8s.OLMGroup, "Subscription") {
		out = append(out, "Subscription "+o.Namespace+"/"+o.Name)
	}
	for _, op := range d.Operators {
		if op.NeedsOLM == needs.NeedsOLM {
			out = append(out, "operator "+op.Key()+" of the lock")
		}
	}
	return out
}

// olmDeclarations returns the objects whose deletion OLM itself completes: packageserver and the
// objects of OLM's kinds, all of which have no effect without operators.
func (m *planBuilder) olmDeclarations() []*snapshot.Object {
	var out []*snapshot.Object
	for _, csv := range m.Snapshot.Kind(k8s.OLMGroup, "ClusterServiceVersion") {
		if !isCopy(csv) {
			out = append(out, csv)
		}
	}
	for _, kind := range []string{"InstallPlan", "CatalogSource", "OperatorGroup", "OLMConfig"} {
		out = append(out, m.Snapshot.Kind(k8s.OLMGroup, kind)...)
	}
	return out
}

// olmPrograms returns OLM's own Deployments with their Services, ServiceAccounts and permissions, the
// API of packageserver, and the objects that OLM created for itself.
func (m *planBuilder) olmPrograms() []*snapshot.Object {
	namespace := m.plan.OLM[0].Object.Namespace
	names := []string{"catalog-operator", "olm-operator", snapshot.Packageserver}
	accounts := map[string]bool{}
	var out []*snapshot.Object
	add := func(group, kind string, is func(*snapshot.Object) bool) {
		for _, o := range m.Snapshot.Kind(group, kind) {
			if is(o) {
				out = append(out, o)
			}
		}
	}
	add("apiregistration.k8s.io", "APIService", func(o *snapshot.Object) bool { return o.Name == packagesAPI })
	add("apps", "Deployment", func(o *snapshot.Object) bool {
		mine := o.Namespace == namespace && slices.Contains(names, o.Name)
		if mine {
			accounts[cmp.Or(k8s.Text(o.Body(), "spec", "template", "spec", "serviceAccountName"), "default")] = true
		}
		return mine
	})
	add("", "Service", func(o *snapshot.Object) bool {
		return o.Namespace == namespace && slices.Contains(names, k8s.Text(o.Body(), "spec", "selector", "app"))
	})
	add("", "ServiceAccount", func(o *snapshot.Object) bool {
		return o.Namespace == namespace && o.Name != "default" && accounts[o.Name]
	})
	roles := map[k8s.Key]bool{} // whether only OLM's own accounts are bound to the role
	binding := func(o *snapshot.Object) bool {
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
	role := func(o *snapshot.Object) bool {
		_, isDefault := o.Labels["kubernetes.io/bootstrapping"]
		ours := m.tree[o.Key] != nil || o.Labels[k8s.LabelManagedBy] == k8s.Manager
		return !isDefault && !ours && (roles[o.Key] || isRoleOfOLM(o))
	}
	add(k8s.RBACGroup, "ClusterRole", role)
	add(k8s.RBACGroup, "Role", role)
	add(k8s.OLMGroup, "Operator", func(*snapshot.Object) bool { return true })
	return out
}

// isRoleOfOLM reports whether a role is one of OLM's manifests, or was created by OLM for packageserver
// or an OperatorGroup.
func isRoleOfOLM(o *snapshot.Object) bool {
	return o.Name == "aggregate-olm-edit" || o.Name == "aggregate-olm-view" || o.Labels["olm.owner.kind"] == "OperatorGroup" || o.Labels["olm.owner"] == snapshot.Packageserver ||
		slices.ContainsFunc(o.Owners, func(by snapshot.Owner) bool { return by.Name == packagesAPI })
}

// olmCRDs returns OLM's CRDs.
func (m *planBuilder) olmCRDs() []*snapshot.Object {
	return slices.DeleteFunc(m.Snapshot.Kind(k8s.CRDGroup, "CustomResourceDefinition"), func(o *snapshot.Object) bool { return !isOLMCRD(o.Name) })
}

func isOLMCRD(name string) bool {
	plural, ok := strings.CutSuffix(name, "."+k8s.OLMGroup)
	return ok && slices.Contains([]string{"catalogsources", "clusterserviceversions", "installplans", "olmconfigs", "operatorconditions", "operatorgroups", "operators", "subscriptions"}, plural)
}

func olmCRD(plural string) k8s.Ref {
	return k8s.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: plural + "." + k8s.OLMGroup}
}

// keepReason returns the reason why a CRD of OLM must stay, or "".
func (m *planBuilder) keepReason(crd *snapshot.Object, d *adopt.Diagnosis, deleted []*snapshot.Object) string {
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

func (m *planBuilder) liveActions(do Verb, objects []*snapshot.Object) []Action {
	var out []Action
	for _, o := range objects {
		out = append(out, m.newAction(do, item{Object: adopt.Object{Key: o.Key}, live: o}))
	}
	return out
}

func liveRefs(objects []*snapshot.Object) []k8s.Ref {
	var out []k8s.Ref
	for _, o := range objects {
		out = append(out, refToLive(o))
	}
	return out
}

// addReleaseStep adds a manual step if a GitOps tool applies OLM's objects.
func (m *planBuilder) addReleaseStep(objects []*snapshot.Object) {
	var appliers []string
	for _, o := range objects {
		if by := profile.ApplierOf(o.Body()); by != "" && !slices.Contains(appliers, by) {
			appliers = append(appliers, by)
		}
	}
	if len(appliers) == 0 {
		return
	}
	slices.Sort(appliers)
	m.addStep(Step{
		Name: Suspend, Title: "Remove OLM's manifests from Git",
		Manual: "Remove the manifests of OLM and its catalogs from Git, or suspend the GitOps tool that applies them, otherwise it creates them again: " + strings.Join(appliers, "; ") + ".",
	})
}

// addDeleteStep adds a step that deletes objects of OLM itself.
func (m *planBuilder) addDeleteStep(title string, objects []*snapshot.Object, before ...Check) {
	if len(objects) == 0 {
		return
	}
	m.addStep(Step{Name: Uninstall, Title: title, Before: before, Actions: m.liveActions(Delete, objects), After: []Check{{Check: Deleted, Objects: liveRefs(objects)}}})
}

// uninstallFault returns the reason why the plan must not delete an object when it uninstalls OLM, or "".
func (p *Plan) uninstallFault(kind string, r k8s.Ref) string {
	namespace := ""
	if len(p.OLM) > 0 {
		namespace = p.OLM[0].Object.Namespace
	}
	can := false
	switch kind {
	case "ClusterServiceVersion." + k8s.OLMGroup:
		can = r.Name == snapshot.Packageserver
	case "CustomResourceDefinition.apiextensions.k8s.io":
		can = isOLMCRD(r.Name)
	case "APIService.apiregistration.k8s.io":
		can = r.Name == packagesAPI
	case "Deployment.apps":
		can = r.Namespace == namespace && slices.Contains([]string{"catalog-operator", "olm-operator", snapshot.Packageserver}, r.Name)
	case "Service", "ServiceAccount":
		can = r.Namespace == namespace
	default:
		for _, k := range []string{"InstallPlan", "CatalogSource", "OperatorGroup", "OLMConfig", "Operator"} {
			can = can || kind == k+"."+k8s.OLMGroup
		}
		for _, k := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			can = can || kind == k+"."+k8s.RBACGroup
		}
	}
	if p.Mode != Removal || !can {
		return "no plan deletes an object of this kind here"
	}
	return ""
}
