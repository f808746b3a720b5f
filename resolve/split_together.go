package resolve

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// The parts of an upgrade become branches. Users may merge them in any order, and need not
// merge all of them, so every combination of parts must resolve, not only each part alone. Parts that
// fail in combination are joined. If the joined part has no solution, the last part is postponed until
// the others are merged. Parts that no constraint connects need no check.

// maxConnected limits the number of connected parts whose combinations are checked. Larger groups
// are joined into one part.
const maxConnected = 6

// resolveConflicts joins or postpones parts until every combination of the rest resolves and can be
// merged by Git.
func (s *splitter) resolveConflicts() error {
	for {
		set := s.smallestConflict()
		if set == nil {
			return nil
		}
		if err := s.joinOrPostpone(set); err != nil {
			return err
		}
	}
}

// joinOrPostpone joins conflicting parts into one part. If that has no solution, it removes the
// last part and adds a warning that its upgrade is postponed.
func (s *splitter) joinOrPostpone(set []*draftPart) error {
	var targets []Target
	for _, p := range set {
		targets = append(targets, p.targets...)
	}
	both, err := s.tryTargets(targets...)
	if err != nil {
		return err
	}
	last := set[len(set)-1]
	if both == nil {
		s.drafts = slices.DeleteFunc(s.drafts, func(p *draftPart) bool { return p == last })
		s.warnings = append(s.warnings, postponedWarning(set))
		return nil
	}
	for _, p := range set {
		maps.Copy(both.singleChanges, p.singleChanges)
	}
	s.drafts[slices.Index(s.drafts, set[0])] = both
	s.drafts = slices.DeleteFunc(s.drafts, func(p *draftPart) bool { return slices.Contains(set[1:], p) })
	return nil
}

func postponedWarning(set []*draftPart) diag.Warning {
	name := func(p *draftPart) string {
		var keys []string
		for _, t := range p.targets {
			keys = append(keys, t.key())
		}
		return strings.Join(keys, ", ")
	}
	var others []string
	for _, p := range set[:len(set)-1] {
		others = append(others, name(p))
	}
	last := name(set[len(set)-1])
	return diag.Warning{
		Code: "upgrade-waits", Subject: set[len(set)-1].targets[0].key(),
		Msg: "upgrade of " + last + " is deferred until after " + strings.Join(others, " and ") + ", because they have no common solution",
	}
}

// smallestConflict returns the smallest set of parts that conflict or that Git cannot merge, or
// nil.
func (s *splitter) smallestConflict() []*draftPart {
	for i, a := range s.drafts {
		for _, b := range s.drafts[i+1:] {
			if !s.canGitMerge(a, b) {
				return []*draftPart{a, b}
			}
		}
	}
	for _, group := range s.connectedGroups() {
		if len(group) > maxConnected {
			return group
		}
		for size := 2; size <= len(group); size++ {
			if set := s.firstInvalid(group, size); set != nil {
				return set
			}
		}
	}
	return nil
}

// canGitMerge reports whether Git can merge two parts.
func (s *splitter) canGitMerge(a, b *draftPart) bool {
	return lockfile.CanMerge(s.prev, a.res.Partial, b.res.Partial) && (s.trees == nil || s.trees.CanMerge(a.res.Partial, b.res.Partial))
}

// firstInvalid returns the first set of the given size whose parts cannot be merged into a valid
// lock, or nil if there is none.
func (s *splitter) firstInvalid(group []*draftPart, size int) []*draftPart {
	for mask := range 1 << len(group) {
		var set []*draftPart
		for i, p := range group {
			if mask>>i&1 == 1 {
				set = append(set, p)
			}
		}
		if len(set) == size && !s.isMergeValid(set) {
			return set
		}
	}
	return nil
}

// isMergeValid reports whether the merged lock of some parts satisfies the declarations, and its
// rendered tree equals Git's merge of their trees.
func (s *splitter) isMergeValid(set []*draftPart) bool {
	var locks []*lockfile.File
	for _, p := range set {
		locks = append(locks, p.res.Partial)
	}
	merged := lockfile.Merge(s.prev, locks...)
	v, err := Check(s.x, s.decl, merged, s.opt)
	var conflicts explain.Conflicts
	if errors.As(err, &conflicts) {
		if known, failed := s.areKnown(conflicts); failed == nil && known {
			err = nil
		}
	}
	return err == nil && len(v.Stale) == 0 && (s.trees == nil || s.trees.MergeEquals(merged, locks))
}

// connectedGroups returns the groups of two or more parts that are connected, directly or
// transitively. Two parts are connected in any of these cases: one provides, before or after the
// upgrade, a package or an API that the other provides or requires; an unchanged pin requires
// packages or APIs of both; together they can close a cycle of requirements; or their rendered
// trees overlap.
func (s *splitter) connectedGroups() [][]*draftPart {
	group := map[*draftPart]int{}
	for i, p := range s.drafts {
		group[p] = i
	}
	join := func(a, b *draftPart) {
		to, from := min(group[a], group[b]), max(group[a], group[b])
		for p, g := range group {
			if g == from {
				group[p] = to
			}
		}
	}
	subjects := map[*draftPart]map[string]bool{}
	read := newReader()
	for _, p := range s.drafts {
		subjects[p] = p.subjects(read, s.prev)
	}
	for _, pin := range s.prev.Pins { // an unchanged pin may require several upgraded ones
		var needed map[string]bool
		for _, r := range read.fromProperties(pin.Properties).needs {
			needed = r.scope.subjects(needed)
		}
		s.joinAll(subjects, needed, join)
	}
	for i, a := range s.drafts {
		for _, b := range s.drafts[i+1:] {
			if intersects(subjects[a], subjects[b]) || s.trees != nil && s.trees.Overlap(a.res.Partial, b.res.Partial) {
				join(a, b)
			}
		}
	}
	s.joinCycles(join)
	byGroup := map[int][]*draftPart{}
	for _, p := range s.drafts {
		byGroup[group[p]] = append(byGroup[group[p]], p)
	}
	var out [][]*draftPart
	for _, g := range slices.Sorted(maps.Keys(byGroup)) {
		if len(byGroup[g]) > 1 {
			out = append(out, byGroup[g])
		}
	}
	return out
}

// joinCycles joins parts whose operators require each other in a cycle once all parts are applied,
// because such operators are rendered as one unit of the tree.
func (s *splitter) joinCycles(join func(a, b *draftPart)) {
	all := &lockfile.File{Pins: slices.Clone(s.prev.Pins)} // an upgraded pin occurs more than once
	changers := map[string][]*draftPart{}
	for _, p := range s.drafts {
		for _, c := range lockfile.Diff(s.prev, p.res.Partial) {
			key := c.Namespace + "/" + c.Package
			changers[key] = append(changers[key], p)
			if pin, there := p.res.Partial.Pin(c.Namespace, c.Package); there {
				all.Pins = append(all.Pins, pin)
			}
		}
	}
	for key, of := range changers {
		for needed := range all.Needed(key) {
			if all.Needed(needed)[key] {
				of = append(of, changers[needed]...)
			}
		}
		for _, p := range of[1:] {
			join(of[0], p)
		}
	}
}

// joinAll joins the parts that have one of the needed subjects, which are the subjects of the
// requirements of one pin.
func (s *splitter) joinAll(subjects map[*draftPart]map[string]bool, needed map[string]bool, join func(a, b *draftPart)) {
	var first *draftPart
	for _, p := range s.drafts {
		switch {
		case !intersects(subjects[p], needed):
		case first == nil:
			first = p
		default:
			join(first, p)
		}
	}
}

// anySubject stands for every package and API. It is the subject of a requirement that is not
// limited to packages or APIs, such as a label or a CEL rule.
const anySubject = "*"

// intersects reports whether two sets of subjects have one in common.
func intersects(a, b map[string]bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if a[anySubject] || b[anySubject] {
		return true
	}
	for subject := range a {
		if b[subject] {
			return true
		}
	}
	return false
}

// subjects returns the packages and APIs that the changed pins of a part provide or require,
// before and after.
func (p *draftPart) subjects(read *factReader, prev *lockfile.File) map[string]bool {
	out := map[string]bool{}
	for _, c := range lockfile.Diff(prev, p.res.Partial) {
		for _, f := range []*lockfile.File{prev, p.res.Partial} {
			pin, ok := f.Pin(c.Namespace, c.Package)
			if !ok {
				continue
			}
			facts := read.fromProperties(pin.Properties)
			out["package "+pin.Package] = true
			for _, g := range facts.apis {
				out[apiSubject(g)] = true
			}
			for _, r := range facts.needs {
				out = r.scope.subjects(out)
			}
		}
	}
	return out
}

// subjects adds the packages and APIs of the scope to the set and returns it. A nil set becomes a
// new one.
func (h searchScope) subjects(to map[string]bool) map[string]bool {
	if to == nil {
		to = map[string]bool{}
	}
	if h.anywhere {
		to[anySubject] = true
	}
	for _, pkg := range h.packages {
		to["package "+pkg] = true
	}
	for _, g := range h.apis {
		to[apiSubject(g)] = true
	}
	return to
}

func apiSubject(g catalog.GVK) string { return "API " + g.Kind + "." + g.Group }
