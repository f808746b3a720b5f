package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
)

// selectOperators selects the operators to adopt, with their objects. It records the reason for each operator
// that it skips.
func (m *facts) selectOperators() (*selection, error) {
	s := &selection{facts: m, planned: []Operator{}, skipped: []SkippedOperator{}}
	if err := s.checkNamespaces(); err != nil {
		return nil, err
	}
	s.chooseOperators()
	s.assignObjects()
	return s, nil
}

func (m *selection) chooseOperators() {
	for i := range m.Report.Operators {
		op := &operator{Operator: &m.Report.Operators[i], hasLeftovers: m.hasLeftovers(&m.Report.Operators[i])}
		m.operators = append(m.operators, op)
		switch {
		case !m.isAdoptable(op):
		case len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, op.Namespace):
			op.reasons = []string{"its namespace was not selected"}
		default:
			op.adopted = true
			op.reasons = m.refusalReasons(op)
		}
	}
	m.addTies()
	m.separateExtensions()
	m.separateReleases()
	for _, op := range m.operators {
		switch {
		case len(op.reasons) > 0:
			op.adopted = false
			skipped := SkippedOperator{Namespace: op.Namespace, Package: op.Package, Reasons: op.reasons}
			if op.Release != nil {
				skipped.Release = op.Release.Name
			}
			m.skipped = append(m.skipped, skipped)
		case op.adopted:
			b := m.blockFor(op)
			b.operators = append(b.operators, op)
			m.planned = append(m.planned, m.newOperator(op))
		}
	}
	for _, b := range m.blocks {
		b.operators = m.sortDependentsFirst(b.operators)
	}
	slices.SortStableFunc(m.blocks, func(x, y *block) int { return compareBool(x.hasLeftovers, y.hasLeftovers) })
}

// checkNamespaces returns an error if OLM has no operator in a requested namespace.
func (m *selection) checkNamespaces() error {
	for _, namespace := range m.Namespaces {
		if !slices.ContainsFunc(m.Report.Operators, func(op adopt.Operator) bool { return op.Namespace == namespace }) {
			return fmt.Errorf("no operator is installed in namespace %q", namespace)
		}
	}
	return nil
}

// isAdoptable reports whether a plan can do something for an operator: OLM manages the operator, or objects,
// fields or labels of OLM remain.
func (m *selection) isAdoptable(op *operator) bool {
	switch op.State {
	case adopt.Adoptable, adopt.WithRestart, adopt.CannotLeave, adopt.NeedsDecision, adopt.MustWait, adopt.NotSelected:
		return true
	case adopt.AlreadyAdopted:
		return op.hasLeftovers || slices.ContainsFunc(op.Objects, func(o adopt.ClassifiedObject) bool { return needsCleanUp(m.newItem(o)) })
	case adopt.NotOLM:
		return op.hasLeftovers
	}
	return false
}

// refusalReasons returns the reasons why an operator cannot be adopted. It ignores the other operators that
// must leave OLM together with this one.
func (m *selection) refusalReasons(op *operator) []string {
	var out []string
	if op.State.StaysWithOLM() {
		for _, r := range op.Reasons {
			out = append(out, r.Message)
		}
	}
	if op.hasLeftovers {
		return m.unservedReasons(op)
	}
	if op.Extension != "" && m.isOpenShift() {
		return append(out, "OLM v1 manages the operator by ClusterExtension "+op.Extension+", and OpenShift's version operator starts OLM v1 again at any time: a plan is not possible on OpenShift")
	}
	if op.Extension != "" && m.Mode == Live {
		return append(out, "OLM v1 manages the operator by ClusterExtension "+op.Extension+", and restores the owners of its objects while it runs: make the plan without --mode live")
	}
	for _, ref := range m.untrustedObjects(op) {
		if op.Extension != "" || op.Release != nil {
			continue // the certificate provider injects the CA; see newOperator
		}
		out = append(out, ref.String()+" in the tree lacks the CA of OLM's certificate, so the API server would reject the certificate: run 'quayside adopt inspect --record' to record the CA from the cluster, then 'quayside render'")
	}
	for _, o := range m.Report.Shared {
		if o.RemovedAt != adopt.AtDetach || !slices.Contains(o.Operators, op.Key()) {
			continue
		}
		for _, other := range o.Operators {
			if namespaceOf(other) != op.Namespace {
				out = append(out, o.String()+" also has the label of "+other+", which is in another namespace: find its owner, and remove the other label")
			}
		}
	}
	return out
}

// separateExtensions adds a reason to operators of OLM v1 if the plan also adopts operators of OLM v0, because
// 'adopt run' can only execute plans without operators of OLM v1.
func (m *selection) separateExtensions() {
	isAdopted := func(op *operator) bool { return op.adopted && len(op.reasons) == 0 }
	if !slices.ContainsFunc(m.operators, func(op *operator) bool { return isAdopted(op) && op.Extension == "" }) {
		return
	}
	for _, op := range m.operators {
		if isAdopted(op) && op.Extension != "" {
			op.reasons = []string{"OLM v1 manages the operator by ClusterExtension " + op.Extension + ", and this plan is for OLM v0: make a separate plan when the other operators of its namespace have left OLM ('quayside adopt plan --namespace " + op.Namespace + "')"}
		}
	}
}

// addTies adds a reason to each operator that must leave OLM together with an operator that is not
// adopted.
func (m *selection) addTies() {
	ties := m.ties()
	for changed := true; changed; {
		changed = false
		for _, t := range ties {
			for _, pair := range [][2]*operator{{t.a, t.b}, {t.b, t.a}} {
				one, other := pair[0], pair[1]
				if one.adopted && len(one.reasons) == 0 && len(other.reasons) > 0 {
					one.reasons = []string{fmt.Sprintf("the operator can leave OLM only together with %s, which stays with OLM: %s", other.Key(), t.why)}
					changed = true
				}
			}
		}
	}
}

// tie is a pair of operators in one namespace that must leave OLM together, with the reason.
type tie struct {
	a, b *operator
	why  string
}

// ties returns the pairs of operators in one namespace that must leave OLM together. Either one of the two
// requires the other, or both share an object of OLM that the detach step deletes.
func (m *selection) ties() []tie {
	var out []tie
	add := func(a, b, why string) {
		if x, y := m.find(a), m.find(b); x != nil && y != nil {
			out = append(out, tie{x, y, why})
		}
	}
	for _, p := range m.Lock.Pins {
		for _, r := range p.Requires {
			if namespaceOf(r.Pin) == p.Namespace {
				add(p.Key(), r.Pin, p.Key()+" requires "+r.Pin+" ("+r.Requirement+")")
			}
		}
	}
	for _, o := range m.Report.Shared {
		if o.RemovedAt == adopt.AtDetach && len(o.Operators) > 0 {
			for _, other := range o.Operators[1:] {
				add(o.Operators[0], other, o.String()+" belongs to both")
			}
		}
	}
	return out
}

// staysWithOLM reports whether OLM will still manage an operator after the plan.
func (m *selection) staysWithOLM(key string) bool {
	op := m.find(key)
	return op != nil && !op.adopted && op.State != adopt.NotOLM && op.State != adopt.AlreadyAdopted
}

// sortDependentsFirst sorts operators so that each comes before the operators that it requires. Within a cycle,
// the order is undefined.
func (m *selection) sortDependentsFirst(ops []*operator) []*operator {
	needs := map[string][]string{}
	for _, p := range m.Lock.Pins {
		for _, r := range p.Requires {
			needs[p.Key()] = append(needs[p.Key()], r.Pin)
		}
	}
	var out []*operator
	seen := map[string]bool{}
	var visit func(string)
	visit = func(at string) {
		if seen[at] {
			return
		}
		seen[at] = true
		for _, other := range slices.Sorted(slices.Values(needs[at])) {
			visit(other)
		}
		for _, op := range ops {
			if op.Key() == at {
				out = append(out, op)
			}
		}
	}
	for _, op := range slices.Backward(ops) {
		visit(op.Key())
	}
	slices.Reverse(out)
	return out
}

// newOperator returns the plan's entry for an operator.
func (m *selection) newOperator(op *operator) Operator {
	out := Operator{Namespace: op.Namespace, Package: op.Package, CSV: cmp.Or(op.CSV, op.Pinned), Extension: op.Extension, Detached: op.hasLeftovers}
	if op.Release != nil {
		out.Release, out.Hooks = op.Release.Name, op.Release.Hooks
	}
	if op.Extension != "" {
		for _, ref := range m.untrustedObjects(op) {
			out.Losses = append(out.Losses, ref.String())
		}
	}
	for _, o := range op.Objects {
		for _, r := range op.Reasons {
			if r.Code == "restart" && r.Object == o.String() {
				out.Restarts = append(out.Restarts, o.Name)
			}
		}
		if out.Detached && m.needsRestart(m.newItem(o)) {
			out.Restarts = append(out.Restarts, o.Name)
		}
		if m.Mode == Live && isLostInLiveMode(o) {
			out.Losses = append(out.Losses, o.String())
		}
	}
	out.Certificates = m.certificateExpiry(op)
	return out
}
