// Package solve chooses atoms that satisfy constraints, in an order of preference. An atom is a
// small integer with a meaning defined by the caller; the package is independent of operators.
//
// The choices form a queue, which begins with the roots. A choice that contains an already chosen
// atom is skipped. Otherwise the solver chooses the first of its atoms that leads to a complete
// solution, and appends that atom's needs to the queue. The result is unique and sound (every
// constraint is satisfied). The search is complete (it finds a solution if there is one) and
// chooses only atoms that a choice needs.
//
// If there is no solution, the result is a minimal unsatisfiable core: tags of constraints that
// contradict each other, but have a solution if any one of the tags is removed.
//
// Start from [Problem], [Solve] and [Result].
package solve

import "errors"

// Problem is a set of constraints. Atoms are numbered from 1 to Atoms. A tag is the caller's
// identifier of a constraint. Constraints with the same tag are kept or dropped together in a core.
// Solve does not modify a Problem.
type Problem struct {
	Atoms  int
	Roots  []Choice   // in order of preference
	Needs  [][]Choice // by atom: its needs if chosen; may be shorter than Atoms+1
	Groups []Group    // at most one atom of each may be chosen
	Bans   []Ban      // atoms that may not be chosen
	Links  []Link     // consequences, for facts that several atoms share
	Aux    int        // further atoms Atoms+1 … Atoms+Aux: facts, never chosen, true only by a Link
}

// Choice requires at least one of its atoms.
type Choice struct {
	Of   []int // the atoms, preferred ones first
	Also []int // atoms that also meet the choice; the last resort if none of Of is possible
	Soft bool  // for a root: skipped if it cannot be met; its tag is in no core
	Tag  int
}

// Group permits at most one of its atoms.
type Group struct {
	Of  []int
	Tag int
}

// Ban forbids an atom.
type Ban struct {
	Atom int
	Tag  int
}

// Link makes the fact To true if From is true. It has no tag, because it is a definition.
type Link struct {
	From, To int
}

// Result is a solution, or an unsatisfiable core if there is none.
type Result struct {
	Chosen []int // in order of choice; nil: no solution
	Core   []int // tags, ascending, without duplicates; nil if there is a solution
}

// ErrTooHard is returned if the search exceeds its limit of conflicts.
var ErrTooHard = errors.New("the search reached its limit without a result")

// maxConflicts limits the conflicts of one search. Real catalogs cause a few; the limit protects
// against hostile ones.
const maxConflicts = 10_000

// Solve returns the preferred solution of a Problem, or a minimal unsatisfiable core. The error is
// ErrTooHard or nil.
func Solve(p Problem) (Result, error) {
	s := load(&p, false)
	if s.ok {
		if chosen, ok := solveGreedily(&p, s); ok {
			return Result{Chosen: chosen}, nil
		}
		if chosen, ok, err := solveExactly(&p, s); ok || err != nil {
			return Result{Chosen: chosen}, err
		}
	}
	core, err := minimalCore(&p)
	return Result{Core: core}, err
}

// keepTags returns p with only the constraints of the given tags.
func keepTags(p Problem, tags map[int]bool) Problem {
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
