package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve/internal/solve"
	"github.com/quayside/quayside/subscription"
)

// reportRound says what a round did that no one asked for. Rule 6.
func (w *world) reportRound(r *round) {
	for _, root := range r.b.roots {
		s := root.want
		id, ok := r.picks[s]
		if s == nil || !ok || len(root.opts.of) == 0 {
			continue
		}
		got := r.b.atoms[id]
		switch first := root.opts.of[0]; {
		case s.current == nil && first.entry != nil && first.entry.Name() != got.bundle():
			w.warnFor(s, "fallback", fmt.Sprintf("%s gets %s, %s below %s: %s", s.title(), got.bundle(),
				diag.Count(steps(root.opts.of, got.bundle()), "version"), first.entry.Name(), r.because(root, first.entry.Name())))
		case first.current != nil && got.inst == nil && got.bundle() != s.current.bundle:
			w.warnFor(s, "moved", fmt.Sprintf("%s moves from %s to %s, which was not asked for: %s", s.title(), s.current.bundle, got.bundle(),
				r.because(root, s.current.bundle)))
		}
		w.reportHop(s, got)
	}
}

// steps counts the bundles that are preferred to the one of that name.
func steps(of []option, name string) int {
	seen := map[string]bool{}
	for _, o := range of {
		if o.entry == nil || o.entry.Name() == name {
			break
		}
		seen[o.entry.Name()] = true
	}
	return len(seen)
}

// reportHop says that a subscription without a channel left the default one.
func (w *world) reportHop(s *want, got *atom) {
	if len(s.channels) > 0 || got.entry == nil || s.isV1() || s.current != nil && s.current.bundle == got.bundle() {
		return
	}
	p := got.entry.Channel().Package()
	if home, ok := p.Channel(p.DefaultChannel()); ok {
		if _, ok := home.Entry(got.bundle()); ok {
			return
		}
	}
	var names []string
	for _, e := range got.entry.Bundle().Entries() {
		names = append(names, e.Channel().Name())
	}
	w.warnFor(s, "channel-hop", fmt.Sprintf("%s names no channel and gets %s, which is not in the default channel %s but in %s",
		s.title(), got.bundle(), p.DefaultChannel(), strings.Join(names, ", ")))
}

func (w *world) warnFor(s *want, code, msg string) {
	w.warn(diag.Warning{Pos: s.asked(), Code: code, Msg: msg, Subject: s.operator()})
}

// because explains why the bundle of that name cannot answer root: what stands
// against it when nothing else may.
func (r *round) because(root root, name string) string {
	return r.prevents(root, slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool { return r.b.atoms[id].bundle() != name }))
}

// prevents explains why none of the atoms can answer root: nothing would hold
// together with them, or nothing that leaves the subscriptions before it what
// they prefer. What root itself asks for is not repeated.
func (r *round) prevents(root root, of []int) string {
	p := r.b.p
	p.Roots = slices.Clone(p.Roots)
	at := slices.IndexFunc(p.Roots, func(c solve.Choice) bool { return c.Tag == root.choice.Tag })
	p.Roots[at].Of, p.Roots[at].Soft = of, false
	res, err := solve.Solve(p)
	if err == nil && res.Core == nil {
		for i := range p.Roots[:at] {
			if id, ok := r.picks[r.b.roots[i].want]; ok {
				p.Roots[i].Of = []int{id}
			}
		}
		res, err = solve.Solve(p)
	}
	switch {
	case err != nil:
		return err.Error()
	case res.Core == nil:
		return "what is required before it prefers otherwise"
	}
	var parts []string
	for _, l := range r.b.teller(p, res.Core).chain() {
		if l.Depth > 0 || !strings.HasPrefix(l.Text, root.want.title()+" ") {
			parts = append(parts, l.Text)
		}
	}
	return strings.Join(parts, "; ")
}

// reportEnd says what is true of the state that is written down. Rule 6.
func (w *world) reportEnd(r *round, st *state, res *Result) {
	told := map[catalog.ID]bool{} // by a conflict
	for _, c := range res.Conflicts {
		for _, id := range c.Waits {
			told[id] = true
		}
	}
	for id, err := range w.x.Broken() {
		if !told[id] {
			w.warn(diag.Warning{Code: "broken-catalog", Subject: id.String(), Msg: "catalog " + id.String() + " cannot be used: " + err.Error()})
		}
	}
	for _, root := range r.b.roots {
		if s := root.want; s != nil && s.current != nil && !slices.ContainsFunc(w.waits(s), func(id catalog.ID) bool { return told[id] }) {
			w.reportHeld(r, root, res.Partial)
		}
	}
	w.reportOrphans(st)
	for _, i := range st.have {
		wants := st.wantsOf(i)
		if id := w.dropped(i); id != "" && len(wants) > 0 && !wants[0].direct() {
			w.warnFor(wants[0], "dropped", fmt.Sprintf("%s stays at %s, which catalog %s no longer has", wants[0].title(), i.bundle, id))
		}
		if len(wants) > 0 && i.entry != nil {
			w.reportDeprecated(i, wants[0])
			w.reportRun(i, wants[0])
		}
	}
	w.reportBadRanges(st)
	w.reportUnchecked(st)
	w.reportOverlap(st)
	w.reportSpaces(st)
	for b := range r.b.visited {
		if text := w.read.bundle(b).unusable(); text != "" {
			w.warn(diag.Warning{Code: "unusable-bundle", Subject: b.Package().Name(), Msg: fmt.Sprintf("bundle %s of package %s in catalog %s cannot be used: %s",
				b.Name(), b.Package().Name(), b.Package().Catalog().ID(), text)})
		}
	}
}

// reportOrphans says what nothing requires any more, and what it cannot do beside
// the rest, which it does not hold back. Rule 6.
func (w *world) reportOrphans(st *state) {
	needed := st.needed()
	for _, s := range st.wants {
		if !s.generated || needed[s.current] {
			continue
		}
		msg := fmt.Sprintf("nothing requires %s/%s any more; it stays until 'quayside resolve --prune' takes it out", s.ns, s.pkg)
		for _, r := range s.current.facts.needs {
			if len(st.meeting(s.current, r)) == 0 {
				msg += fmt.Sprintf("; %s requires %s, which is not there", s.current.bundle, r.words)
			}
		}
		for _, g := range s.current.facts.apis {
			for _, i := range st.have {
				if i != s.current && i.ns == s.ns && slices.Contains(i.facts.apis, g) {
					msg += fmt.Sprintf("; %s provides the API %s too", i.bundle, g)
				}
			}
		}
		w.warn(diag.Warning{Code: "orphan", Msg: msg, Subject: s.operator()})
	}
}

// reportBadRanges says which edges cannot be taken, among those that
// subscriptions could follow. Rule 4.
func (w *world) reportBadRanges(st *state) {
	for _, s := range st.wants {
		pkgs, _ := w.packages(s)
		for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
			if err := e.BadRange(); err != nil {
				p := e.Channel().Package()
				w.warn(diag.Warning{Code: "bad-skip-range", Subject: p.Name(), Msg: fmt.Sprintf("bundle %s of package %s in catalog %s skips no range of versions: its skipRange cannot be read: %v",
					e.Name(), p.Name(), p.Catalog().ID(), err)})
			}
		}
	}
}

func (w *world) reportDeprecated(i *installed, s *want) {
	b := i.entry.Bundle()
	say := func(what, msg string) {
		if msg != "" {
			w.warnFor(s, "deprecated", fmt.Sprintf("%s/%s: %s is deprecated: %s", i.ns, b.Package().Name(), what, msg))
		}
	}
	say("package "+b.Package().Name(), b.Package().Deprecation())
	for _, name := range s.channels {
		if ch, ok := b.Package().Channel(name); ok {
			say("channel "+name, ch.Deprecation())
		}
	}
	say("bundle "+b.Name(), b.Deprecation())
	if err := b.Package().LifecycleFaults(); err != nil {
		w.warnFor(s, "lifecycle", fmt.Sprintf("%s/%s: how long its versions are supported is not known: %s", i.ns, b.Package().Name(), oneLine(err)))
	}
}

// oneLine returns several faults as one.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// reportRun says what will not run although it is pinned: it was there before,
// or the requirements are only to be warned of. Rule 7.
func (w *world) reportRun(i *installed, s *want) {
	a := &atom{ns: i.ns, entry: i.entry, facts: i.facts, watch: w.watchOf(i.ns, s, i.entry.Bundle())}
	if no := w.cannotRun(a); no.kind != 0 {
		w.warnFor(s, "requirement", fmt.Sprintf("%s/%s: %s %s", i.ns, cmp.Or(i.pkg(), s.pkg), i.bundle, no.text))
	}
}

// reportUnchecked says which checks were left out for want of a version. Rule 7.
func (w *world) reportUnchecked(st *state) {
	kube, shift := 0, 0
	for _, i := range st.have {
		if i.entry == nil || len(st.wantsOf(i)) == 0 {
			continue
		}
		if i.entry.Bundle().Metadata().MinKubeVersion != "" {
			kube++
		}
		if i.entry.Bundle().MaxOpenShiftVersion() != "" {
			shift++
		}
	}
	if kube > 0 && w.opt.KubernetesVersion == "" {
		w.warn(diag.Warning{Code: "unchecked", Subject: "kubernetesVersion", Msg: "kubernetesVersion is not given in quayside.yaml: minKubeVersion of " + diag.Count(kube, "operator") + " is not checked"})
	}
	if shift > 0 && w.opt.OpenShiftVersion == "" {
		w.warn(diag.Warning{Code: "unchecked", Subject: "openshiftVersion", Msg: "openshiftVersion is not given in quayside.yaml: olm.maxOpenShiftVersion of " + diag.Count(shift, "operator") + " is not checked"})
	}
}

// reportOverlap says which installs provide the same API to a common namespace,
// where that is allowed.
func (w *world) reportOverlap(st *state) {
	if !w.opt.AllowOverlap {
		return
	}
	providers := map[catalog.GVK][]*installed{}
	for _, i := range st.have {
		for _, g := range i.facts.apis {
			for _, other := range providers[g] {
				if other.ns != i.ns && overlapping(w.watches(st, other), w.watches(st, i)) {
					w.warn(diag.Warning{Code: "overlap", Subject: i.ns + "/" + i.pkg(), Msg: fmt.Sprintf("%s in namespace %s and %s in namespace %s both provide the API %s to the same namespaces",
						other.bundle, other.ns, i.bundle, i.ns, g)})
				}
			}
			providers[g] = append(providers[g], i)
		}
	}
}

func (w *world) watches(st *state, i *installed) []string {
	var s *want
	if wants := st.wantsOf(i); len(wants) > 0 {
		s = wants[0]
	}
	if i.entry == nil {
		return w.watchOf(i.ns, s, nil)
	}
	return w.watchOf(i.ns, s, i.entry.Bundle())
}

// reportSpaces says where an OperatorGroup is missing, and what a lock to
// follow does not pin.
func (w *world) reportSpaces(st *state) {
	for _, s := range st.wants {
		if s.decl == nil || s.current == nil {
			continue
		}
		if w.space(s.ns).group == nil && s.decl.Dialect == subscription.V0 {
			w.warn(diag.Warning{Pos: s.pos(subscription.FieldNamespace), Code: "no-operatorgroup", Subject: s.operator(), Msg: fmt.Sprintf("namespace %s has no OperatorGroup: %s watches %s", s.ns, s.current.bundle,
				watched(w.watches(st, s.current)))})
		}
		if w.opt.From != nil {
			if _, ok := w.opt.From.Pin(s.ns, s.pkg); !ok {
				w.warnFor(s, "not-followed", fmt.Sprintf("the lock to follow does not pin %s/%s", s.ns, s.pkg))
			}
		}
	}
}
