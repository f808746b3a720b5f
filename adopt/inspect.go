// Package adopt compares what OLM installed in a cluster with what a lock renders
// to: whether the tree can take an operator over, what becomes of every object,
// and what of OLM's doing the tree has to keep so that no pod restarts.
//
// It is pure: a snapshot of the cluster, a lock and rendered objects go in, a
// report or a lock comes out.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Begin], [Record] and [Inspect].
package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Input is what is known of a cluster and of what is to take OLM's place.
type Input struct {
	Snapshot *snapshot.Snapshot
	Lock     *lockfile.File
	Rendered []render.Rendered // what Lock renders to

	// Made returns the Deployments that OLM makes of a pin, as far as that is
	// known without the cluster. It is asked where the tree has a Deployment
	// otherwise than the cluster.
	Made func(lockfile.Pin) ([]kobj.Object, error)
}

// Inspect says of every operator of the cluster and of the lock whether it can be
// adopted, and of every object of theirs what becomes of it. Nothing is modified.
func Inspect(in Input) *Report {
	x := &inspector{
		Input: in, cluster: find(in.Snapshot, in.Lock), comparer: comparer{admit.NewTypes()},
		ours: map[kobj.Key]render.Rendered{}, tree: map[string][]kobj.Object{}, objects: map[*operator][]Object{}, made: map[*operator]map[string]kobj.Object{}, reasons: map[*operator][]Reason{},
	}
	for _, r := range in.Rendered {
		x.ours[r.Object.Key()] = r
		if key := operatorOf(r); key != "" {
			x.tree[key] = append(x.tree[key], r.Object)
		}
		if o := in.Snapshot.Get(r.Object.Key()); o != nil {
			x.add(o, x.wants(r)...)
		}
	}
	x.sort()
	rep := &Report{Operators: []Operator{}, Shared: x.shared, Unread: append([]snapshot.Unread{}, in.Snapshot.Unread...)}
	rep.Counts = count(x.shared)
	for _, op := range x.operators {
		one := x.judge(op)
		rep.Operators = append(rep.Operators, one)
		rep.Counts = rep.Counts.plus(one.Counts)
	}
	return rep
}

// inspector puts every object into its class.
type inspector struct {
	Input
	*cluster
	comparer

	ours    map[kobj.Key]render.Rendered
	tree    map[string][]kobj.Object // what the tree holds for each operator alone
	objects map[*operator][]Object   // of one operator alone
	shared  []Object
	made    map[*operator]map[string]kobj.Object // Deployments, by name
	reasons map[*operator][]Reason               // found on the way
}

// wants returns the operators that a rendered object is for.
func (x *inspector) wants(r render.Rendered) []*operator {
	parts := strings.Split(r.Path, "/")
	switch {
	case parts[0] == "operators":
		return []*operator{x.byKey[operatorOf(r)]}
	case parts[0] == "crds":
		var out []*operator
		for _, op := range x.operators {
			if op.pin != nil && op.pkg == parts[1] {
				out = append(out, op)
			}
		}
		return out
	case r.Object.Is("", "Namespace"):
		return x.within(r.Object.Name())
	}
	return nil
}

// sort puts what the cluster has and what the tree has into classes.
func (x *inspector) sort() {
	x.shared = []Object{}
	all := x.All()
	compared := x.compareAll(all)
	for i, o := range all {
		ops := x.of[o.Key]
		r, wanted := x.ours[o.Key]
		switch {
		case wanted:
			x.put(x.taken(o, r, compared[i], ops), ops)
		case len(ops) > 0:
			x.put(x.alone(o), ops)
		}
	}
	for _, r := range x.Rendered {
		if x.Get(r.Object.Key()) != nil {
			continue
		}
		o := described(r.Object.Key())
		o.Class = Added
		ops := x.wants(r)
		if len(ops) == 1 && ops[0] != nil && x.lost(ops[0], r.Object) {
			x.because(ops[0], Reason{Code: "lost", Object: o.Key().String(), Message: "OLM's own object is not there: " + o.Key().String() +
				"; the tree would bring it back. See whether the operator works without it, and apply it by hand first"})
		}
		x.put(o, ops)
	}
	for _, list := range append([][]Object{x.shared}, values(x.objects)...) {
		slices.SortFunc(list, func(a, b Object) int { return a.Key().Compare(b.Key()) })
	}
}

// alone returns what becomes of a live object that the tree does not have. What OLM
// makes for an OperatorCondition stays where the tree has that: OLM makes it again.
func (x *inspector) alone(o *snapshot.Object) Object {
	out := x.classify(o)
	for _, by := range o.Owners {
		key := kobj.Key{Group: kobj.Group(by.APIVersion), Kind: by.Kind, Namespace: o.Namespace, Name: by.Name}
		if _, wanted := x.ours[key]; wanted && out.Goes == AtCleanUp && key.Group == snapshot.OLM && key.Kind == "OperatorCondition" {
			out.Goes, out.Why = Never, "the operator's right to write its OperatorCondition: OLM makes it for every one, as long as it is there, and the tree gives the same"
		}
	}
	return out
}

func values(m map[*operator][]Object) [][]Object {
	var out [][]Object
	for _, list := range m {
		out = append(out, list)
	}
	return out
}

// put adds an object to the one that it belongs to, or to what is shared.
func (x *inspector) put(o Object, ops []*operator) {
	if len(ops) == 1 && ops[0] != nil {
		x.objects[ops[0]] = append(x.objects[ops[0]], o)
		return
	}
	for _, op := range ops {
		if op != nil {
			o.Operators = append(o.Operators, op.key())
		}
	}
	slices.Sort(o.Operators)
	x.shared = append(x.shared, o)
}

func (x *inspector) because(op *operator, r Reason) { x.reasons[op] = append(x.reasons[op], r) }
