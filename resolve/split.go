package resolve

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// Part is a part of an upgrade that can be made separately.
type Part struct {
	Operators []string // namespace/package of the upgraded targets, sorted; declared ones first
	Result    *Result
	Bonds     []Bond // reasons why operators are upgraded together
}

// Bond is the reason why the upgrade of one operator includes the upgrade of another.
type Bond struct {
	Operator string `json:"operator"`
	With     string `json:"with"`
	Why      string `json:"reason,omitempty"` // why With changes, too; empty: unknown
}

// TreeComparer compares the rendered trees of locks that have a common base.
type TreeComparer interface {
	// CanMerge reports whether Git can merge the trees of two locks, in either order.
	CanMerge(a, b *lockfile.File) bool
	// Overlap reports whether a part of the tree may depend on changes of both locks.
	Overlap(a, b *lockfile.File) bool
	// MergeEquals reports whether merging the trees of parts gives the tree of merged.
	MergeEquals(merged *lockfile.File, parts []*lockfile.File) bool
}

// Split divides the upgrade requested by opt into the smallest parts that can each be made
// separately from prev: single operators, or operators that can only be upgraded together. Parts
// are ordered by their first operators, and no operator is upgraded in two of them. Git can merge
// any of the parts in any order, and the merged lock satisfies the declarations. Unless trees is
// nil, Git can also merge the rendered trees of the locks. Split joins parts that cannot be merged,
// or postpones the later one with a warning. If prev itself has conflicts, the error is that of
// Resolve; with opt.KeepGoing, the parts still have these conflicts.
func Split(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options, trees TreeComparer) ([]Part, []diag.Warning, error) {
	s := &splitter{x: x, decl: decl, prev: prev, opt: opt, trees: trees, keepGoing: opt.KeepGoing}
	s.opt.Upgrade, s.opt.Named, s.opt.KeepGoing = false, nil, true
	targets, err := runUntilStable(x, decl, opt, func(w *world) ([]Target, error) { return w.upgradeTargets(prev), nil })
	if err != nil {
		return nil, nil, err
	}
	for _, t := range targets {
		p, err := s.tryTargets(t)
		if err != nil {
			return nil, nil, err
		}
		if p != nil {
			s.drafts = append(s.drafts, p)
		}
	}
	for {
		a, b := s.overlappingDrafts()
		if a == nil {
			break
		}
		if err := s.joinOrPostpone([]*draftPart{a, b}); err != nil {
			return nil, nil, err
		}
	}
	if err := s.resolveConflicts(); err != nil {
		return nil, nil, err
	}
	return s.parts(), diag.SortWarnings(s.warnings), nil
}

// upgradeTargets returns the upgrade targets with an available upgrade, in order.
func (w *world) upgradeTargets(prev *lockfile.File) []Target {
	var out []Target
	for _, s := range w.stateBefore(prev).wants {
		if s.current == nil || s.current.pin == nil {
			continue
		}
		if how, _ := w.preference(s); how != preferUpgrade {
			continue
		}
		t := Target{Namespace: s.ns, Package: s.pkg}
		if named := w.targetOf(s); named != nil {
			t = *named
		}
		leads := slices.ContainsFunc(w.options(s).list, func(o option) bool { return o.entry != nil && o.entry.Name() != s.current.bundle })
		if leads && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Target) int { return strings.Compare(a.key(), b.key()) })
	return out
}

func (t Target) key() string { return t.Namespace + "/" + t.Package }

// splitter divides an upgrade into parts.
type splitter struct {
	x        *catalog.Index
	decl     *declare.Set
	prev     *lockfile.File
	opt      Options
	trees    TreeComparer // may be nil
	drafts   []*draftPart
	warnings []diag.Warning // about postponed parts

	keepGoing bool                // whether prev may have conflicts
	known     []*explain.Conflict // the conflicts of prev; nil: not computed yet
}

// draftPart is a part whose operators may still change.
type draftPart struct {
	targets       []Target
	res           *Result
	singleChanges map[string]map[string]PinChange // by operator: the changes of its upgrade alone
}

// tryTargets resolves with the given targets. It returns nil if they have no common solution, or if
// not all of them are upgraded.
func (s *splitter) tryTargets(targets ...Target) (*draftPart, error) {
	opt := s.opt
	opt.Named = targets
	res, err := Resolve(s.x, s.decl, s.prev, opt)
	if err != nil {
		return nil, err
	}
	if known, err := s.areKnown(res.Conflicts); err != nil || !known {
		return nil, err
	}
	p := &draftPart{targets: targets, res: res, singleChanges: map[string]map[string]PinChange{}}
	for _, t := range targets {
		if _, moves := p.pinChanges()[t.key()]; !moves {
			return nil, nil
		}
	}
	if len(targets) == 1 {
		p.singleChanges[targets[0].key()] = p.pinChanges()
	}
	return p, nil
}

// areKnown reports whether prev itself has all of these conflicts. Unless keepGoing is set, a
// conflict of prev is an error.
func (s *splitter) areKnown(conflicts []*explain.Conflict) (bool, error) {
	if len(conflicts) > 0 && s.known == nil {
		plain, err := Resolve(s.x, s.decl, s.prev, s.opt)
		if err != nil {
			return false, err
		}
		if len(plain.Conflicts) > 0 && !s.keepGoing {
			return false, explain.Conflicts(plain.Conflicts)
		}
		s.known = append([]*explain.Conflict{}, plain.Conflicts...)
	}
	for _, c := range conflicts {
		if !slices.ContainsFunc(s.known, func(k *explain.Conflict) bool { return k.IsBetween(c.Namespace, c.Subscriptions) }) {
			return false, nil
		}
	}
	return true, nil
}

// pinChanges returns the changed pins, by namespace/package.
func (p *draftPart) pinChanges() map[string]PinChange {
	out := map[string]PinChange{}
	for _, m := range p.res.PinChanges {
		out[m.Namespace+"/"+m.Package] = m
	}
	return out
}

// overlappingDrafts returns two parts that change the same operator, or nil.
func (s *splitter) overlappingDrafts() (a, b *draftPart) {
	at := map[string]*draftPart{}
	for _, p := range s.drafts {
		for _, key := range slices.Sorted(maps.Keys(p.pinChanges())) {
			if other := at[key]; other != nil {
				return other, p
			}
			at[key] = p
		}
	}
	return nil, nil
}

// parts converts the drafts to Parts with their bonds.
func (s *splitter) parts() []Part {
	declared := map[string]bool{}
	for _, d := range s.decl.Subscriptions {
		declared[d.Namespace+"/"+d.Package] = true
	}
	var out []Part
	for _, p := range s.drafts {
		part := Part{Result: p.res}
		for _, t := range p.targets {
			part.Operators = append(part.Operators, t.key())
		}
		slices.SortFunc(part.Operators, func(a, b string) int {
			return cmp.Or(compareBool(!declared[a], !declared[b]), strings.Compare(a, b))
		})
		for _, key := range part.Operators {
			part.Bonds = append(part.Bonds, p.bonds(key)...)
		}
		out = append(out, part)
	}
	slices.SortStableFunc(out, func(a, b Part) int { return strings.Compare(a.Operators[0], b.Operators[0]) })
	return out
}

// bonds returns the reasons why an operator cannot be upgraded alone: one for each other operator that
// changes along with it.
func (p *draftPart) bonds(key string) []Bond {
	var out []Bond
	changes := p.singleChanges[key]
	for _, with := range slices.Sorted(maps.Keys(changes)) {
		c := changes[with]
		why := c.Along
		if c.From == "" || c.To == "" {
			why = c.Why
		}
		if with != key {
			out = append(out, Bond{Operator: key, With: with, Why: why})
		}
	}
	return out
}
