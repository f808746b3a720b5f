package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Input is the input of Make.
type Input struct {
	Snapshot *snapshot.Snapshot
	Report   *adopt.Inspection // result of adopt.Inspect for Snapshot, Lock and Rendered
	Lock     *lockfile.File    // result of adopt.Record
	Rendered []render.Rendered // Lock rendered for the cluster

	Cluster    string   // name of the cluster in quayside.yaml; empty if there is only one
	Mode       Mode     // empty means Stopped
	Namespaces []string // namespaces of the operators to adopt; empty: all
	Manager    string   // field manager for applied objects
}

// APIVersion and Kind are the header of a plan.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "AdoptionPlan"
)

// Make returns the plan for adopting operators from OLM. The plan's field Skipped lists the operators that are not
// adopted, with the reasons. Make returns an error if the snapshot is incomplete. It does not modify its input.
func Make(in Input) (*Plan, error) {
	f, err := newFacts(in)
	if err != nil {
		return nil, err
	}
	chosen, err := f.selectOperators()
	if err != nil {
		return nil, err
	}
	m := newBuilder(chosen)
	m.recordState()
	m.addSteps()
	return m.result()
}

// result returns the finished plan. It returns an error if the plan changes an existing object whose UID is
// unknown.
func (m *planBuilder) result() (*Plan, error) {
	for _, s := range m.plan.Steps {
		for _, a := range s.Actions {
			if o := m.Snapshot.Get(a.Object.Key()); a.UID == "" && o != nil && o.UID == "" {
				return nil, fmt.Errorf("%s has no UID, which identifies an object: export the objects with 'kubectl get -o json' or '-o yaml'", a.Object)
			}
		}
	}
	return m.plan, nil
}

// facts contains the input of a plan, and the tree indexed by object.
type facts struct {
	Input
	clusterUID string
	tree       map[k8s.Key]k8s.Object
	refused    map[k8s.Key]string // reason why the cluster would reject the object
}

// newFacts indexes the input. It returns an error if the snapshot is incomplete.
func newFacts(in Input) (*facts, error) {
	in.Mode = cmp.Or(in.Mode, Stopped)
	m := &facts{Input: in, tree: map[k8s.Key]k8s.Object{}, refused: map[k8s.Key]string{}}
	for _, r := range in.Rendered {
		m.tree[r.Object.Key()] = r.Object
		if r.Refused != "" {
			m.refused[r.Object.Key()] = r.Refused
		}
	}
	if err := checkComplete(in.Snapshot); err != nil {
		return nil, err
	}
	system := in.Snapshot.Get(k8s.Key{Kind: "Namespace", Name: "kube-system"})
	if system == nil || system.UID == "" {
		return nil, errors.New("missing Namespace kube-system, whose UID identifies the cluster: include Namespaces")
	}
	m.clusterUID = system.UID
	return m, nil
}

// planBuilder builds one plan.
type planBuilder struct {
	*selection
	plan *Plan
}

// newBuilder returns a builder with a plan without steps.
func newBuilder(chosen *selection) *planBuilder {
	in := chosen.Input
	return &planBuilder{selection: chosen, plan: &Plan{
		APIVersion: APIVersion, Kind: Kind, Cluster: in.Cluster, ClusterUID: chosen.clusterUID, Mode: in.Mode, Manager: in.Manager,
		Lock: LockDigest(in.Lock), Tree: TreeDigest(in.Rendered), OLM: []Workload{}, State: []State{}, Operators: chosen.planned, Skipped: chosen.skipped, Steps: []Step{},
	}}
}

// checkComplete returns an error if some kinds could not be listed for the snapshot. Their objects would appear
// to be missing.
func checkComplete(s *snapshot.Snapshot) error {
	var kinds []string
	for _, u := range s.Unread {
		kinds = append(kinds, u.Kind+" ("+u.APIVersion+"): "+u.Reason)
	}
	if len(kinds) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster refused to list kinds that a plan needs: %s; use an account with permission to list them", strings.Join(kinds, "; "))
}

// selection contains the operators that the plan adopts, and those that it skips.
type selection struct {
	*facts
	operators []*operator       // all operators, in the order of the report
	blocks    []*block          // sorted by namespace; in a namespace, operators that leave OLM come first
	planned   []Operator        // adopted operators, for the plan
	skipped   []SkippedOperator // other operators, for the plan
}

// operator is an operator of the report, with the decision about it.
type operator struct {
	*adopt.Operator
	hasLeftovers bool     // result of facts.hasLeftovers
	adopted      bool     // whether the plan adopts it
	reasons      []string // reasons why it is not adopted
}

// find returns the operator with a key, or nil.
func (m *selection) find(key string) *operator {
	for _, op := range m.operators {
		if op.Key() == key {
			return op
		}
	}
	return nil
}

// block is a group of operators in one namespace whose steps are planned together. Either OLM manages all of
// them, or OLM manages none of them but their objects have leftovers of OLM (hasLeftovers).
type block struct {
	namespace    string
	hasLeftovers bool
	operators    []*operator // operators come before those that they require
	items        []item      // objects of the operators, including shared objects that this block handles
	others       []item      // shared objects that a later block handles, or that operators which stay with OLM need
}

// item is an object in the cluster, in the tree, or in both.
type item struct {
	adopt.ClassifiedObject
	live *snapshot.LiveObject // nil if the cluster does not have it
	ours k8s.Object           // nil if the tree does not have it
}

// ref returns the reference to an item, with the apiVersion of the tree. For an item that is only in the
// cluster, it has the apiVersion of the cluster.
func (i item) ref() k8s.Ref {
	if i.ours != nil {
		return k8s.RefTo(i.ours)
	}
	return refToLive(i.live)
}

func refToLive(o *snapshot.LiveObject) k8s.Ref {
	return k8s.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// assignObjects assigns each object to the block whose steps handle the object. If several blocks share an
// object:
//   - If the object is new, the first block applies it. This does not affect the operators of later blocks.
//   - If the object exists, the last block handles it. Earlier blocks have it in the field others: they only
//     remove OLM's labels, because OLM recreates an Operator while any object has its label.
//   - If an operator that stays with OLM needs the object, no block handles it. All blocks have it in others.
func (m *selection) assignObjects() {
	for _, b := range m.blocks {
		for _, op := range b.operators {
			for _, o := range op.Objects {
				b.items = append(b.items, m.newItem(o))
			}
		}
	}
	for _, o := range m.Report.Shared {
		var blocks []*block
		stays := false
		for _, b := range m.blocks {
			if slices.ContainsFunc(b.operators, func(op *operator) bool { return slices.Contains(o.Operators, op.Key()) }) {
				blocks = append(blocks, b)
			}
		}
		for _, name := range o.Operators {
			stays = stays || m.staysWithOLM(name)
		}
		if len(o.Operators) == 0 && o.Class == adopt.Added && o.Is("CustomResourceDefinition.apiextensions.k8s.io") {
			blocks = m.extensionBlocks() // the CRD of OperatorConditions, which the tree adds to a cluster without OLM v0
		}
		switch {
		case len(blocks) == 0:
		case o.Class == adopt.Added:
			blocks[0].items = append(blocks[0].items, m.newItem(o))
		case stays:
			for _, b := range blocks {
				b.others = append(b.others, m.newItem(o))
			}
		default:
			last := len(blocks) - 1
			for _, b := range blocks[:last] {
				b.others = append(b.others, m.newItem(o))
			}
			blocks[last].items = append(blocks[last].items, m.newItem(o))
		}
	}
	for _, b := range m.blocks {
		slices.SortFunc(b.items, func(x, y item) int { return x.Compare(y.Key) })
	}
}

func (m *facts) newItem(o adopt.ClassifiedObject) item {
	return item{ClassifiedObject: o, live: m.Snapshot.Get(o.Key), ours: m.tree[o.Key]}
}

func newLiveItem(o *snapshot.LiveObject) item {
	return item{ClassifiedObject: adopt.ClassifiedObject{Key: o.Key}, live: o}
}

func namespaceOf(operator string) string {
	namespace, _, _ := strings.Cut(operator, "/")
	return namespace
}

// blockFor returns the block for an operator. If there is none, it adds one.
func (m *selection) blockFor(op *operator) *block {
	for _, b := range m.blocks {
		if b.namespace == op.Namespace && b.hasLeftovers == op.hasLeftovers {
			return b
		}
	}
	b := &block{namespace: op.Namespace, hasLeftovers: op.hasLeftovers}
	m.blocks = append(m.blocks, b)
	return b
}
