package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Input is what a plan is made of.
type Input struct {
	Snapshot *snapshot.Snapshot
	Report   *adopt.Report     // what adopt.Inspect says of Snapshot, Lock and Rendered
	Lock     *lockfile.File    // as adopt.Record returns it
	Rendered []render.Rendered // what Lock renders to for the cluster

	Cluster    string   // of quayside.yaml; empty where there is one only
	Mode       Mode     // Stopped where it is empty
	Namespaces []string // of the operators to take over; all where it is empty
	Manager    string   // field manager of what is applied
}

// APIVersion and Kind are what a plan begins with.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "AdoptionPlan"
)

// Make returns how the operators that can be taken over leave OLM. What is not
// taken over is in Left, with the reasons. The error says what is missing of the
// snapshot; nothing is modified.
func Make(in Input) (*Plan, error) {
	m := &maker{Input: in, tree: map[kobj.Key]kobj.Object{}, refused: map[kobj.Key]string{}, whose: map[string]*adopt.Operator{}, taken: map[string]bool{}, shedding: map[string]bool{}}
	m.plan = &Plan{
		APIVersion: APIVersion, Kind: Kind, Cluster: in.Cluster, Mode: cmp.Or(in.Mode, Stopped), Manager: in.Manager,
		Lock: LockDigest(in.Lock), Tree: TreeDigest(in.Rendered), OLM: []Workload{}, Operators: []Operator{}, Left: []Left{}, Steps: []Step{},
	}
	for _, r := range in.Rendered {
		m.tree[r.Object.Key()] = r.Object
		if r.Refused != "" {
			m.refused[r.Object.Key()] = r.Refused
		}
	}
	if err := readWhole(in.Snapshot); err != nil {
		return nil, err
	}
	system := in.Snapshot.Get(kobj.Key{Kind: "Namespace", Name: "kube-system"})
	if system == nil || system.UID == "" {
		return nil, errors.New("the Namespace kube-system, by whose UID the cluster is known, is not among what was read of it: read Namespaces too")
	}
	m.plan.ClusterUID = system.UID
	if err := m.choose(); err != nil {
		return nil, err
	}
	m.share()
	m.steps()
	if m.unnamed != nil {
		return nil, fmt.Errorf("%s has no UID, without which nothing can be said to be still the same: get what the cluster has with kubectl get -o json or -o yaml", m.unnamed)
	}
	return m.plan, nil
}

// readWhole demands that the cluster handed out all that was asked for: what was not
// read would be taken for what is not there.
func readWhole(s *snapshot.Snapshot) error {
	var kinds []string
	for _, u := range s.Unread {
		kinds = append(kinds, u.Kind+" ("+u.APIVersion+"): "+u.Reason)
	}
	if len(kinds) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster would not hand out all that a plan is made of: %s; read it with the rights to list these", strings.Join(kinds, "; "))
}

// maker makes one plan.
type maker struct {
	Input
	plan     *Plan
	tree     map[kobj.Key]kobj.Object
	refused  map[kobj.Key]string        // why the cluster will not take it
	whose    map[string]*adopt.Operator // by namespace/package
	taken    map[string]bool            // likewise: those that the plan takes over
	blocks   []*block                   // by namespace, those that leave OLM first
	shedding map[string]bool            // likewise: what sheds found
	unnamed  *kobj.Ref                  // an object without a UID, if there is one
}

// block is what becomes of the operators of one namespace: of those that leave OLM,
// or of those that left it and shed what they have of it.
type block struct {
	namespace string
	sheds     bool
	operators []*adopt.Operator // those that need others first
	items     []item            // what is theirs, and of what is shared the namespace's part
	others    []item            // what they share with operators that stay with OLM
}

// item is an object with what is known of it.
type item struct {
	adopt.Object
	live *snapshot.Object // nil: the cluster does not have it
	ours kobj.Object      // nil: the tree does not have it
}

// ref returns the reference to an item: as the tree has it, else as the cluster does.
func (i item) ref() kobj.Ref {
	if i.ours != nil {
		return kobj.RefTo(i.ours)
	}
	return refToLive(i.live)
}

func refToLive(o *snapshot.Object) kobj.Ref {
	return kobj.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

func name(op *adopt.Operator) string { return op.Namespace + "/" + op.Package }

// share gives each object to the namespace in whose steps it is looked after. What
// operators share is applied with the first of them where it is new, for that
// disturbs nobody; what is there already waits for the last, and for good where
// one of them stays with OLM.
func (m *maker) share() {
	for _, b := range m.blocks {
		for _, op := range b.operators {
			for _, o := range op.Objects {
				b.items = append(b.items, m.item(o))
			}
		}
	}
	for _, o := range m.Report.Shared {
		var blocks []*block
		stays := false
		for _, b := range m.blocks {
			if slices.ContainsFunc(b.operators, func(op *adopt.Operator) bool { return slices.Contains(o.Operators, name(op)) }) {
				blocks = append(blocks, b)
			}
		}
		for _, name := range o.Operators {
			stays = stays || m.staysWithOLM(name)
		}
		switch {
		case len(blocks) == 0:
		case o.Class == adopt.Added:
			blocks[0].items = append(blocks[0].items, m.item(o))
		case stays:
			for _, b := range blocks {
				b.others = append(b.others, m.item(o))
			}
		default:
			last := blocks[len(blocks)-1]
			last.items = append(last.items, m.item(o))
		}
	}
	for _, b := range m.blocks {
		slices.SortFunc(b.items, func(x, y item) int { return x.Key().Compare(y.Key()) })
	}
}

func (m *maker) item(o adopt.Object) item {
	return item{Object: o, live: m.Snapshot.Get(o.Key()), ours: m.tree[o.Key()]}
}

func namespaceOf(operator string) string {
	namespace, _, _ := strings.Cut(operator, "/")
	return namespace
}

// block returns the block of an operator, made where it is the first of that.
func (m *maker) block(op *adopt.Operator) *block {
	sheds := m.sheds(op)
	for _, b := range m.blocks {
		if b.namespace == op.Namespace && b.sheds == sheds {
			return b
		}
	}
	b := &block{namespace: op.Namespace, sheds: sheds}
	m.blocks = append(m.blocks, b)
	return b
}
