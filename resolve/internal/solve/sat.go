package solve

import "slices"

// lit is a literal: 2a for atom a, and 2a+1 for its negation.
type lit int32

const noLit lit = -1

func positiveLit(atom int) lit { return lit(atom << 1) }
func negativeLit(atom int) lit { return lit(atom<<1 | 1) }
func (l lit) not() lit         { return l ^ 1 }
func (l lit) atom() int        { return int(l >> 1) }
func (l lit) isNegative() bool { return l&1 == 1 }

// reason is the constraint that forced an assignment: a clause, or an at-most-one group with its
// true member.
type reason struct {
	clause int32 // index of the clause, or -1
	other  lit   // the true member, if group ≥ 0
	group  int32 // index of the group, or -1
}

func noReason() reason { return reason{clause: -1, group: -1} }

// sat is an incremental SAT solver for clauses and at-most-one groups, under assumptions. It uses
// conflict-driven clause learning (CDCL) with two watched literals. It is deterministic: the same
// calls give the same results.
//
// The solver can undo propagation, and does not expand groups to clauses. BenchmarkSolve compares it with
// gophersat, which the tests use as a reference.
type sat struct {
	ok        bool // false if unsatisfiable even without assumptions
	value     []int8
	level     []int32
	why       []reason
	phase     []bool
	seen      []bool
	trail     []lit
	limits    []int
	head      int
	clauses   [][]lit
	watches   [][]int32 // watches[l]: indexes of the clauses that watch literal l
	groups    [][]lit
	groupSel  []lit
	memberOf  [][]int32 // memberOf[atom]: indexes of the groups with a literal of the atom
	selects   [][]int32 // selects[atom]: indexes of the groups that apply only if the atom is true
	order     heap
	model     []bool
	final     []lit // after solve returned false: assumptions that contradict each other
	tagOf     map[lit]int
	conflicts int
}

func newSAT(atoms int) *sat {
	s := &sat{
		ok: true, value: make([]int8, atoms), level: make([]int32, atoms), why: make([]reason, atoms), phase: make([]bool, atoms),
		seen: make([]bool, atoms), watches: make([][]int32, 2*atoms), memberOf: make([][]int32, atoms), selects: make([][]int32, atoms),
	}
	for a := range s.why {
		s.why[a] = noReason()
	}
	s.order.grow(atoms)
	return s
}

func (s *sat) newVar() int {
	v := len(s.value)
	s.value = append(s.value, 0)
	s.level = append(s.level, 0)
	s.why = append(s.why, noReason())
	s.phase = append(s.phase, false)
	s.seen = append(s.seen, false)
	s.watches = append(s.watches, nil, nil)
	s.memberOf = append(s.memberOf, nil)
	s.selects = append(s.selects, nil)
	s.order.grow(v + 1)
	return v
}

// val returns 1 if l is true, -1 if it is false, and 0 if it has no value.
func (s *sat) val(l lit) int8 {
	if l.isNegative() {
		return -s.value[l.atom()]
	}
	return s.value[l.atom()]
}

// addClause adds a clause. It must not be called after the first decision.
func (s *sat) addClause(lits ...lit) {
	lits = slices.Clone(lits)
	slices.Sort(lits)
	lits = slices.Compact(lits)
	for i := 1; i < len(lits); i++ {
		if lits[i] == lits[i-1].not() {
			return
		}
	}
	switch len(lits) {
	case 0:
		s.ok = false
	case 1:
		switch s.val(lits[0]) { // only assign the literal: load propagates after it has added all constraints
		case -1:
			s.ok = false
		case 0:
			s.assign(lits[0], noReason())
		}
	default:
		s.attach(lits)
	}
}

func (s *sat) attach(lits []lit) int32 {
	i := int32(len(s.clauses))
	for _, l := range lits {
		s.order.push(l.atom())
	}
	s.clauses = append(s.clauses, lits)
	s.watches[lits[0]] = append(s.watches[lits[0]], i)
	s.watches[lits[1]] = append(s.watches[lits[1]], i)
	return i
}

// addGroup adds an at-most-one group. The group applies only if sel is true, or always if sel is noLit.
func (s *sat) addGroup(lits []lit, sel lit) {
	lits = slices.Clone(lits)
	slices.Sort(lits)
	lits = slices.Compact(lits)
	if len(lits) < 2 {
		return
	}
	g := int32(len(s.groups))
	s.groups = append(s.groups, lits)
	s.groupSel = append(s.groupSel, sel)
	for _, l := range lits {
		s.memberOf[l.atom()] = append(s.memberOf[l.atom()], g)
		s.order.push(l.atom())
	}
	if sel != noLit {
		s.selects[sel.atom()] = append(s.selects[sel.atom()], g)
	}
}

func (s *sat) assign(l lit, why reason) {
	a := l.atom()
	if l.isNegative() {
		s.value[a] = -1
	} else {
		s.value[a] = 1
	}
	s.level[a] = int32(len(s.limits))
	s.why[a] = why
	s.trail = append(s.trail, l)
}

// propagate performs unit propagation. On a conflict it returns the literals of a false clause,
// otherwise nil.
func (s *sat) propagate() []lit {
	for s.head < len(s.trail) {
		l := s.trail[s.head]
		s.head++
		if bad := s.propagateClauses(l.not()); bad != nil {
			return bad
		}
		if l.isNegative() {
			continue
		}
		if bad := s.propagateGroups(l); bad != nil {
			return bad
		}
	}
	return nil
}

// propagateClauses updates the clauses that watch l, which is now false. On a conflict it returns
// the false clause, otherwise nil.
func (s *sat) propagateClauses(l lit) []lit {
	list := s.watches[l]
	keep := list[:0]
	for n, ci := range list {
		c := s.clauses[ci]
		if c[0] == l {
			c[0], c[1] = c[1], c[0]
		}
		if s.val(c[0]) > 0 {
			keep = append(keep, ci)
			continue
		}
		moved := false
		for k := 2; k < len(c); k++ {
			if s.val(c[k]) >= 0 {
				c[1], c[k] = c[k], c[1]
				s.watches[c[1]] = append(s.watches[c[1]], ci)
				moved = true
				break
			}
		}
		if moved {
			continue
		}
		keep = append(keep, ci)
		if s.val(c[0]) < 0 {
			keep = append(keep, list[n+1:]...)
			s.watches[l] = keep
			return c
		}
		s.assign(c[0], reason{clause: ci, group: -1})
	}
	s.watches[l] = keep
	return nil
}

// propagateGroups makes the other members of the groups of l false, because l is now true. If l is a
// selector, it enables groups. In each of these groups, all members except the true member become false. On a
// conflict, propagateGroups returns the literals of a false clause.
func (s *sat) propagateGroups(l lit) []lit {
	for _, g := range s.memberOf[l.atom()] {
		if sel := s.groupSel[g]; sel != noLit && s.val(sel) <= 0 {
			continue
		}
		if bad := s.exclude(g, l); bad != nil {
			return bad
		}
	}
	for _, g := range s.selects[l.atom()] {
		for _, m := range s.groups[g] {
			if s.val(m) <= 0 {
				continue
			}
			if bad := s.exclude(g, m); bad != nil {
				return bad
			}
			break
		}
	}
	return nil
}

// exclude assigns false to every member of group g other than l. If another member is already true, it returns
// the conflict as the literals of a false clause.
func (s *sat) exclude(g int32, l lit) []lit {
	for _, m := range s.groups[g] {
		if m == l {
			continue
		}
		switch s.val(m) {
		case 0:
			s.assign(m.not(), reason{clause: -1, other: l, group: g})
		case 1:
			bad := []lit{l.not(), m.not()}
			if sel := s.groupSel[g]; sel != noLit {
				bad = append(bad, sel.not())
			}
			return bad
		}
	}
	return nil
}

// antecedents returns the literals of the clause or group that forced atom a. The literals of a clause include
// the literal of a itself. If a was decided, assumed or set by a unit clause, it returns nil.
func (s *sat) antecedents(a int) []lit {
	w := s.why[a]
	switch {
	case w.clause >= 0:
		return s.clauses[w.clause]
	case w.group >= 0:
		if sel := s.groupSel[w.group]; sel != noLit {
			return []lit{w.other.not(), sel.not()}
		}
		return []lit{w.other.not()}
	}
	return nil
}

// try assumes l on a new decision level and propagates. On a conflict, it undoes the level and
// returns false.
func (s *sat) try(l lit) bool {
	if s.head < len(s.trail) && len(s.limits) == 0 && s.propagate() != nil {
		s.ok = false
	}
	if !s.ok || s.val(l) < 0 {
		return false
	}
	s.limits = append(s.limits, len(s.trail))
	if s.val(l) == 0 {
		s.assign(l, noReason())
	}
	if s.propagate() != nil {
		s.backtrack(len(s.limits) - 1)
		return false
	}
	return true
}

// backtrack undoes all assignments above a decision level.
func (s *sat) backtrack(level int) {
	if len(s.limits) <= level {
		return
	}
	from := s.limits[level]
	for i := len(s.trail) - 1; i >= from; i-- {
		a := s.trail[i].atom()
		s.phase[a] = s.value[a] > 0
		s.value[a] = 0
		s.why[a] = noReason()
		s.order.push(a)
	}
	s.trail = s.trail[:from]
	s.limits = s.limits[:level]
	s.head = from
}
