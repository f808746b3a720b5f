// Package solve chooses atoms that satisfy constraints, in an order of preference. An atom is a
// number with a meaning known to the caller: the package does not depend on operators.
//
// The choices are in a queue that begins with the roots. If an atom of a choice is already chosen,
// the choice is met. Otherwise the solver chooses the first of its atoms that leads to a complete
// solution, and appends the needs of this atom to the queue. The result is unique, satisfies every
// constraint, and contains only atoms that a choice needs. If there is a solution, the solver finds
// it.
//
// If there is no solution, the result is a minimal unsatisfiable core: the tags of constraints that contradict
// each other. If any one of these tags is removed, there is a solution.
//
// Start from [Problem], [Solve] and [Result].
package solve

import "errors"

// Problem is a set of constraints on the atoms 1 to Atoms. A tag identifies a constraint for the caller. A core
// contains either all constraints with the same tag, or none. Solve does not modify a Problem.
type Problem struct {
	Atoms  int
	Roots  []Choice   // first choices, in order
	Needs  [][]Choice // Needs[atom]: choices to make if atom is chosen; its length may be less than Atoms+1
	Groups []Group    // sets of atoms, of which at most one can be chosen
	Bans   []Ban      // atoms that cannot be chosen
	Links  []Link     // implications from atoms to auxiliary atoms
	Aux    int        // number of auxiliary atoms, Atoms+1 … Atoms+Aux: facts that a Link makes true and that are never chosen
}

// Choice requires at least one of its atoms.
type Choice struct {
	Of   []int // atoms, most preferred first
	Also []int // atoms that also meet the choice, but are chosen for it only if none of Of is possible
	Soft bool  // for roots only: if the choice cannot be met, it is skipped, and its tag is in no core
	Tag  int
}

// Group allows at most one of its atoms.
type Group struct {
	Of  []int
	Tag int
}

// Ban forbids an atom.
type Ban struct {
	Atom int
	Tag  int
}

// Link makes the auxiliary atom To true if From is true. It has no tag, because it is a definition.
type Link struct {
	From, To int
}

// Result is a solution, or an unsatisfiable core if there is none.
type Result struct {
	Chosen []int // chosen atoms, in the order in which they were chosen; nil if there is no solution
	Core   []int // tags, ascending, without duplicates; nil if there is a solution
}

// ErrTooHard is returned if the search exceeds its limit of conflicts.
var ErrTooHard = errors.New("the search reached its limit without a result")

// maxConflicts is the maximum number of conflicts in one search. Real catalogs cause only a few conflicts. The
// limit protects against hostile catalogs.
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
