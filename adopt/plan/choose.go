package plan

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/adopt"
)

// choose says which operators are taken over, and why the others are left to OLM.
func (m *maker) choose() error {
	if err := m.known(); err != nil {
		return err
	}
	reasons := map[string][]string{}
	for i := range m.Report.Operators {
		op := &m.Report.Operators[i]
		m.whose[name(op)] = op
		switch {
		case !m.adoptable(op):
		case len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, op.Namespace):
			reasons[name(op)] = []string{"its namespace was not asked for"}
		default:
			m.taken[name(op)] = true
			reasons[name(op)] = m.refusals(op)
		}
	}
	m.tie(reasons)
	for i := range m.Report.Operators {
		op := &m.Report.Operators[i]
		switch why := reasons[name(op)]; {
		case len(why) > 0:
			m.taken[name(op)] = false
			m.plan.Left = append(m.plan.Left, Left{Namespace: op.Namespace, Package: op.Package, Reasons: why})
		case m.taken[name(op)]:
			b := m.block(op)
			b.operators = append(b.operators, op)
			m.plan.Operators = append(m.plan.Operators, m.operator(op))
		}
	}
	for _, b := range m.blocks {
		b.operators = m.dependentsFirst(b.operators)
	}
	slices.SortStableFunc(m.blocks, func(x, y *block) int { return compareBool(x.sheds, y.sheds) })
	return nil
}

// known demands that OLM has something in each namespace that was asked for.
func (m *maker) known() error {
	for _, namespace := range m.Namespaces {
		if !slices.ContainsFunc(m.Report.Operators, func(op adopt.Operator) bool { return op.Namespace == namespace }) {
			return fmt.Errorf("no operator is installed in namespace %q", namespace)
		}
	}
	return nil
}

// adoptable reports whether OLM has something of an operator: the operator itself,
// or what it left of one that was taken over, beside it or in its objects.
func (m *maker) adoptable(op *adopt.Operator) bool {
	switch op.State {
	case adopt.Adoptable, adopt.WithRestart, adopt.Blocked:
		return true
	case adopt.AlreadyAdopted:
		return m.sheds(op) || slices.ContainsFunc(op.Objects, func(o adopt.Object) bool { return m.cleaned(m.item(o)) })
	case adopt.NotOLM:
		return m.sheds(op)
	}
	return false
}

// refusals returns why an operator is not taken over, whatever becomes of the
// others.
func (m *maker) refusals(op *adopt.Operator) []string {
	var out []string
	if op.State == adopt.Blocked {
		for _, r := range op.Reasons {
			out = append(out, r.Message)
		}
	}
	if m.sheds(op) {
		return m.unserved(op)
	}
	for _, ref := range m.distrusted(op) {
		out = append(out, ref.String()+" does not have the CA of the certificate that OLM issued, so that what calls the operator would be refused: run quayside adopt inspect --record, which reads the CA from the cluster, and quayside render")
	}
	for _, o := range m.Report.Shared {
		if o.Goes != adopt.AtDetach || !slices.Contains(o.Operators, name(op)) {
			continue
		}
		for _, other := range o.Operators {
			if namespaceOf(other) != op.Namespace {
				out = append(out, o.Key().String()+" says that it is "+other+"'s too, which is in another namespace: find out whose it is, and remove the other label")
			}
		}
	}
	return out
}

// tie adds a reason to what cannot leave OLM without an operator that stays.
func (m *maker) tie(reasons map[string][]string) {
	ties := m.ties()
	for changed := true; changed; {
		changed = false
		for _, t := range ties {
			for _, pair := range [][2]string{{t.a, t.b}, {t.b, t.a}} {
				if m.taken[pair[0]] && len(reasons[pair[0]]) == 0 && len(reasons[pair[1]]) > 0 {
					reasons[pair[0]] = []string{fmt.Sprintf("it is tied to %s, which stays with OLM: %s", pair[1], t.why)}
					changed = true
				}
			}
		}
	}
}

// tie is why two operators of a namespace leave OLM together.
type tie struct{ a, b, why string }

// ties returns what one operator requires of another, and what of OLM's several
// have in common that goes when one of them does.
func (m *maker) ties() []tie {
	var out []tie
	for _, p := range m.Lock.Pins {
		for _, r := range p.Requires {
			if namespaceOf(r.Pin) == p.Namespace {
				out = append(out, tie{p.Key(), r.Pin, p.Key() + " requires " + r.Pin + " (" + r.Requirement + ")"})
			}
		}
	}
	for _, o := range m.Report.Shared {
		if o.Goes == adopt.AtDetach && len(o.Operators) > 0 {
			for _, other := range o.Operators[1:] {
				out = append(out, tie{o.Operators[0], other, o.Key().String() + " is of both"})
			}
		}
	}
	return out
}

// staysWithOLM reports whether an operator is OLM's after the plan as before.
func (m *maker) staysWithOLM(name string) bool {
	op := m.whose[name]
	return op != nil && !m.taken[name] && op.State != adopt.NotOLM && op.State != adopt.AlreadyAdopted
}

// dependentsFirst returns operators so that each comes before those that it
// requires; of what requires one another in a circle nothing is said.
func (m *maker) dependentsFirst(ops []*adopt.Operator) []*adopt.Operator {
	needs := map[string][]string{}
	for _, p := range m.Lock.Pins {
		for _, r := range p.Requires {
			needs[p.Key()] = append(needs[p.Key()], r.Pin)
		}
	}
	var out []*adopt.Operator
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
			if name(op) == at {
				out = append(out, op)
			}
		}
	}
	for _, op := range slices.Backward(ops) {
		visit(name(op))
	}
	slices.Reverse(out)
	return out
}

// operator returns what a plan says of an operator.
func (m *maker) operator(op *adopt.Operator) Operator {
	out := Operator{Namespace: op.Namespace, Package: op.Package, CSV: op.CSV, Forgotten: m.sheds(op)}
	if out.CSV == "" {
		out.CSV = op.Pinned
	}
	for _, o := range op.Objects {
		for _, r := range op.Reasons {
			if r.Code == "restart" && r.Object == o.Key().String() {
				out.Restarts = append(out.Restarts, o.Name)
			}
		}
		if out.Forgotten && m.restarts(m.item(o)) {
			out.Restarts = append(out.Restarts, o.Name)
		}
		if m.plan.Mode == Live && lostLive(o) {
			out.Losses = append(out.Losses, o.Key().String())
		}
	}
	out.Certificates = m.certificatesEnd(op)
	return out
}
