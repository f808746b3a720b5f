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

// Each part of an upgrade becomes a branch. Users may merge any of the branches, in any order. So each part
// alone and every combination of parts must have a solution. Therefore, parts that a requirement connects are
// joined. Unconnected parts cannot affect each other.

// Part is a subset of an upgrade that can be applied separately.
type Part struct {
	Operators []string // upgraded targets ("namespace/package"): declared operators first, each sorted
	Result    *Result
	Bonds     []Bond // reasons why these operators are upgraded together

	targets []Target
}

// Bond is the reason why the upgrade of one operator requires the upgrade of another.
type Bond struct {
	Operator string `json:"operator"`
	With     string `json:"with"`
	Why      string `json:"reason,omitempty"` // reason why With changes, too; empty if unknown
}

// Split divides the upgrade that opt requests into parts. Each part can be applied to prev on its own, or
// together with other parts in any order. Git can merge the locks of the parts, and the merged lock satisfies
// the declarations. To ensure this, two targets are in the same part if a requirement connects them, or if Git
// cannot merge their locks. No operator is upgraded in two parts. Parts are sorted by their first operators.
//
// If connected targets have no common solution, the later target is postponed, with a warning. If prev itself
// has conflicts, the error is the error of Resolve. With opt.KeepGoing, there is no error, and each part has
// the conflicts of prev.
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

// Join joins parts of Split that must be applied together for another reason, such as a common object in their
// rendered trees. Each pair contains the indexes of two parts to join. The other arguments and the results are
// the same as for Split.
func Join(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options, parts []Part, pairs [][2]int) ([]Part, []diag.Warning, error) {
	s := newSplitter(x, decl, prev, opt)
	for _, p := range parts {
		s.parts = append(s.parts, &p)
	}
	return s.join(pairs)
}

// upgradeTargets returns a target for each operator with an available upgrade, in order.
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
	warnings []diag.Warning // warnings about postponed parts

	keepGoing bool                // prev may have conflicts
	known     []*explain.Conflict // conflicts of prev; nil until computed
}

func newSplitter(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) *splitter {
	s := &splitter{x: x, decl: decl, prev: prev, opt: opt, keepGoing: opt.KeepGoing}
	s.opt.Upgrade, s.opt.Named, s.opt.KeepGoing = false, nil, true
	return s
}

// tryTargets returns the part that upgrades all of the given targets. It returns nil if the targets have no
// common solution, or if any target is not upgraded.
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

// areKnown reports whether prev, without the upgrade, has all of these conflicts. If prev has any conflict and
// keepGoing is not set, it returns the conflicts of prev as an error.
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

// pinChanges returns the changed pins by operator ("namespace/package").
func (p *Part) pinChanges() map[string]PinChange {
	out := map[string]PinChange{}
	for _, m := range p.Result.PinChanges {
		out[m.Namespace+"/"+m.Package] = m
	}
	return out
}

// bonds returns the reasons why an operator cannot be upgraded alone: one for each other operator
// that changes with it.
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

// join joins connected parts until no parts are connected, and returns the parts. Each pair of indexes connects
// two further parts.
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

// joinParts joins parts into one part. If the parts have no common solution, it joins one part after the other.
// If a part has no common solution with the parts joined before, it is postponed, with a warning.
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

// withBonds sets the bonds of p to the bonds of the parts that were joined into p, and returns p.
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
