package solve

import "slices"

// minimalCore returns a minimal unsatisfiable core, as tags. It begins with the tags that the solver reports as
// contradictory. It drops a tag if the remaining tags still contradict each other. A tag that cannot be dropped
// from a set cannot be dropped from its subsets either, so each tag is tested only once.
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
	small := keepTags(*p, in) // constraints with other tags are irrelevant
	try, _ = tryTags(&small)
	return shrinkCore(core, try)
}

// tryTags returns all tags of a problem, and a test function for a set of tags. The function reports whether
// the constraints with these tags contradict each other. If they do, it also returns the tags of a
// contradicting subset.
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

// shrinkCore removes tags that are not needed for the contradiction, from the last to the first. If there are
// several minimal cores, it tends to return the core with the earliest tags. The result depends only on the
// problem.
func shrinkCore(core []int, try func([]int) ([]int, bool, error)) ([]int, error) {
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
		needed := core[i+1:] // already proven to be needed
		next := slices.Clone(smaller)
		next = append(next, needed...)
		slices.Sort(next)
		next = slices.Compact(next)
		i = len(next) - len(needed)
		core = next
	}
	return core, nil
}
