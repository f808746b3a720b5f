package adopt

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Finish returns the lock in which nothing of OLM's is kept any more for these
// operators (namespace/package); for none at all where no name is given. The
// argument is not modified.
func Finish(lock *lockfile.File, names []string) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if len(names) == 0 || slices.Contains(names, p.Key()) {
			pins[i].Adopted = nil
		}
	}
	return lock.With(pins)
}

// Finished is what changes of one operator once nothing of OLM's is kept for it.
type Finished struct {
	Namespace    string    `json:"namespace" doc:"Install namespace."`
	Package      string    `json:"package" doc:"Name of the package."`
	Bundle       string    `json:"bundle" doc:"Name of the bundle."`
	Restarts     []Restart `json:"restarts" doc:"Deployments whose pods restart, once."`
	Condition    Renamed   `json:"condition" doc:"The OperatorCondition that the pods are told."`
	Certificates []string  `json:"certificates" doc:"Services (namespace/name) whose certificates were OLM's, and are made by the workspace's provider from then on."`
	Needs        []string  `json:"needs" doc:"Kinds of objects that the tree has from then on and that it does not define: the cluster must serve them before the tree is applied."`
	Objects      []Change  `json:"objects" doc:"What changes of the operator's part of the tree."`
}

// Change is an object of the tree that is another afterwards.
type Change struct {
	Group     string  `json:"group,omitempty" doc:"API group; absent for the core group."`
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Change    string  `json:"change" form:"enum=added|changed|removed"`
	Fields    []Field `json:"fields,omitempty" doc:"Of what is changed: live is what the tree had, ours what it has."`
}

// Key returns what identifies the object.
func (c Change) Key() kobj.Key {
	return kobj.Key{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// Restart is a Deployment whose pods restart.
type Restart struct {
	Deployment string  `json:"deployment" doc:"Its name."`
	Fields     []Field `json:"fields" doc:"In what its pods change: live is what the tree had, ours what it has."`
}

// Renamed is something that has another name afterwards.
type Renamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Shed compares what a lock renders to with what it renders to once Finish has
// dropped what was kept of OLM's: operator by operator, and the objects that are of
// none.
func Shed(before, after *lockfile.File, was, now []render.Rendered) ([]Finished, []Change) {
	operators := []Finished{}
	served := map[kobj.Key]bool{}
	for _, r := range was {
		served[kobj.Key{Group: r.Object.Group(), Kind: r.Object.Kind()}] = true
	}
	for _, r := range now {
		if kobj.IsCRD(r.Object) {
			served[kobj.Key{Group: kobj.Text(r.Object, "spec", "group"), Kind: kobj.Text(r.Object, "spec", "names", "kind")}] = true
		}
	}
	for _, p := range before.Pins {
		if q, _ := after.Pin(p.Namespace, p.Package); p.Adopted == nil || q.Adopted != nil {
			continue
		}
		mine := func(r render.Rendered) bool {
			return operatorOf(r) == p.Key() || strings.HasPrefix(r.Path, "crds/"+p.Package+"/")
		}
		operators = append(operators, shed{p, keyed(was, mine), keyed(now, mine), served}.finished())
	}
	shared := func(r render.Rendered) bool {
		return operatorOf(r) == "" && !slices.ContainsFunc(before.Pins, func(p lockfile.Pin) bool { return strings.HasPrefix(r.Path, "crds/"+p.Package+"/") })
	}
	return operators, shed{was: keyed(was, shared), now: keyed(now, shared)}.changes()
}

func keyed(rendered []render.Rendered, mine func(render.Rendered) bool) map[kobj.Key]kobj.Object {
	out := map[kobj.Key]kobj.Object{}
	for _, r := range rendered {
		if mine(r) {
			out[r.Object.Key()] = r.Object
		}
	}
	return out
}

// shed is a part of the tree before and after.
type shed struct {
	pin      lockfile.Pin
	was, now map[kobj.Key]kobj.Object
	served   map[kobj.Key]bool // groups and kinds that the tree had before, or defines
}

func (s shed) finished() Finished {
	f := Finished{
		Namespace: s.pin.Namespace, Package: s.pin.Package, Bundle: s.pin.Bundle,
		Restarts: []Restart{}, Condition: Renamed{From: s.pin.Adopted.Condition}, Certificates: []string{}, Needs: []string{}, Objects: s.changes(),
	}
	for _, c := range f.Objects {
		if kind := c.Kind + "." + c.Group; c.Change == "added" && s.foreign(c) && !slices.Contains(f.Needs, kind) {
			f.Needs = append(f.Needs, kind)
		}
		pods := slices.DeleteFunc(slices.Clone(c.Fields), func(f Field) bool { return !strings.HasPrefix(f.Path, "spec.template") })
		if c.Group == "apps" && c.Kind == "Deployment" && len(pods) > 0 {
			f.Restarts = append(f.Restarts, Restart{c.Name, pods})
		}
	}
	served := map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(s.now), kobj.Key.Compare) {
		o := s.now[key]
		if key.Kind == "OperatorCondition" {
			f.Condition.To = key.Name
		}
		for _, service := range calls(o) {
			served[service] = true
		}
	}
	if len(s.pin.Adopted.Certificates) > 0 {
		f.Certificates = append(f.Certificates, slices.Sorted(maps.Keys(served))...)
	}
	return f
}

// foreign reports whether an object is of a kind that is new to the tree, and that
// neither Kubernetes nor the tree defines.
func (s shed) foreign(c Change) bool {
	return !kinds.Builtin(c.Group) && !s.served[kobj.Key{Group: c.Group, Kind: c.Kind}]
}

// changes returns in what the part differs, in the order of the objects.
func (s shed) changes() []Change {
	both := maps.Clone(s.was)
	maps.Copy(both, s.now)
	out := []Change{}
	for _, key := range slices.SortedFunc(maps.Keys(both), kobj.Key.Compare) {
		c := Change{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Change: "changed"}
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

// calls returns the Services that an object calls with certificates, as
// namespace/name: by webhooks, a conversion or an aggregated API.
func calls(o kobj.Object) []string {
	var services []map[string]any
	for _, w := range kobj.Items(o, "webhooks") {
		services = append(services, kobj.Map(w, "clientConfig", "service"))
	}
	if kobj.IsCRD(o) {
		services = append(services, kobj.Map(o, "spec", "conversion", "webhook", "clientConfig", "service"))
	}
	if o.Is("apiregistration.k8s.io", "APIService") {
		services = append(services, kobj.Map(o, "spec", "service"))
	}
	var out []string
	for _, s := range services {
		if name := kobj.Text(s, "name"); name != "" {
			out = append(out, kobj.Text(s, "namespace")+"/"+name)
		}
	}
	return out
}
