package solve

import (
	"fmt"
	"testing"

	"github.com/crillab/gophersat/solver"
	"pgregory.net/rapid"
)

// clauses returns the constraints of p as an ordinary SAT problem for an independent solver. Each pair of atoms
// in a group becomes a clause: if groups are cardinality constraints, gophersat reports some unsatisfiable
// problems as satisfiable.
func clauses(p *Problem) [][]int {
	var cnf [][]int
	choice := func(atom int, c Choice) {
		var clause []int
		if atom != 0 {
			clause = append(clause, -atom)
		}
		cnf = append(cnf, append(append(clause, c.Of...), c.Also...))
	}
	for _, c := range p.Roots {
		choice(0, c)
	}
	for atom, needs := range p.Needs {
		for _, c := range needs {
			choice(atom, c)
		}
	}
	for _, g := range p.Groups {
		for i, a := range g.Of {
			for _, b := range g.Of[i+1:] {
				if a != b {
					cnf = append(cnf, []int{-a, -b})
				}
			}
		}
	}
	for _, b := range p.Bans {
		cnf = append(cnf, []int{-b.Atom})
	}
	for _, l := range p.Links {
		cnf = append(cnf, []int{-l.From, l.To})
	}
	return cnf
}

// gophersatSolves reports whether gophersat finds a solution.
func gophersatSolves(p *Problem) bool {
	cnf := clauses(p)
	for _, c := range cnf {
		if len(c) == 0 {
			return false // gophersat's parser ignores empty clauses
		}
	}
	s := solver.New(solver.ParseSliceNb(cnf, p.Atoms+p.Aux))
	return s.Solve() == solver.Sat
}

// TestSolveAgreesWithGophersat compares the solver with an independent implementation.
func TestSolveAgreesWithGophersat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if want := gophersatSolves(&p); want != (got.Core == nil) {
			t.Fatalf("satisfiable according to gophersat: %v, core: %v", want, got.Core)
		}
	})
}

// tower returns a problem like those of real catalogs: a chain of packages, as long as depth, each with the
// given number of versions. Version v of a package needs version v or v+1 of the next package. If dead is true,
// all versions of the last package are banned.
func tower(depth, versions int, dead bool) Problem {
	p := Problem{Atoms: depth * versions, Needs: make([][]Choice, depth*versions+1)}
	atom := func(d, v int) int { return d*versions + v + 1 }
	all := func(d int) []int {
		var of []int
		for v := range versions {
			of = append(of, atom(d, v))
		}
		return of
	}
	p.Roots = []Choice{{Of: all(0), Tag: 1}}
	for d := range depth {
		p.Groups = append(p.Groups, Group{Of: all(d), Tag: 100 + d})
		for v := range versions {
			switch {
			case d < depth-1:
				p.Needs[atom(d, v)] = []Choice{{Of: []int{atom(d+1, v), atom(d+1, (v+1)%versions)}, Tag: 1000 + atom(d, v)}}
			case dead || v%2 == 0:
				p.Bans = append(p.Bans, Ban{Atom: atom(d, v), Tag: 1_000_000 + v})
			}
		}
	}
	return p
}

// BenchmarkSolve compares Solve, which returns the preferred answer, with one satisfiability check
// by gophersat. The preferred answer would need many such checks.
func BenchmarkSolve(b *testing.B) {
	for _, size := range []struct{ depth, versions int }{{5, 20}, {10, 50}, {20, 100}} {
		p := tower(size.depth, size.versions, false)
		name := fmt.Sprintf("%dx%d", size.depth, size.versions)
		b.Run(name+"/preferred", func(b *testing.B) {
			for b.Loop() {
				if got, err := Solve(p); err != nil || got.Core != nil {
					b.Fatal(got.Core, err)
				}
			}
		})
		b.Run(name+"/gophersat", func(b *testing.B) {
			for b.Loop() {
				if !gophersatSolves(&p) {
					b.Fatal("unsatisfiable")
				}
			}
		})
	}
	p := tower(5, 20, true)
	b.Run("5x20/minimal-core", func(b *testing.B) {
		for b.Loop() {
			if got, err := Solve(p); err != nil || got.Core == nil {
				b.Fatal(got.Chosen, err)
			}
		}
	})
}
