package solve

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSolvePrefersInOrder checks which candidates are chosen if there are several solutions.
func TestSolvePrefersInOrder(t *testing.T) {
	tests := map[string]struct {
		p    Problem
		want []int
	}{
		"first candidate": {
			p:    Problem{Atoms: 2, Roots: []Choice{{Of: []int{2, 1}, Tag: 1}}},
			want: []int{2},
		},
		"a choice already met adds nothing": {
			p:    Problem{Atoms: 3, Roots: []Choice{{Of: []int{1}}, {Of: []int{2, 1}}}},
			want: []int{1},
		},
		"needs are met after every root": {
			p: Problem{
				Atoms: 4, Roots: []Choice{{Of: []int{1}}, {Of: []int{3, 2}}},
				Needs: [][]Choice{1: {{Of: []int{2, 4}}}}, Groups: []Group{{Of: []int{2, 3}}},
			},
			want: []int{1, 3, 4},
		},
		"another candidate of a need before another root": { // 1 prefers 3, which needs a banned atom
			p: Problem{
				Atoms: 5, Roots: []Choice{{Of: []int{1, 2}}},
				Needs: [][]Choice{1: {{Of: []int{3, 4}}}, 3: {{Of: []int{5}}}}, Bans: []Ban{{Atom: 5}},
			},
			want: []int{1, 4},
		},
		"a soft root is skipped only if nothing can meet it": {
			p: Problem{
				Atoms: 4, Roots: []Choice{{Of: []int{1}}, {Of: []int{2}, Soft: true}, {Of: []int{4}, Soft: true}},
				Needs: [][]Choice{1: {{Of: []int{3}}}}, Groups: []Group{{Of: []int{2, 3}}},
			},
			want: []int{1, 4, 3},
		},
		"a root's preference yields if nothing else can": {
			p: Problem{
				Atoms: 3, Roots: []Choice{{Of: []int{1, 2}}},
				Needs: [][]Choice{1: {{Of: []int{3}}}}, Bans: []Ban{{Atom: 3}},
			},
			want: []int{2},
		},
		"the earlier root keeps its preference": {
			p: Problem{
				Atoms: 4, Roots: []Choice{{Of: []int{1, 2}}, {Of: []int{3, 4}}},
				Groups: []Group{{Of: []int{1, 3}}},
			},
			want: []int{1, 4},
		},
		"Also is allowed, with the lowest preference": {
			p:    Problem{Atoms: 3, Roots: []Choice{{Of: []int{1}}, {Of: []int{2}, Also: []int{1}}}},
			want: []int{1},
		},
		"conflicting facts": {
			p: Problem{
				Atoms: 3, Aux: 2, Roots: []Choice{{Of: []int{1}}, {Of: []int{2, 3}}},
				Links: []Link{{1, 4}, {2, 5}}, Groups: []Group{{Of: []int{4, 5}}},
			},
			want: []int{1, 3},
		},
		"deep backtracking": { // every combination of 1 and 3 fails two levels down
			p: Problem{
				Atoms: 8, Roots: []Choice{{Of: []int{1, 2}}, {Of: []int{3, 4}}},
				Needs:  [][]Choice{1: {{Of: []int{5, 6}}}, 3: {{Of: []int{7, 8}}}, 5: {{Of: []int{8}}}, 6: {{Of: []int{8}}}, 8: {{Of: []int{2}}}},
				Groups: []Group{{Of: []int{1, 2}}},
			},
			want: []int{2, 3, 7},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Solve(tt.p)
			if err != nil || got.Core != nil {
				t.Fatalf("Solve: core %v, error %v", got.Core, err)
			}
			if diff := cmp.Diff(tt.want, got.Chosen); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSolveReturnsMinimalCore checks the core of problems without a solution.
func TestSolveReturnsMinimalCore(t *testing.T) {
	p := Problem{
		Atoms: 5,
		Roots: []Choice{{Of: []int{1, 2}, Tag: 1}, {Of: []int{3}, Tag: 2}, {Of: []int{5}, Tag: 3}},
		Needs: [][]Choice{1: {{Of: []int{4}, Tag: 4}}, 2: {{Of: []int{4}, Tag: 4}}},
		Groups: []Group{
			{Of: []int{3, 4}, Tag: 5},
			{Of: []int{1, 2}, Tag: 6},
		},
	}
	got, err := Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 4, 5}, got.Core); diff != "" {
		t.Errorf("core (-want +got):\n%s", diff)
	}
}

// drawProblem draws a small problem with all kinds of constraints.
func drawProblem(t *rapid.T) Problem {
	atoms := rapid.IntRange(1, 9).Draw(t, "atoms")
	atom := rapid.IntRange(1, atoms)
	tag := 0
	choice := func(min int) Choice {
		tag++
		return Choice{
			Of:   rapid.SliceOfNDistinct(atom, min, min+2, rapid.ID[int]).Draw(t, "of"),
			Also: rapid.SliceOfN(atom, 0, 1).Draw(t, "also"),
			Tag:  tag,
		}
	}
	p := Problem{Atoms: atoms, Aux: 2, Needs: make([][]Choice, atoms+1)}
	for range rapid.IntRange(1, 4).Draw(t, "roots") {
		p.Roots = append(p.Roots, choice(min(1, atoms)))
	}
	for a := 1; a <= atoms; a++ {
		for range rapid.IntRange(0, 2).Draw(t, "needs") {
			p.Needs[a] = append(p.Needs[a], choice(0))
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "groups") {
		tag++
		p.Groups = append(p.Groups, Group{Of: rapid.SliceOfN(atom, 2, 4).Draw(t, "group"), Tag: tag})
	}
	for range rapid.IntRange(0, 2).Draw(t, "bans") {
		tag++
		p.Bans = append(p.Bans, Ban{Atom: atom.Draw(t, "ban"), Tag: tag})
	}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		p.Links = append(p.Links, Link{From: atom.Draw(t, "from"), To: atoms + rapid.IntRange(1, 2).Draw(t, "fact")})
	}
	tag++
	p.Groups = append(p.Groups, Group{Of: []int{atoms + 1, atoms + 2}, Tag: tag})
	return p
}

// brute searches depth first, in the order of the package comment.
func brute(p *Problem, wait []Choice, have map[int]bool, chosen []int) ([]int, bool) {
	for len(wait) > 0 && anyOf(have, wait[0]) {
		wait = wait[1:]
	}
	if len(wait) == 0 {
		return chosen, true
	}
	c := wait[0]
	for _, a := range append(append([]int(nil), c.Of...), c.Also...) {
		have[a] = true
		if allowed(p, have) {
			next := append([]Choice(nil), wait[1:]...)
			if a < len(p.Needs) {
				next = append(next, p.Needs[a]...)
			}
			if out, ok := brute(p, next, have, append(chosen[:len(chosen):len(chosen)], a)); ok {
				return out, true
			}
		}
		delete(have, a)
	}
	return nil, false
}

func anyOf(have map[int]bool, c Choice) bool {
	for _, a := range append(append([]int(nil), c.Of...), c.Also...) {
		if have[a] {
			return true
		}
	}
	return false
}

func allowed(p *Problem, have map[int]bool) bool {
	holds := map[int]bool{}
	for a := range have {
		holds[a] = true
	}
	for _, l := range p.Links {
		if have[l.From] {
			holds[l.To] = true
		}
	}
	for _, b := range p.Bans {
		if have[b.Atom] {
			return false
		}
	}
	for _, g := range p.Groups {
		n := map[int]bool{}
		for _, a := range g.Of {
			if holds[a] {
				n[a] = true
			}
		}
		if len(n) > 1 {
			return false
		}
	}
	return true
}

func TestSolveAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		want, ok := brute(&p, append([]Choice(nil), p.Roots...), map[int]bool{}, nil)
		got, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			checkCore(t, p, got.Core)
			return
		}
		if diff := cmp.Diff(want, got.Chosen); diff != "" {
			t.Fatalf("chosen (-brute force +got):\n%s", diff)
		}
	})
}

func checkCore(t *rapid.T, p Problem, core []int) {
	if len(core) == 0 {
		t.Fatal("neither a solution nor a core")
	}
	all := map[int]bool{}
	for _, tag := range core {
		all[tag] = true
	}
	q := keepTags(p, all)
	if _, ok := brute(&q, q.Roots, map[int]bool{}, nil); ok {
		t.Fatalf("core %v has a solution", core)
	}
	for _, tag := range core {
		all[tag] = false
		q := keepTags(p, all)
		if _, ok := brute(&q, q.Roots, map[int]bool{}, nil); !ok {
			t.Fatalf("core %v is not minimal: %d is unnecessary", core, tag)
		}
		if ok, err := satisfiable(p, all); !ok || err != nil {
			t.Fatalf("without %d: satisfiable: %v, %v", tag, ok, err)
		}
		all[tag] = true
	}
}

// TestShrinkCoreIsMinimal shrinks a set that contains several random cores: the result must be a
// core, and minimal.
func TestShrinkCoreIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 1, 5, rapid.ID)
		cores := rapid.SliceOfN(tags, 1, 4).Draw(t, "cores")
		found := func(among []int) []int {
			for _, core := range cores {
				if !slices.ContainsFunc(core, func(tag int) bool { return !slices.Contains(among, tag) }) {
					return core
				}
			}
			return nil
		}
		narrow := rapid.Bool().Draw(t, "narrow")
		try := func(among []int) ([]int, bool, error) {
			core := found(among)
			if narrow || core == nil {
				return core, core != nil, nil
			}
			return among, true, nil
		}
		core, err := shrinkCore([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, try)
		if err != nil || found(core) == nil || !slices.IsSorted(core) {
			t.Fatalf("cores %v: got %v, %v", cores, core, err)
		}
		for i := range core {
			if rest := slices.Delete(slices.Clone(core), i, i+1); found(rest) != nil {
				t.Errorf("cores %v: %v is not minimal: %d is unnecessary", cores, core, core[i])
			}
		}
	})
}

// TestExactEqualsGreedy checks that solveExactly returns the solution of solveGreedily, if there is one.
func TestExactEqualsGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		s := load(&p, false)
		if !s.ok {
			return
		}
		fast, ok := solveGreedily(&p, s)
		if !ok {
			return
		}
		slow, ok, err := solveExactly(&p, load(&p, false))
		if !ok || err != nil {
			t.Fatalf("solveExactly: %v, %v", ok, err)
		}
		if diff := cmp.Diff(fast, slow); diff != "" {
			t.Fatalf("(-greedy +exact):\n%s", diff)
		}
	})
}

// TestSolveGivesUp solves the pigeonhole problem with thirteen pigeons and twelve holes, which this
// kind of search cannot decide in reasonable time.
func TestSolveGivesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: searches up to the limit of conflicts")
	}
	const holes = 12
	p := Problem{Atoms: (holes + 1) * holes}
	atom := func(pigeon, hole int) int { return pigeon*holes + hole + 1 }
	for pigeon := range holes + 1 {
		c := Choice{Tag: pigeon + 1}
		for hole := range holes {
			c.Of = append(c.Of, atom(pigeon, hole))
		}
		p.Roots = append(p.Roots, c)
	}
	for hole := range holes {
		g := Group{Tag: 100 + hole}
		for pigeon := range holes + 1 {
			g.Of = append(g.Of, atom(pigeon, hole))
		}
		p.Groups = append(p.Groups, g)
	}
	if res, err := Solve(p); !errors.Is(err, ErrTooHard) {
		t.Fatalf("got %v, %v, want ErrTooHard", res.Core, err)
	}
}

// satisfiable reports whether the constraints with the given tags have a solution.
func satisfiable(p Problem, tags map[int]bool) (bool, error) {
	q := keepTags(p, tags)
	s := load(&q, false)
	if !s.ok {
		return false, nil
	}
	return s.solve(nil)
}
