package adopt

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Finish returns the lock without the OLM settings (Pin.Adopted) of the named operators
// (namespace/package), or of all operators if names is empty. It does not modify its argument.
func Finish(lock *lockfile.File, names []string) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if len(names) == 0 || slices.Contains(names, p.Key()) {
			pins[i].Adopted = nil
		}
	}
	return lock.With(pins)
}

// FinishedOperator lists the changes to an operator that result from removing its OLM settings from the lock.
type FinishedOperator struct {
	OperatorKey
	Bundle       string     `json:"bundle" doc:"Name of the bundle."`
	Restarts     []Restart  `json:"restarts" doc:"Deployments whose pods restart once."`
	Condition    NameChange `json:"condition" doc:"OperatorCondition whose name the pods get."`
	Certificates []string   `json:"certificates" doc:"Services (namespace/name) whose certificates change from OLM to the workspace's provider."`
	Needs        []string   `json:"requiredKinds" doc:"Kinds of new objects whose CRDs are not in the tree: the cluster must serve them before the tree is applied."`
	Objects      []Change   `json:"objects" doc:"Changes of the operator's files in the tree."`
}

// Change is an object of the tree that is added, changed or removed.
type Change struct {
	k8s.Key
	Change string  `json:"change" form:"enum=added|changed|removed"`
	Fields []Field `json:"fields,omitempty" doc:"Changed fields; cluster-only: removed, tree-only: added."`
}

// Restart is a Deployment whose pods restart.
type Restart struct {
	Deployment string  `json:"deployment" doc:"Its name."`
	Fields     []Field `json:"fields" doc:"Changed fields of its pod template; cluster-only: removed, tree-only: added."`
}

// NameChange is the change of an object's name.
type NameChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// CompareFinished compares the rendered trees of a lock before and after Finish. It returns the
// changes for each operator, and the changes to objects that belong to no operator.
func CompareFinished(before, after *lockfile.File, was, now []render.Rendered) ([]FinishedOperator, []Change) {
	operators := []FinishedOperator{}
	served := map[k8s.Key]bool{}
	for _, r := range was {
		served[k8s.Key{Group: r.Object.Group(), Kind: r.Object.Kind()}] = true
	}
	for _, r := range now {
		if k8s.IsCRD(r.Object) {
			served[k8s.Key{Group: k8s.Text(r.Object, "spec", "group"), Kind: k8s.Text(r.Object, "spec", "names", "kind")}] = true
		}
	}
	for _, p := range before.Pins {
		if q, _ := after.Pin(p.Namespace, p.Package); p.Adopted == nil || q.Adopted != nil {
			continue
		}
		mine := func(r render.Rendered) bool {
			return operatorOf(r) == p.Key() || strings.HasPrefix(r.Path, "crds/"+p.Package+"/")
		}
		operators = append(operators, treeChange{p, objectsByKey(was, mine), objectsByKey(now, mine), served}.toFinished())
	}
	shared := func(r render.Rendered) bool {
		return operatorOf(r) == "" && !slices.ContainsFunc(before.Pins, func(p lockfile.Pin) bool { return strings.HasPrefix(r.Path, "crds/"+p.Package+"/") })
	}
	return operators, treeChange{was: objectsByKey(was, shared), now: objectsByKey(now, shared)}.changes()
}

func objectsByKey(rendered []render.Rendered, mine func(render.Rendered) bool) map[k8s.Key]k8s.Object {
	out := map[k8s.Key]k8s.Object{}
	for _, r := range rendered {
		if mine(r) {
			out[r.Object.Key()] = r.Object
		}
	}
	return out
}

// treeChange contains the objects of one operator, or those of no operator, before and after Finish.
type treeChange struct {
	pin      lockfile.Pin
	was, now map[k8s.Key]k8s.Object
	served   map[k8s.Key]bool // kinds in the tree before Finish, and kinds that the CRDs after Finish define
}

func (s treeChange) toFinished() FinishedOperator {
	f := FinishedOperator{
		OperatorKey: OperatorKey{s.pin.Namespace, s.pin.Package}, Bundle: s.pin.Bundle,
		Restarts: []Restart{}, Condition: NameChange{From: s.pin.Adopted.Condition}, Certificates: []string{}, Needs: []string{}, Objects: s.changes(),
	}
	for _, c := range f.Objects {
		if kind := c.Kind + "." + c.Group; c.Change == "added" && s.isForeign(c) && !slices.Contains(f.Needs, kind) {
			f.Needs = append(f.Needs, kind)
		}
		pods := slices.DeleteFunc(slices.Clone(c.Fields), func(f Field) bool { return !strings.HasPrefix(f.Path, "spec.template") })
		if c.Group == "apps" && c.Kind == "Deployment" && len(pods) > 0 {
			f.Restarts = append(f.Restarts, Restart{c.Name, pods})
		}
	}
	served := map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(s.now), k8s.Key.Compare) {
		o := s.now[key]
		if key.Kind == "OperatorCondition" {
			f.Condition.To = key.Name
		}
		for _, service := range calledServices(o) {
			served[service] = true
		}
	}
	if len(s.pin.Adopted.Certificates) > 0 {
		f.Certificates = append(f.Certificates, slices.Sorted(maps.Keys(served))...)
	}
	return f
}

// isForeign reports whether the kind of c must already be served by the cluster. This is not necessary for a
// kind of Kubernetes, a kind with objects in the tree before Finish, or a kind that a CRD of the tree defines.
func (s treeChange) isForeign(c Change) bool {
	return !k8s.IsBuiltinGroup(c.Group) && !s.served[k8s.Key{Group: c.Group, Kind: c.Kind}]
}

// changes returns the added, changed and removed objects, ordered by key.
func (s treeChange) changes() []Change {
	both := maps.Clone(s.was)
	maps.Copy(both, s.now)
	out := []Change{}
	for _, key := range slices.SortedFunc(maps.Keys(both), k8s.Key.Compare) {
		c := Change{Key: key, Change: "changed"}
		switch before, after := s.was[key], s.now[key]; {
		case before == nil:
			c.Change = "added"
		case after == nil:
			c.Change = "removed"
		default:
			if c.Fields = compare(before, after); len(c.Fields) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// calledServices returns the Services (namespace/name) that the API server calls over TLS because of an object,
// such as a webhook configuration.
func calledServices(o k8s.Object) []string {
	var out []string
	for _, c := range k8s.ClientConfigs(o) {
		if name := k8s.Text(c, "service", "name"); name != "" {
			out = append(out, k8s.Text(c, "service", "namespace")+"/"+name)
		}
	}
	return out
}
