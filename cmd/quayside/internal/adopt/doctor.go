package adopt

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// Diagnosis lists the running operators and how each of them depends on OLM.
type Diagnosis struct {
	Operators []Dependence      `json:"operators" doc:"By namespace and package."`
	Unread    []snapshot.Unread `json:"unreadable" doc:"Kinds whose objects could not be read; the result is incomplete."`
}

// DiagnoseTree returns how the operators in a lock depend on OLM, according to their rendered objects. It
// modifies nothing.
func DiagnoseTree(lock *lockfile.File, rendered []render.Rendered) *Diagnosis {
	own := map[string][]k8s.Object{}
	for _, r := range rendered {
		own[operatorOf(r)] = append(own[operatorOf(r)], r.Object)
	}
	d := &Diagnosis{Operators: []Dependence{}, Unread: []snapshot.Unread{}}
	for _, p := range lock.Pins {
		objects := own[p.Key()]
		d.add(Dependence{OperatorKey: OperatorKey{p.Namespace, p.Package}, Bundle: p.Bundle}, objects, true)
	}
	return d
}

// DiagnoseCluster returns how the operators that OLM installed in a cluster depend on OLM. It modifies nothing.
func DiagnoseCluster(s *snapshot.Snapshot) *Diagnosis {
	c := newCluster(s, &lockfile.File{})
	d := &Diagnosis{Operators: []Dependence{}, Unread: append([]snapshot.Unread{}, s.Unread...)}
	for _, op := range c.operators {
		csv := op.csv()
		if csv == nil {
			continue
		}
		objects := objectsOfCSV(csv.Body())
		for _, o := range op.members {
			if IsRelevant(o.Group, o.Kind) && o.Group != k8s.OLMGroup && !c.unpackObjects[o.Key] {
				objects = append(objects, o.Body())
			}
		}
		d.add(Dependence{OperatorKey: op.OperatorKey, Bundle: csv.Name}, objects, false)
	}
	return d
}

// IsRelevant reports whether DiagnoseCluster needs objects of a kind. A snapshot can omit all other kinds.
func IsRelevant(group, kind string) bool {
	switch group {
	case "":
		return kind == "ConfigMap" || kind == "ServiceAccount"
	case "apps":
		return kind == "Deployment"
	case k8s.RBACGroup, k8s.OLMGroup, k8s.OLMv1Group:
		return true
	case "admissionregistration.k8s.io":
		return kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration"
	}
	return false
}

// Dependence describes how one running operator uses OLM.
type Dependence struct {
	OperatorKey
	Bundle      string         `json:"bundle,omitempty" doc:"Name of the bundle: of the ClusterServiceVersion in a cluster."`
	NeedsOLM    needs.OLMNeed  `json:"needsOLM" form:"enum=yes|partly|unknown|no" doc:"yes: the operator's purpose depends on OLM; partly: the operator works without OLM, with the listed losses; unknown: the operator may use OLM; no: there is no evidence of OLM."`
	Signals     []needs.Signal `json:"signals" doc:"Evidence of OLM, strongest first."`
	Definitions []string       `json:"crds" doc:"CustomResourceDefinitions of OLM whose objects the operator watches: keep these CRDs when OLM is uninstalled."`
}

// add computes how an operator depends on OLM, completes one with the result, and inserts one into the sorted
// list. objects are the operator's objects. If shipped is true, an object of OLM's kinds among them is evidence
// that the operator needs OLM.
func (d *Diagnosis) add(one Dependence, objects []k8s.Object, shipped bool) {
	need, signals, definitions := needs.FindOLM(objects, shipped)
	one.NeedsOLM, one.Signals, one.Definitions = need, append([]needs.Signal{}, signals...), append([]string{}, definitions...)
	at, _ := slices.BinarySearchFunc(d.Operators, one.Key(), func(have Dependence, key string) int { return strings.Compare(have.Key(), key) })
	d.Operators = slices.Insert(d.Operators, at, one)
}

// objectsOfCSV returns the objects that OLM creates from a ClusterServiceVersion: Deployments and permissions.
// Cluster permissions become a Role, too, because the diagnosis does not depend on the scope.
func objectsOfCSV(csv k8s.Object) []k8s.Object {
	var out []k8s.Object
	strategy := k8s.Map(csv, "spec", "install", "spec")
	for _, d := range k8s.Items(strategy, "deployments") {
		o := k8s.New("apps/v1", "Deployment", csv.Namespace(), k8s.Text(d, "name"))
		o = k8s.With(o, k8s.At(d, "spec"), "spec")
		out = append(out, k8s.With(o, k8s.At(csv, "metadata", "annotations"), "spec", "template", "metadata", "annotations"))
	}
	for i, p := range append(k8s.Items(strategy, "permissions"), k8s.Items(strategy, "clusterPermissions")...) {
		account := k8s.Text(p, "serviceAccountName")
		role := k8s.New(k8s.RBACGroup+"/v1", "Role", csv.Namespace(), csv.Name()+":"+strconv.Itoa(i))
		role["rules"] = k8s.List(p, "rules")
		binding := k8s.New(k8s.RBACGroup+"/v1", "RoleBinding", csv.Namespace(), role.Name())
		binding["roleRef"] = map[string]any{"kind": "Role", "name": role.Name()}
		binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account}}
		out = append(out, role, binding)
	}
	return out
}
