// Package solve chooses atoms that satisfy constraints, in an order of
// preference. An atom is a small integer; what it stands for is the caller's
// business, and nothing here knows of operators.
//
// The order is that of a queue. The roots stand in it first. A choice that an
// atom already chosen meets adds nothing; else the first of its atoms with
// which everything can still be completed is chosen, and the choices that this
// atom needs go to the end of the queue. The answer is the only one that this
// description allows: it is sound (every constraint holds), complete (if there
// is any answer, one is found) and nothing is chosen that no choice asked for.
//
// When there is no answer, the result is a minimal core: tags whose constraints
// alone cannot hold together, and can as soon as any one of them is dropped.
//
// Start from [Problem], [Solve] and [Result].
package solve

import "errors"

// Problem is what must hold. Atoms are 1 … Atoms. Tags are the caller's names
// for constraints; several constraints may share one, and are then kept or
// dropped together in a core. Nothing in a Problem is modified.
type Problem struct {
	Atoms  int
	Roots  []Choice   // in order of preference
	Needs  [][]Choice // by atom: what choosing it needs; may be shorter than Atoms+1
	Groups []Group    // at most one atom of each may be chosen
	Bans   []Ban      // atoms that may not be chosen
	Links  []Link     // consequences, for facts that several atoms share
	Aux    int        // further atoms Atoms+1 … Atoms+Aux: facts, never chosen, true only by a Link
}

// Choice is met by any one of its atoms.
type Choice struct {
	Of   []int // the atoms, preferred ones first
	Also []int // atoms that meet the choice as well, chosen for its sake only when nothing in Of can be
	Soft bool  // of a root: left where nothing can meet it; its tag is in no core
	Tag  int
}

// Group lets at most one of its atoms hold.
type Group struct {
	Of  []int
	Tag int
}

// Ban forbids an atom.
type Ban struct {
	Atom int
	Tag  int
}

// Link says that where From holds, the fact To holds. It has no tag: it is a
// definition.
type Link struct {
	From, To int
}

// Result is an answer, or the reason why there is none.
type Result struct {
	Chosen []int // in the order in which they were chosen; nil where there is no answer
	Core   []int // tags, ascending, without repeats; nil where there is an answer
}

// ErrTooHard is returned when the search met more conflicts than it may.
var ErrTooHard = errors.New("the constraints are too hard to decide")

// maxConflicts bounds the conflicts of one search. Real catalogs meet a
// few; the bound is there for hostile ones.
const maxConflicts = 10_000

// Solve returns the answer that Problem's order prefers, or a minimal core.
// The error is ErrTooHard or nil.
func Solve(p Problem) (Result, error) {
	s := load(&p, false)
	if s.ok {
		if chosen, ok := greedy(&p, s); ok {
			return Result{Chosen: chosen}, nil
		}
		if chosen, ok, err := careful(&p, s); ok || err != nil {
			return Result{Chosen: chosen}, err
		}
	}
	core, err := minimalCore(&p)
	return Result{Core: core}, err
}

// keep returns p with only the constraints of the given tags.
func keep(p Problem, tags map[int]bool) Problem {
	q := Problem{Atoms: p.Atoms, Aux: p.Aux, Links: p.Links, Needs: make([][]Choice, len(p.Needs))}
	for _, c := range p.Roots {
		if tags[c.Tag] {
			q.Roots = append(q.Roots, c)
		}
	}
	for atom, needs := range p.Needs {
		for _, c := range needs {
			if tags[c.Tag] {
				q.Needs[atom] = append(q.Needs[atom], c)
			}
		}
	}
	for _, g := range p.Groups {
		if tags[g.Tag] {
			q.Groups = append(q.Groups, g)
		}
	}
	for _, b := range p.Bans {
		if tags[b.Tag] {
			q.Bans = append(q.Bans, b)
		}
	}
	return q
}
