package solve

import "slices"

// minimalCore returns tags that cannot hold together and of which none can be
// left out: the solver's own final conflict is a first guess, then each tag is
// dropped in turn, and stays out if what is left still cannot hold. What was
// needed when its turn came stays needed, for the rest only shrinks.
func minimalCore(p *Problem) ([]int, error) {
	try, all := tryTags(p)
	core, unsat, err := try(all)
	if err != nil || !unsat {
		return nil, err
	}
	in := make(map[int]bool, len(core))
	for _, tag := range core {
		in[tag] = true
	}
	small := keep(*p, in) // the rest of the problem plays no part any more
	try, _ = tryTags(&small)
	return shrink(core, try)
}

// tryTags returns a test for sets of tags, and all tags that there are. The test
// reports whether the constraints of the tags cannot hold together, and which of
// them it found to blame.
func tryTags(p *Problem) (test func([]int) ([]int, bool, error), all []int) {
	s := load(p, true)
	sel := make(map[int]lit, len(s.tagOf))
	for l, tag := range s.tagOf {
		all = append(all, tag)
		sel[tag] = l
	}
	slices.Sort(all)
	return func(tags []int) ([]int, bool, error) {
		lits := make([]lit, len(tags))
		for i, t := range tags {
			lits[i] = sel[t]
		}
		ok, err := s.solve(lits)
		if ok || err != nil {
			return nil, false, err
		}
		core := make([]int, 0, len(s.final))
		for _, l := range s.final {
			core = append(core, s.tagOf[l])
		}
		slices.Sort(core)
		return core, true, nil
	}, all
}

// shrink drops tags from the last to the first, so that of several minimal
// cores the one with the earliest tags tends to remain; the outcome depends on
// nothing but the problem.
func shrink(core []int, try func([]int) ([]int, bool, error)) ([]int, error) {
	for i := len(core) - 1; i >= 0; i-- {
		if i >= len(core) {
			continue
		}
		rest := slices.Delete(slices.Clone(core), i, i+1)
		smaller, unsat, err := try(rest)
		if err != nil {
			return nil, err
		}
		if !unsat {
			continue
		}
		needed := core[i+1:] // proven already: each of them stays
		next := slices.Clone(smaller)
		next = append(next, needed...)
		slices.Sort(next)
		next = slices.Compact(next)
		i = len(next) - len(needed)
		core = next
	}
	return core, nil
}
