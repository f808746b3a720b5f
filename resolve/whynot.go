package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// WhyNot returns the obstacles to installing a version of a package in a namespace, and the
// smallest change that would allow it. An empty version means the head of the channel. The error
// for an unknown package or version suggests similar names.
func WhyNot(x *model.Index, decl *declare.Set, prev *lockfile.File, opt Options, t Target) (*explain.Obstacles, error) {
	opt.Upgrade, opt.From, opt.KeepGoing, opt.Hops = true, nil, true, 1
	opt.Named = []Target{{Namespace: t.Namespace, Package: t.Package}}
	return settle(x, decl, opt, func(w *world) (*explain.Obstacles, error) { return w.whyNot(prev, t) })
}

func (w *world) whyNot(prev *lockfile.File, t Target) (*explain.Obstacles, error) {
	st := w.stateBefore(prev)
	q := &question{w: w, st: st, prev: prev, t: t}
	for _, s := range st.wants {
		if s.ns == t.Namespace && s.pkg == t.Package {
			q.s = s
			break
		}
	}
	q.asked = q.s != nil
	if !q.asked {
		q.s = &want{ns: t.Namespace, name: t.Package, pkg: t.Package, approval: declare.Automatic}
		st.wants = append(st.wants, q.s)
		st.sort()
	}
	if err := q.find(); err != nil {
		return nil, err
	}
	return q.answer()
}

// question is one WhyNot in progress.
type question struct {
	w       *world
	st      *state
	prev    *lockfile.File
	t       Target
	s       *want
	asked   bool           // a subscription asks for the package
	entries []*model.Entry // of the version, all channels, permitted ones first
	out     *explain.Obstacles
}

// find looks up the version in the catalogs visible in the namespace.
func (q *question) find() error {
	var all []*model.Entry
	var names, versions []string
	for _, c := range q.w.catalogs(q.t.Namespace) {
		if q.s.cat != nil && c.ID() != *q.s.cat {
			continue
		}
		names = append(names, c.Names()...)
		p, ok := c.Package(q.t.Package)
		if !ok {
			continue
		}
		permitted := q.s.channelsOf(p)
		if q.t.Version == "" && len(permitted) > 0 {
			q.t.Version = permitted[0].Head().Bundle().Version().String()
		}
		for _, ch := range append(permitted, p.Channels()...) {
			all = append(all, ch.Entries()...)
		}
	}
	if len(all) == 0 {
		return q.t.faultf("no package %[2]q visible in namespace %[1]s%[3]s", q.t.Namespace, q.t.Package, didYouMean(q.t.Package, names))
	}
	if q.t.Version == "" { // no permitted channel exists
		q.t.Version = all[0].Bundle().Version().String()
	}
	for _, e := range all {
		v := e.Bundle().Version().String()
		if (v == q.t.Version || e.Name() == q.t.Version) && !slices.Contains(q.entries, e) {
			q.entries = append(q.entries, e)
		}
		if !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	if len(q.entries) == 0 {
		return q.t.faultf("package %s has no version %q%s", q.t.Package, q.t.Version, didYouMean(q.t.Version, versions))
	}
	return nil
}

func didYouMean(word string, among []string) string {
	slices.Sort(among)
	near := diag.Nearest(word, slices.Compact(among))
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(near, " or ") + "?)"
}

func (q *question) answer() (*explain.Obstacles, error) {
	first := q.entries[0]
	q.out = &explain.Obstacles{
		Namespace: q.t.Namespace, Package: q.t.Package, Version: first.Bundle().Version().String(), Bundle: first.Name(),
		Against: []string{}, Changes: []explain.Change{},
	}
	if q.s.current != nil && q.s.current.bundle == first.Name() {
		q.out.Pinned = true
		return q.out, nil
	}
	if !q.asked {
		q.out.Against = append(q.out.Against, fmt.Sprintf("no subscription in namespace %s requests package %s", q.t.Namespace, q.t.Package))
	}
	offered := q.againstOffer()
	forced := q.entries
	if len(offered) > 0 {
		forced = offered
	}
	told, err := q.conflict(forced)
	if err != nil {
		return nil, err
	}
	remedies := q.offers()
	if told != nil {
		q.out.Conflict = told.conflict()
		for _, l := range q.out.Conflict.Chain {
			q.out.Against = append(q.out.Against, strings.Repeat("\t", l.Depth)+l.Text)
		}
		remedies = append(remedies, told.remedies()...)
	}
	q.out.Changes, q.out.Tried = prove(remedies, maxTries/3, q.leadToVersion)
	if told != nil {
		q.out.Conflict.Changes, q.out.Conflict.Tried = q.out.Changes, q.out.Tried
	}
	return q.out, nil
}

// againstOffer adds the reasons why the current subscription does not offer the version, or
// returns the offered entries.
func (q *question) againstOffer() []*model.Entry {
	opts := q.w.options(q.s)
	var offered []*model.Entry
	for _, o := range opts.of {
		if o.entry != nil && slices.Contains(q.entries, o.entry) {
			offered = append(offered, o.entry)
		}
	}
	if len(offered) > 0 {
		return offered
	}
	say := func(format string, args ...any) { q.out.Against = append(q.out.Against, fmt.Sprintf(format, args...)) }
	if opts.fault != nil {
		say("%s", opts.fault.msg)
	}
	if opts.stay != "" {
		say("subscription %s is held: %s", q.s.key(), opts.stay)
	}
	first := q.entries[0]
	switch {
	case !q.permitted(first):
		say("%s is not in channel %s but in %s", first.Name(), strings.Join(q.s.channels, ", "), strings.Join(q.channels(), ", "))
	case q.s.current != nil && q.s.current.facts.isAbove(first.Bundle()):
		say("%s is installed, and downgrades are not allowed", q.s.current.bundle)
	case q.s.current != nil && opts.fault == nil && opts.stay == "":
		say("no upgrade edge from %s to %s", q.s.current.bundle, first.Name())
	case q.s.current == nil && first.Skipped():
		say("%s is skipped by a later version of its channel", first.Name())
	}
	return nil
}

func (q *question) permitted(e *model.Entry) bool {
	return len(q.s.channels) == 0 || slices.Contains(q.s.channels, e.Channel().Name())
}

func (q *question) channels() []string {
	var names []string
	for _, e := range q.entries {
		if name := e.Channel().Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// conflict returns the teller of the conflict if the subscription is limited to es, or nil. It
// sets unrelated conflicts aside.
func (q *question) conflict(es []*model.Entry) (*teller, error) {
	w := *q.w
	w.force = map[*want][]*model.Entry{q.s: es}
	for given := (relaxed{}); ; {
		b := w.build(q.st, given)
		core, _, err := b.solve()
		if err != nil || core == nil {
			return nil, err
		}
		parties := b.parties(core)
		if len(parties) == 0 || slices.Contains(parties, party{want: q.s}) {
			return b.teller(b.p, core), nil
		}
		if !given.soften(&w, parties) {
			given.relax(parties)
		}
	}
}

// leadToVersion reports whether the remedies lead to a pin of the version when it is requested by
// name.
func (q *question) leadToVersion(rs []remedy) bool {
	asking := *q.w
	asking.opt.Upgrade, asking.opt.Named = false, []Target{{Namespace: q.t.Namespace, Package: q.t.Package, Version: q.out.Version}}
	return trial{w: &asking, prev: q.prev}.pinnedWith(q.t, rs...) == q.out.Bundle
}

// offers returns changes that may make the version available. Rule 13.
func (q *question) offers() []remedy {
	key := q.t.Namespace + "/" + q.t.Package
	var out []remedy
	add := func(at diag.Pos, text string, change func(*inputs)) {
		r := remedy{Change: explain.Change{Text: text}, apply: change}
		if !at.IsZero() {
			r.At = at.String()
		}
		out = append(out, r)
	}
	upgrade := "quayside resolve --upgrade=" + key + "@" + q.out.Version
	if !q.asked {
		e := q.entries[0]
		add(diag.Pos{}, fmt.Sprintf("declare a subscription to package %s in namespace %s", q.t.Package, q.t.Namespace), func(in *inputs) {
			id := e.Channel().Package().Catalog().ID()
			in.decl.Subscriptions = append(in.decl.Subscriptions, declare.Subscription{
				Dialect: declare.Quayside, Name: q.s.name, Namespace: q.s.ns, Package: q.s.pkg, Channels: []string{e.Channel().Name()}, Catalog: &id, Approval: declare.Automatic,
			})
		})
		return out
	}
	add(diag.Pos{}, upgrade, func(*inputs) {})
	for _, name := range q.channels() {
		if !slices.Contains(q.s.channels, name) {
			add(q.s.pos(declare.FieldChannel), "request channel "+name, func(in *inputs) { in.subscription(q.s.key()).Channels = []string{name} })
		}
	}
	if names := q.upgradePath(); len(names) > 1 {
		add(diag.Pos{}, fmt.Sprintf("%s --hops=%d (%s)", upgrade, len(names), strings.Join(names, ", ")), func(in *inputs) { in.opt.Hops = len(names) })
	}
	if q.s.current != nil && q.s.current.facts.isAbove(q.entries[0].Bundle()) {
		add(diag.Pos{}, upgrade+" --allow-downgrade", func(in *inputs) { in.opt.AllowDowngrade = true })
	}
	if q.s.current != nil && q.s.current.pin != nil {
		add(diag.Pos{}, upgrade+" --unpin="+key, func(in *inputs) {
			in.opt.Unpin = append(slices.Clone(in.opt.Unpin), Target{Namespace: q.t.Namespace, Package: q.t.Package})
		})
	}
	return out
}

// upgradePath returns the bundles on the shortest upgrade path to the version.
func (q *question) upgradePath() []string {
	var names []string
	if pkgs, bad := q.w.packages(q.s); bad == nil && q.s.current != nil {
		for _, e := range shortestPath(q.s, pkgs, q.s.current, func(e *model.Entry) bool { return slices.Contains(q.entries, e) }) {
			names = append(names, e.Name())
		}
	}
	return names
}
