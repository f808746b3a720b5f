package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// watchOf returns the namespaces that a bundle would watch from ns; empty means
// all. A declaration's own word comes first, then the OperatorGroup's. With
// neither, the bundle watches all namespaces where it can, else its own.
func (w *world) watchOf(ns string, s *want, b *catalog.Bundle) []string {
	if s != nil && s.decl != nil {
		if s.decl.WatchAll {
			return nil
		}
		if s.decl.Watch != nil {
			return s.decl.Watch
		}
	}
	sp := w.space(ns)
	if sp.group != nil {
		return sp.watch
	}
	if b != nil && !catalog.Supports(b.Metadata().InstallModes, ns, nil) {
		return []string{ns}
	}
	return nil
}

func (w *world) warnsOnly() bool { return w.opt.Requirements == "warn" }

// cannotRun returns why the bundle would not run where it is to go, or no ban
// (rule 7).
func (w *world) cannotRun(a *atom) ban {
	b := a.entry.Bundle()
	m := b.Metadata()
	if !catalog.Supports(m.InstallModes, a.ns, a.watch) {
		modes := make([]string, len(m.InstallModes))
		for i, mode := range m.InstallModes {
			modes[i] = string(mode)
		}
		can := strings.Join(modes, ", ")
		if can == "" {
			can = "none"
		}
		return ban{kind: banInstallMode, text: fmt.Sprintf("does not support install mode %s, which watching %s needs (it supports %s)",
			catalog.ModeFor(a.ns, a.watch), watched(a.watch), can)}
	}
	if text := unfit(m.MinKubeVersion, "", w.opt.KubernetesVersion, ""); text != "" {
		return ban{banCluster, fmt.Sprintf("%s, the workspace says %s", text, w.opt.KubernetesVersion), m.MinKubeVersion}
	}
	if text := unfit("", b.MaxOpenShiftVersion(), "", w.opt.OpenShiftVersion); text != "" {
		return ban{kind: banCluster, text: fmt.Sprintf("%s, the workspace says %s", text, w.opt.OpenShiftVersion)}
	}
	return ban{}
}

func watched(ns []string) string {
	if len(ns) == 0 {
		return "all namespaces"
	}
	return "namespace " + strings.Join(ns, ", ")
}

// below reports whether version have is lower than want; false where either is
// not given.
func below(have, want string) bool {
	h, v, ok := both(have, want)
	return ok && h.LT(v)
}

// aboveMinor reports whether have is of a later minor than limit.
func aboveMinor(have, limit string) bool {
	h, l, ok := both(have, limit)
	return ok && (h.Major > l.Major || h.Major == l.Major && h.Minor > l.Minor)
}

// both reads two versions as clusters give them; neither of an empty text.
func both(x, y string) (v, w semver.Version, ok bool) {
	if x == "" || y == "" {
		return v, w, false
	}
	v, err1 := semver.ParseTolerant(x)
	w, err2 := semver.ParseTolerant(y)
	return v, w, err1 == nil && err2 == nil
}

// notPromoted returns why a bundle is not the one that the lock to follow pins.
func (w *world) notPromoted(a *atom) string {
	pin := w.theirs(a.ns, a.facts.pkg)
	if pin == nil || pin.Bundle == a.entry.Name() {
		return ""
	}
	return "is not what the lock to follow pins (" + pin.Bundle + ")"
}

// overlapping reports whether two sets of watched namespaces share one.
func overlapping(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(ns string) bool { return slices.Contains(b, ns) })
}

// sharing finds which atoms of one namespace may serve another. Rule 10.
type sharing struct {
	b      *builder
	rooted []int // atoms that a subscription can be answered by
	others []int
	memo   map[sharedKey][2][]int
}

type sharedKey struct {
	ns  string
	req *requirement
}

func (b *builder) sharing() *sharing {
	if !b.w.opt.SharedDependencies || !b.several() {
		return nil
	}
	s := &sharing{b: b, memo: map[sharedKey][2][]int{}}
	for id := 1; id < len(b.atoms); id++ {
		if b.rooted[id] {
			s.rooted = append(s.rooted, id)
		} else if b.atoms[id].inst == nil {
			s.others = append(s.others, id)
		}
	}
	return s
}

// several reports whether the problem spans namespaces.
func (b *builder) several() bool {
	for _, s := range b.st.wants {
		if s.ns != b.st.wants[0].ns {
			return true
		}
	}
	return false
}

// extend lets a requirement be met from other namespaces that watch a's: by
// what their own subscriptions bring before anything new is installed here, by
// anything else that is installed there only if it is there anyway.
func (s *sharing) extend(a *atom, r *requirement, c solve.Choice) solve.Choice {
	key := sharedKey{a.ns, r}
	got, ok := s.memo[key]
	if !ok {
		got = [2][]int{s.meeting(a.ns, r, s.rooted), s.meeting(a.ns, r, s.others)}
		s.memo[key] = got
	}
	if len(got[0]) > 0 {
		here := 0
		for here < len(c.Of) && s.b.atoms[c.Of[here]].inst != nil {
			here++
		}
		c.Of = slices.Concat(c.Of[:here], got[0], c.Of[here:])
	}
	c.Also = got[1]
	return c
}

func (s *sharing) meeting(ns string, r *requirement, ids []int) []int {
	var out []int
	for _, id := range ids {
		a := s.b.atoms[id]
		if a.ns != ns && overlapping(a.watch, []string{ns}) && r.match(a.facts) {
			out = append(out, id)
		}
	}
	return out
}
