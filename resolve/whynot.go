package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Obstacles says what stands against a version of a package.
type Obstacles struct {
	Namespace string    `json:"namespace"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Bundle    string    `json:"bundle,omitempty"`
	Pinned    bool      `json:"pinned"`             // it is what is pinned already
	Against   []string  `json:"against"`            // empty: nothing does
	Conflict  *Conflict `json:"conflict,omitempty"` // when even the whole search finds no solution with it
	Changes   []Change  `json:"changes"`            // each is enough by itself, tried; the least invasive first
	Tried     int       `json:"tried"`              // how many changes were
}

// WhyNot returns what stands against installing a version of a package in a
// namespace, and the smallest change that would allow it. An empty version
// means the head of the channel. The error says that there is no such package
// or version, with the nearest names.
func WhyNot(x *catalog.Index, decl *subscription.Set, prev *lockfile.File, opt Options, t Target) (*Obstacles, error) {
	opt.Upgrade, opt.From, opt.KeepGoing, opt.Hops = true, nil, true, 1
	opt.Named = []Target{{Namespace: t.Namespace, Package: t.Package}}
	return settle(x, decl, opt, func(w *world) (*Obstacles, error) { return w.whyNot(prev, t) })
}

func (w *world) whyNot(prev *lockfile.File, t Target) (*Obstacles, error) {
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
		q.s = &want{ns: t.Namespace, name: t.Package, pkg: t.Package, approval: subscription.Automatic}
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
	asked   bool             // a subscription asks for the package
	entries []*catalog.Entry // of the version, all channels, those permitted first
	out     *Obstacles
}

// find looks the version up in the catalogs that the namespace sees.
func (q *question) find() error {
	var all []*catalog.Entry
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
		return q.t.faultf("namespace %s sees no package %q%s", q.t.Namespace, q.t.Package, didYouMean(q.t.Package, names))
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

func (q *question) answer() (*Obstacles, error) {
	first := q.entries[0]
	q.out = &Obstacles{
		Namespace: q.t.Namespace, Package: q.t.Package, Version: first.Bundle().Version().String(), Bundle: first.Name(),
		Against: []string{}, Changes: []Change{},
	}
	if q.s.current != nil && q.s.current.bundle == first.Name() {
		q.out.Pinned = true
		return q.out, nil
	}
	if !q.asked {
		q.out.Against = append(q.out.Against, fmt.Sprintf("no subscription in namespace %s asks for package %s", q.t.Namespace, q.t.Package))
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
	d := dispute{&Conflict{Changes: []Change{}}, nil, remedies}
	d.prove(maxTries/3, q.brings)
	q.out.Changes, q.out.Tried = d.Changes, d.Tried
	if told != nil {
		q.out.Conflict.Changes, q.out.Conflict.Tried = d.Changes, d.Tried
	}
	return q.out, nil
}

// againstOffer says why the subscription as it stands is not offered the
// version, and returns the entries that it is offered.
func (q *question) againstOffer() []*catalog.Entry {
	opts := q.w.options(q.s)
	var offered []*catalog.Entry
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
		say("subscription %s stays where it is: %s", q.s.key(), opts.stay)
	}
	first := q.entries[0]
	switch {
	case !q.permitted(first):
		say("%s is not in channel %s but in %s", first.Name(), strings.Join(q.s.channels, ", "), strings.Join(q.channels(), ", "))
	case q.s.current != nil && q.s.current.facts.isAbove(first.Bundle()):
		say("%s is installed and versions do not go down", q.s.current.bundle)
	case q.s.current != nil && opts.fault == nil && opts.stay == "":
		say("no edge leads from %s to %s", q.s.current.bundle, first.Name())
	case q.s.current == nil && first.Skipped():
		say("%s is skipped by a later version of its channel", first.Name())
	}
	return nil
}

func (q *question) permitted(e *catalog.Entry) bool {
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

// conflict returns what tells why there is no solution with nothing but es for the
// subscription, or nil; what it takes no part in is set aside.
func (q *question) conflict(es []*catalog.Entry) (*teller, error) {
	w := *q.w
	w.force = map[*want][]*catalog.Entry{q.s: es}
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

// brings reports whether the version is pinned with the remedies, when it is asked
// for by name.
func (q *question) brings(rs []remedy) bool {
	asking := *q.w
	asking.opt.Upgrade, asking.opt.Named = false, []Target{{Namespace: q.t.Namespace, Package: q.t.Package, Version: q.out.Version}}
	return trial{w: &asking, prev: q.prev}.takes(q.t, rs...) == q.out.Bundle
}

// offers returns what may have the version offered. Rule 13.
func (q *question) offers() []remedy {
	key := q.t.Namespace + "/" + q.t.Package
	var out []remedy
	add := func(at diag.Pos, text string, change func(*inputs)) {
		r := remedy{Change: Change{Text: text}, apply: change}
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
			in.decl.Subscriptions = append(in.decl.Subscriptions, subscription.Subscription{
				Dialect: subscription.Quayside, Name: q.s.name, Namespace: q.s.ns, Package: q.s.pkg, Channels: []string{e.Channel().Name()}, Catalog: &id, Approval: subscription.Automatic,
			})
		})
		return out
	}
	add(diag.Pos{}, upgrade, func(*inputs) {})
	for _, name := range q.channels() {
		if !slices.Contains(q.s.channels, name) {
			add(q.s.pos(subscription.FieldChannel), "ask for channel "+name, func(in *inputs) { in.subscription(q.s.key()).Channels = []string{name} })
		}
	}
	if names := q.way(); len(names) > 1 {
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

// way returns the bundles on the shortest way there.
func (q *question) way() []string {
	var names []string
	if pkgs, bad := q.w.packages(q.s); bad == nil && q.s.current != nil {
		for _, e := range shortest(q.s, pkgs, q.s.current, func(e *catalog.Entry) bool { return slices.Contains(q.entries, e) }) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Text prints what stands against the version, then what to change.
func (o *Obstacles) Text() string {
	var b strings.Builder
	b.WriteString(inert.Line(o.Namespace+"/"+o.Package+" "+o.Version) + "\n")
	switch {
	case o.Pinned:
		b.WriteString("\tis what is pinned\n")
	case len(o.Against) == 0:
		b.WriteString("\tnothing stands against it\n")
	}
	for _, a := range o.Against {
		b.WriteString("\t" + inert.Line(a) + "\n")
	}
	if !o.Pinned {
		b.WriteString("\t" + strings.Join(advice("brings", o.Changes, o.Tried), "\n\t") + "\n")
	}
	return b.String()
}
