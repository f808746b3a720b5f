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

// The parts of an upgrade become branches. Users may merge them in any order, and need not merge all
// of them, so every combination of parts must resolve, not only each part alone. Therefore, parts that
// a requirement connects are joined. Parts that no requirement connects need no check.

// Part is a part of an upgrade that can be made separately.
type Part struct {
	Operators []string // namespace/package of the upgraded targets, sorted; declared ones first
	Result    *Result
	Bonds     []Bond // reasons why operators are upgraded together

	targets []Target
}

// Bond is the reason why the upgrade of one operator includes the upgrade of another.
type Bond struct {
	Operator string `json:"operator"`
	With     string `json:"with"`
	Why      string `json:"reason,omitempty"` // why With changes, too; empty: unknown
}

// Split divides the upgrade requested by opt into parts that can each be made separately from prev:
// the connected components of its targets. Two targets are connected if a requirement connects them,
// or if Git could not merge their locks. Parts are ordered by their first operators, and no operator
// is upgraded in two of them. Git can merge the locks of any parts in any order, and the merged lock
// satisfies the declarations. If connected targets have no common solution, the later one is
// postponed with a warning. If prev itself has conflicts, the error is that of Resolve; with
// opt.KeepGoing, the parts still have these conflicts.
func Split(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) ([]Part, []diag.Warning, error) {
	s := newSplitter(x, decl, prev, opt)
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
			s.parts = append(s.parts, p)
		}
	}
	return s.join(nil)
}

// Join joins those parts of Split that pairs connect, given as indexes of parts: those whose rendered
// trees share an object, for example. The other arguments and the results are those of Split.
func Join(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options, parts []Part, pairs [][2]int) ([]Part, []diag.Warning, error) {
	s := newSplitter(x, decl, prev, opt)
	for _, p := range parts {
		s.parts = append(s.parts, &p)
	}
	return s.join(pairs)
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
	parts    []*Part
	warnings []diag.Warning // about postponed parts

	keepGoing bool                // whether prev may have conflicts
	known     []*explain.Conflict // the conflicts of prev; nil: not computed yet
}

func newSplitter(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) *splitter {
	s := &splitter{x: x, decl: decl, prev: prev, opt: opt, keepGoing: opt.KeepGoing}
	s.opt.Upgrade, s.opt.Named, s.opt.KeepGoing = false, nil, true
	return s
}

// tryTargets resolves with the given targets. It returns nil if they have no common solution, or if
// not all of them are upgraded.
func (s *splitter) tryTargets(targets ...Target) (*Part, error) {
	opt := s.opt
	opt.Named = targets
	res, err := Resolve(s.x, s.decl, s.prev, opt)
	if err != nil {
		return nil, err
	}
	if known, err := s.areKnown(res.Conflicts); err != nil || !known {
		return nil, err
	}
	p := &Part{Result: res, targets: targets}
	for _, t := range targets {
		if _, moves := p.pinChanges()[t.key()]; !moves {
			return nil, nil
		}
		p.Operators = append(p.Operators, t.key())
	}
	declared := func(key string) bool {
		return slices.ContainsFunc(s.decl.Subscriptions, func(d declare.Subscription) bool { return d.Namespace+"/"+d.Package == key })
	}
	slices.SortFunc(p.Operators, func(a, b string) int {
		return cmp.Or(compareBool(!declared(a), !declared(b)), strings.Compare(a, b))
	})
	if len(targets) == 1 {
		p.Bonds = p.bonds(targets[0].key())
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
func (p *Part) pinChanges() map[string]PinChange {
	out := map[string]PinChange{}
	for _, m := range p.Result.PinChanges {
		out[m.Namespace+"/"+m.Package] = m
	}
	return out
}

// bonds returns the reasons why an operator cannot be upgraded alone: one for each other operator that
// changes along with it.
func (p *Part) bonds(key string) []Bond {
	var out []Bond
	changes := p.pinChanges()
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

// join joins connected parts until no two are connected. pairs are further connections between parts,
// by index.
func (s *splitter) join(pairs [][2]int) ([]Part, []diag.Warning, error) {
	for {
		components := s.components(pairs)
		if len(components) == len(s.parts) {
			break
		}
		s.parts, pairs = nil, nil
		for _, c := range components {
			p, err := s.joinParts(c)
			if err != nil {
				return nil, nil, err
			}
			s.parts = append(s.parts, p)
		}
	}
	var out []Part
	for _, p := range s.parts {
		out = append(out, *p)
	}
	slices.SortStableFunc(out, func(a, b Part) int { return strings.Compare(a.Operators[0], b.Operators[0]) })
	return out, diag.SortWarnings(s.warnings), nil
}

// joinParts joins connected parts into one. If all of them have no common solution, it joins one after
// the other, and postpones those that have no solution with the parts before.
func (s *splitter) joinParts(parts []*Part) (*Part, error) {
	var all []Target
	for _, p := range parts {
		all = append(all, p.targets...)
	}
	joined, err := s.tryTargets(all...)
	if err != nil {
		return nil, err
	}
	if joined != nil {
		return joined.withBonds(parts...), nil
	}
	joined = parts[0]
	for _, p := range parts[1:] {
		both, err := s.tryTargets(slices.Concat(joined.targets, p.targets)...)
		if err != nil {
			return nil, err
		}
		if both == nil {
			s.warnings = append(s.warnings, diag.Warning{
				Code: "upgrade-waits", Subject: p.targets[0].key(),
				Msg: "upgrade of " + strings.Join(p.Operators, ", ") + " is deferred until after " + strings.Join(joined.Operators, " and ") + ", because they have no common solution",
			})
			continue
		}
		joined = both.withBonds(joined, p)
	}
	return joined, nil
}

// withBonds returns p with the bonds of the parts that it joins.
func (p *Part) withBonds(of ...*Part) *Part {
	p.Bonds = nil
	for _, key := range p.Operators {
		for _, o := range of {
			for _, b := range o.Bonds {
				if b.Operator == key {
					p.Bonds = append(p.Bonds, b)
				}
			}
		}
	}
	return p
}
