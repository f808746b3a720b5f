package solve

import "slices"

// queue holds the choices that must still be made, in order.
type queue struct {
	p       *Problem
	pending []Choice
	have    []bool
	chosen  []int
}

func newQueue(p *Problem) *queue {
	return &queue{p: p, pending: append([]Choice(nil), p.Roots...), have: make([]bool, p.Atoms+1)}
}

// next returns the first choice that no chosen atom satisfies. It returns false if there is none.
func (q *queue) next() (Choice, bool) {
	for len(q.pending) > 0 {
		c := q.pending[0]
		q.pending = q.pending[1:]
		isMet := slices.ContainsFunc(c.Of, q.has) || slices.ContainsFunc(c.Also, q.has)
		if !isMet {
			return c, true
		}
	}
	return Choice{}, false
}

func (q *queue) has(atom int) bool { return q.have[atom] }

// choose records atom as chosen and appends its needs to the queue.
func (q *queue) choose(atom int) {
	q.have[atom] = true
	q.chosen = append(q.chosen, atom)
	if atom < len(q.p.Needs) {
		q.pending = append(q.pending, q.p.Needs[atom]...)
	}
}

// solveGreedily makes the choices in order. It excludes atoms by unit propagation only. If it finds an atom for
// every choice, the result is the preferred solution: an atom that propagation excludes cannot be part of any
// solution. It returns false if no atom is left for a choice.
func solveGreedily(p *Problem, s *sat) ([]int, bool) {
	defer s.backtrack(0)
	q := newQueue(p)
	for c, ok := q.next(); ok; c, ok = q.next() {
		atom, found := firstPossible(c, func(a int) bool { return s.try(positiveLit(a)) })
		switch {
		case found:
			q.choose(atom)
		case !c.Soft:
			return nil, false
		}
	}
	return q.chosen, true
}

// solveExactly makes the choices in order. Before it chooses an atom, it checks with the complete solver that a
// solution remains. It returns false if there is no solution.
func solveExactly(p *Problem, s *sat) ([]int, bool, error) {
	var taken []lit
	test := func(more ...lit) (bool, error) {
		return s.solve(append(taken[:len(taken):len(taken)], more...))
	}
	if ok, err := test(); !ok || err != nil {
		return nil, false, err
	}
	q := newQueue(p)
	for c, ok := q.next(); ok; c, ok = q.next() {
		var fault error
		atom, found := firstPossible(c, func(a int) bool {
			if fault != nil {
				return false
			}
			if s.model[a] {
				return true // the last model is a solution with this atom and all chosen ones
			}
			ok, err := test(positiveLit(a))
			fault = err
			return ok
		})
		switch {
		case found:
			taken = append(taken, positiveLit(atom))
			q.choose(atom)
		case fault != nil || !c.Soft:
			return nil, false, fault
		}
	}
	return q.chosen, true, nil
}

func firstPossible(c Choice, can func(int) bool) (int, bool) {
	for _, a := range c.Of {
		if can(a) {
			return a, true
		}
	}
	for _, a := range c.Also {
		if can(a) {
			return a, true
		}
	}
	return 0, false
}

// load returns a solver with the constraints of p. If selectors is true, every tag has a selector literal. The
// constraints of a tag apply only while the selector literal of the tag is assumed.
func load(p *Problem, selectors bool) *sat {
	b := loader{s: newSAT(p.Atoms + p.Aux + 1), selectors: selectors, sel: map[int]lit{}}
	rules := len(p.Links) + len(p.Roots) + len(p.Bans)
	for _, needs := range p.Needs {
		rules += len(needs)
	}
	b.s.clauses = make([][]lit, 0, rules)
	for _, l := range p.Links {
		b.s.addClause(negativeLit(l.From), positiveLit(l.To))
	}
	for _, c := range p.Roots {
		if !c.Soft {
			b.addChoice(c.Tag, 0, c)
		}
	}
	for atom, needs := range p.Needs {
		for _, c := range needs {
			b.addChoice(c.Tag, atom, c)
		}
	}
	for _, g := range p.Groups {
		b.s.addGroup(positiveLits(g.Of), b.selector(g.Tag))
	}
	for _, ban := range p.Bans {
		b.s.addClause(b.withSelector(ban.Tag, negativeLit(ban.Atom))...)
	}
	b.s.tagOf = b.tagOf
	return b.s
}

type loader struct {
	s         *sat
	selectors bool
	sel       map[int]lit
	tagOf     map[lit]int
}

// selector returns the selector literal of a tag. Without selectors, it returns noLit.
func (b *loader) selector(tag int) lit {
	if !b.selectors {
		return noLit
	}
	if l, ok := b.sel[tag]; ok {
		return l
	}
	l := positiveLit(b.s.newVar())
	b.sel[tag] = l
	if b.tagOf == nil {
		b.tagOf = map[lit]int{}
	}
	b.tagOf[l] = tag
	return l
}

func (b *loader) withSelector(tag int, lits ...lit) []lit {
	if l := b.selector(tag); l != noLit {
		lits = append(lits, l.not())
	}
	return lits
}

func (b *loader) addChoice(tag, atom int, c Choice) {
	lits := make([]lit, 0, len(c.Of)+len(c.Also)+2)
	if atom != 0 {
		lits = append(lits, negativeLit(atom))
	}
	lits = append(lits, positiveLits(c.Of)...)
	lits = append(lits, positiveLits(c.Also)...)
	b.s.addClause(b.withSelector(tag, lits...)...)
}

func positiveLits(atoms []int) []lit {
	lits := make([]lit, len(atoms))
	for i, a := range atoms {
		lits[i] = positiveLit(a)
	}
	return lits
}
