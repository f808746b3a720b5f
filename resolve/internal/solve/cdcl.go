package solve

// solve reports whether the constraints and the assumptions are satisfiable. If they are, s.model
// is a solution. If not, s.final contains assumptions that contradict each other.
func (s *sat) solve(assume []lit) (bool, error) {
	s.final = nil
	s.backtrack(0)
	if !s.ok {
		return false, nil
	}
	for {
		if bad := s.propagate(); bad != nil {
			if len(s.limits) == 0 {
				s.ok = false
				return false, nil
			}
			if s.conflicts++; s.conflicts > maxConflicts {
				return false, ErrTooHard
			}
			s.learn(bad)
			continue
		}
		if done, sat := s.decide(assume); done {
			return sat, nil
		}
	}
}

// decide assigns the next assumption or, if there is none left, the next atom of the heap. done is
// true if the search has ended: every constrained atom has a value, or an assumption is false.
func (s *sat) decide(assume []lit) (done, satisfiable bool) {
	for len(s.limits) < len(assume) {
		l := assume[len(s.limits)]
		switch s.val(l) {
		case -1:
			s.final = s.failedAssumptions(l)
			s.backtrack(0)
			return true, false
		case 1:
			s.limits = append(s.limits, len(s.trail)) // the assumption is already true: add an empty level, so that assumption i has level i
			continue
		}
		s.limits = append(s.limits, len(s.trail))
		s.assign(l, noReason())
		return false, false
	}
	for {
		a, ok := s.order.pop()
		if !ok {
			s.saveModel()
			s.backtrack(0)
			return true, true
		}
		if s.value[a] != 0 {
			continue
		}
		l := negativeLit(a)
		if s.phase[a] && !s.isSelector(a) {
			l = positiveLit(a)
		}
		s.limits = append(s.limits, len(s.trail))
		s.assign(l, noReason())
		return false, false
	}
}

// isSelector reports whether atom a is the selector of a tag. A constraint with a tag applies only
// while the selector of its tag is assumed.
func (s *sat) isSelector(a int) bool {
	_, is := s.tagOf[positiveLit(a)]
	return is
}

func (s *sat) saveModel() {
	if len(s.model) != len(s.value) {
		s.model = make([]bool, len(s.value))
	}
	for a, v := range s.value {
		s.model[a] = v > 0
	}
}

// learn analyses a conflict: it derives the clause of the first unique implication point,
// backtracks to the level at which this clause is unit, and assigns its remaining literal. bad are
// the literals of a false clause.
func (s *sat) learn(bad []lit) {
	clause := []lit{noLit}
	var marked []int
	here := int32(len(s.limits))
	open, at := 0, len(s.trail)-1
	mark := func(lits []lit, skip int) {
		for _, l := range lits {
			a := l.atom()
			if a == skip || s.seen[a] || s.level[a] == 0 {
				continue
			}
			s.seen[a] = true
			marked = append(marked, a)
			s.order.bump(a)
			if s.level[a] == here {
				open++
			} else {
				clause = append(clause, l)
			}
		}
	}
	mark(bad, -1)
	for {
		for !s.seen[s.trail[at].atom()] {
			at--
		}
		l := s.trail[at]
		at--
		if open--; open == 0 {
			clause[0] = l.not()
			break
		}
		mark(s.antecedents(l.atom()), l.atom())
	}
	for _, a := range marked {
		s.seen[a] = false
	}
	s.order.decay()
	back := 0
	for i := 1; i < len(clause); i++ {
		if lv := int(s.level[clause[i].atom()]); lv > back {
			back = lv
			clause[1], clause[i] = clause[i], clause[1]
		}
	}
	s.backtrack(back)
	if len(clause) == 1 {
		s.assign(clause[0], noReason())
		return
	}
	s.assign(clause[0], reason{clause: s.attach(clause), group: -1})
}

// failedAssumptions returns assumption l, and the assumptions that together contradict l.
func (s *sat) failedAssumptions(l lit) []lit {
	out := []lit{l}
	if s.level[l.atom()] == 0 {
		return out
	}
	var marked []int
	mark := func(lits []lit) {
		for _, m := range lits {
			if a := m.atom(); !s.seen[a] && s.level[a] > 0 {
				s.seen[a] = true
				marked = append(marked, a)
			}
		}
	}
	mark([]lit{l})
	for i := len(s.trail) - 1; i >= 0; i-- {
		a := s.trail[i].atom()
		if !s.seen[a] {
			continue
		}
		if lits := s.antecedents(a); lits != nil {
			mark(lits)
		} else if s.trail[i] != l.not() {
			out = append(out, s.trail[i])
		}
	}
	for _, a := range marked {
		s.seen[a] = false
	}
	return out
}
