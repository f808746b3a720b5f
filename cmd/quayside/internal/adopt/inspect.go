// Package adopt compares the operators that OLM installed in a cluster with the rendered tree of a
// lock. It decides which operators can be adopted from OLM, classifies every object, and finds the
// OLM settings that the tree must keep so that pods do not restart.
//
// It has no side effects: the input is a snapshot of the cluster, a lock and rendered objects, and
// the output is a report or a lock.
//
// The API is unstable: exported names may change in any release.
//
// Start from [Begin], [Record] and [Inspect].
package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Input contains the state of a cluster, and the rendered tree that will replace OLM there.
type Input struct {
	Snapshot *snapshot.Snapshot
	Lock     *lockfile.File
	Rendered []render.Rendered // rendered tree of Lock

	// GenerateDeployments returns the Deployments that OLM generates for a pin, without the parts that depend
	// on the cluster. Inspect calls it only if a Deployment differs between the tree and the cluster.
	GenerateDeployments func(lockfile.Pin) ([]k8s.Object, error)
}

// Inspect reports whether each operator of the cluster and of the lock can be adopted. It also classifies all
// objects of these operators. It modifies nothing.
func Inspect(in Input) *Inspection {
	x := &inspector{
		Input: in, clusterState: newCluster(in.Snapshot, in.Lock), comparer: comparer{admit.NewTypes()},
		ours: map[k8s.Key]render.Rendered{}, shared: []ClassifiedObject{},
	}
	for _, r := range in.Rendered {
		x.ours[r.Object.Key()] = r
		if op := x.byKey[operatorOf(r)]; op != nil {
			op.tree = append(op.tree, r.Object)
		}
		if o := in.Snapshot.Get(r.Object.Key()); o != nil {
			x.add(o, x.operatorsFor(r)...)
		}
	}
	x.classifyAll()
	rep := &Inspection{Operators: []Operator{}, Shared: x.shared, Unread: append([]snapshot.Unread{}, in.Snapshot.Unread...)}
	rep.Counts = countObjects(x.shared)
	for _, op := range x.operators {
		one := x.reportOperator(op)
		rep.Operators = append(rep.Operators, one)
		rep.Counts = rep.Counts.plus(one.Counts)
	}
	return rep
}

// inspector assigns a class to every object.
type inspector struct {
	Input
	*clusterState
	comparer

	ours   map[k8s.Key]render.Rendered
	shared []ClassifiedObject // objects that belong to several operators, or to none
}

func (x *inspector) operatorsFor(r render.Rendered) []*operator {
	parts := strings.Split(r.Path, "/")
	switch {
	case parts[0] == "operators":
		return []*operator{x.byKey[operatorOf(r)]}
	case parts[0] == "crds":
		var out []*operator
		for _, op := range x.operators {
			if op.pin != nil && op.Package == parts[1] {
				out = append(out, op)
			}
		}
		return out
	case r.Object.Is("", "Namespace"):
		return x.operatorsIn(r.Object.Name())
	}
	return nil
}

// classifyAll classifies the objects of the cluster and of the tree.
func (x *inspector) classifyAll() {
	all := x.All()
	compared := x.compareAll(all)
	for i, o := range all {
		ops := x.operatorsOf[o.Key]
		r, wanted := x.ours[o.Key]
		switch {
		case wanted:
			x.addObject(x.classifyShared(o, r, compared[i], ops), ops)
		case len(ops) > 0:
			x.addObject(x.classifyLive(o), ops)
		}
	}
	for _, r := range x.Rendered {
		if x.Get(r.Object.Key()) != nil {
			continue
		}
		o := ClassifiedObject{Key: r.Object.Key(), Class: Added}
		ops := x.operatorsFor(r)
		if len(ops) == 1 && ops[0] != nil && x.isLost(ops[0], r.Object) {
			ops[0].addReason(Reason{Code: "lost", Object: o.String(), Message: ops[0].installer() + "'s object is missing: " + o.String() +
				"; the rendered tree contains it. Check that the operator works with it, and apply it by hand first"})
		}
		x.addObject(o, ops)
	}
	sortByKey(x.shared)
	for _, op := range x.operators {
		sortByKey(op.objects)
	}
}

func sortByKey(objects []ClassifiedObject) {
	slices.SortFunc(objects, func(a, b ClassifiedObject) int { return a.Compare(b.Key) })
}

// classifyLive classifies a live object that is not in the tree. An object that is owned by an
// OperatorCondition of the tree is kept, because OLM would recreate it.
func (x *inspector) classifyLive(o *snapshot.LiveObject) ClassifiedObject {
	out := x.classify(o)
	for _, by := range o.Owners {
		key := k8s.Key{Group: k8s.Group(by.APIVersion), Kind: by.Kind, Namespace: o.Namespace, Name: by.Name}
		if _, wanted := x.ours[key]; wanted && out.RemovedAt == AtCleanUp && key.Group == k8s.OLMGroup && key.Kind == "OperatorCondition" {
			out.RemovedAt, out.Reason = Never, "the operator's permission to write its OperatorCondition: not deleted, because the tree has an equal object, and OLM recreates this one while OLM manages the operator"
		}
	}
	return out
}

// addObject adds an object to its operator, or to the shared objects.
func (x *inspector) addObject(o ClassifiedObject, ops []*operator) {
	if len(ops) == 1 && ops[0] != nil {
		ops[0].objects = append(ops[0].objects, o)
		return
	}
	for _, op := range ops {
		if op != nil {
			o.Operators = append(o.Operators, op.Key())
		}
	}
	slices.Sort(o.Operators)
	x.shared = append(x.shared, o)
}

func (op *operator) addReason(r Reason) { op.reasons = append(op.reasons, r) }
