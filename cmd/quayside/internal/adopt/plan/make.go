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
	Lock     *lockfile.File    // from adopt.Record
	Rendered []render.Rendered // Lock rendered for the cluster

	Cluster    string   // name of the cluster in quayside.yaml; empty if there is only one
	Mode       Mode     // empty: Stopped
	Namespaces []string // namespaces whose operators to adopt; empty: all
	Manager    string   // field manager for applied objects
}

// APIVersion and Kind are the header of a plan.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "AdoptionPlan"
)

// Make returns the plan for adopting operators from OLM. Operators that are not adopted are in
// Skipped, with the reasons. It returns an error if the snapshot is incomplete, and does not
// modify its input.
func Make(in Input) (*Plan, error) {
	m, err := newBuilder(in)
	if err != nil {
		return nil, err
	}
	if err := m.chooseOperators(); err != nil {
		return nil, err
	}
	m.assignObjects()
	m.recordState()
	m.addSteps()
	return m.result()
}

// result returns the plan, or an error if the snapshot has an object without UID.
func (m *planBuilder) result() (*Plan, error) {
	if m.missingUID != nil {
		return nil, fmt.Errorf("%s has no UID, which identifies an object: export the objects with 'kubectl get -o json' or '-o yaml'", m.missingUID)
	}
	return m.plan, nil
}

// newBuilder returns a builder with an empty plan for the cluster of the snapshot.
func newBuilder(in Input) (*planBuilder, error) {
	m := &planBuilder{Input: in, tree: map[k8s.Key]k8s.Object{}, refused: map[k8s.Key]string{}}
	m.plan = &Plan{
		APIVersion: APIVersion, Kind: Kind, Cluster: in.Cluster, Mode: cmp.Or(in.Mode, Stopped), Manager: in.Manager,
		Lock: LockDigest(in.Lock), Tree: TreeDigest(in.Rendered), OLM: []Workload{}, State: []State{}, Operators: []Operator{}, Skipped: []SkippedOperator{}, Steps: []Step{},
	}
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
	m.plan.ClusterUID = system.UID
	return m, nil
}

// checkComplete returns an error if the snapshot lacks kinds that could not be listed, because
// their objects would be considered missing.
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

// planBuilder builds one plan.
type planBuilder struct {
	Input
	plan       *Plan
	tree       map[k8s.Key]k8s.Object
	refused    map[k8s.Key]string // why the cluster would reject the object
	operators  []*operator        // in the order of the report
	blocks     []*block           // by namespace, those that leave OLM first
	missingUID *k8s.Ref           // an object without a UID; nil if there is none
}

// operator is an operator of the report, with the decision about it.
type operator struct {
	*adopt.Operator
	hasLeftovers bool     // result of planBuilder.hasLeftovers
	adopted      bool     // the plan adopts it
	reasons      []string // why it is not adopted
}

// find returns an operator by its key; nil if there is none.
func (m *planBuilder) find(key string) *operator {
	for _, op := range m.operators {
		if op.Key() == key {
			return op
		}
	}
	return nil
}

// block is a group of operators in one namespace: either those that leave OLM, or those that OLM
// no longer manages, but whose objects still have leftovers of OLM.
type block struct {
	namespace    string
	hasLeftovers bool
	operators    []*operator // dependents first
	items        []item      // objects of the operators, and shared objects that this block handles
	others       []item      // objects shared with later blocks, or with operators that stay with OLM
}

// item is an object with its live and its rendered form.
type item struct {
	adopt.Object
	live *snapshot.Object // nil: the cluster does not have it
	ours k8s.Object       // nil: the tree does not have it
}

// ref returns the reference to an item: as in the tree, or as in the cluster if the tree does
// not have it.
func (i item) ref() k8s.Ref {
	if i.ours != nil {
		return k8s.RefTo(i.ours)
	}
	return refToLive(i.live)
}

func refToLive(o *snapshot.Object) k8s.Ref {
	return k8s.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// assignObjects assigns each object to the block whose steps handle it. A shared object that is new
// is applied in the first block with one of its operators, because it does not affect the others. A
// shared object that exists is handled in the last such block. The earlier blocks have it in
// others: they only remove OLM's labels from it, because OLM recreates an Operator while any object
// has its label. If one of the object's operators stays with OLM, all such blocks have it in
// others.
func (m *planBuilder) assignObjects() {
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
			blocks = m.extensionBlocks() // that of OperatorConditions, which a cluster without OLM v0 lacks
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

func (m *planBuilder) newItem(o adopt.Object) item {
	return item{Object: o, live: m.Snapshot.Get(o.Key), ours: m.tree[o.Key]}
}

func namespaceOf(operator string) string {
	namespace, _, _ := strings.Cut(operator, "/")
	return namespace
}

// blockFor returns the block of an operator, and creates it if necessary.
func (m *planBuilder) blockFor(op *operator) *block {
	for _, b := range m.blocks {
		if b.namespace == op.Namespace && b.hasLeftovers == op.hasLeftovers {
			return b
		}
	}
	b := &block{namespace: op.Namespace, hasLeftovers: op.hasLeftovers}
	m.blocks = append(m.blocks, b)
	return b
}
