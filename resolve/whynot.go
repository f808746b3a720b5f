package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/internal/solve"
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
	Changes   []Change  `json:"changes"`            // each is enough by itself, tried; the smallest first
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
	q := &question{w: w, st: st, t: t}
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
		return fmt.Errorf("namespace %s sees no package %q%s", q.t.Namespace, q.t.Package, didYouMean(q.t.Package, names))
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
		return fmt.Errorf("package %s has no version %q%s", q.t.Package, q.t.Version, didYouMean(q.t.Version, versions))
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
	c, err := q.try(forced, nil)
	if err != nil {
		return nil, err
	}
	if c == nil {
		q.changesForOffer(offered)
		return q.out, nil
	}
	q.out.Conflict = c
	for _, l := range c.Chain {
		q.out.Against = append(q.out.Against, strings.Repeat("\t", l.Depth)+l.Text)
	}
	return q.out, q.changesForConflict(forced, c)
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
	case q.s.current != nil && first.Bundle().Version().LT(q.s.current.facts.version):
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

// try resolves with nothing but es for the subscription, and without others. It
// returns nil where that has a solution; conflicts that the subscription takes
// no part in are set aside. Rule 13.
func (q *question) try(es []*catalog.Entry, without map[*want]bool) (*Conflict, error) {
	w := *q.w
	w.force, w.without = map[*want][]*catalog.Entry{q.s: es}, without
	for given := (relaxed{}); ; {
		b := w.build(q.st, given)
		res, err := solve.Solve(b.p)
		if err != nil || res.Core == nil {
			return nil, err
		}
		mine := slices.ContainsFunc(res.Core, func(tag int) bool {
			c, ok := b.causes[tag].(asking)
			return ok && c.want == q.s
		})
		parties := b.parties(res.Core)
		if mine || len(parties) == 0 {
			return b.conflict(b.p, res.Core), nil
		}
		given.relax(parties)
	}
}

// changesForOffer finds what would have the version offered.
func (q *question) changesForOffer(offered []*catalog.Entry) {
	if len(offered) > 0 && q.asked {
		q.change("", fmt.Sprintf("quayside resolve --upgrade=%s/%s@%s", q.t.Namespace, q.t.Package, q.out.Version))
		return
	}
	first := q.entries[0]
	switch {
	case !q.asked:
		q.change("", fmt.Sprintf("declare a subscription to package %s in namespace %s", q.t.Package, q.t.Namespace))
	case !q.permitted(first):
		q.change(q.s.pos(subscription.FieldChannel).String(), "ask for channel "+strings.Join(q.channels(), " or "))
	case q.s.current != nil && first.Bundle().Version().LT(q.s.current.facts.version):
		q.change("", fmt.Sprintf("quayside resolve --upgrade=%s/%s@%s --allow-downgrade", q.t.Namespace, q.t.Package, q.out.Version))
	case q.s.current != nil:
		q.changeByHops()
	default:
		q.change(q.s.pos(subscription.FieldStartingCSV).String(), "set startingCSV: "+first.Name())
	}
}

// changeByHops offers the way there, where there is one.
func (q *question) changeByHops() {
	pkgs, bad := q.w.packages(q.s)
	if bad != nil {
		return
	}
	way := shortest(q.s, pkgs, q.s.current, func(e *catalog.Entry) bool { return slices.Contains(q.entries, e) })
	if len(way) == 0 {
		q.change("", "nothing leads there from "+q.s.current.bundle+": remove the pin and install anew")
		return
	}
	names := make([]string, len(way))
	for i, e := range way {
		names[i] = e.Name()
	}
	q.change("", fmt.Sprintf("quayside resolve --upgrade=%s/%s@%s --hops=%d (%s)", q.t.Namespace, q.t.Package, q.out.Version, len(way), strings.Join(names, ", ")))
}

// changesForConflict tries to leave out each other subscription that takes
// part, then offers what the conflict itself says.
func (q *question) changesForConflict(es []*catalog.Entry, c *Conflict) error {
	for _, s := range q.st.wants {
		if s == q.s || !slices.Contains(c.Subscriptions, s.key()) {
			continue
		}
		left, err := q.try(es, map[*want]bool{s: true})
		if err != nil {
			return err
		}
		if left == nil {
			q.change(s.pos().String(), "remove subscription "+s.key()+", or let it ask for another channel or version")
		}
	}
	if len(q.out.Changes) == 0 {
		q.out.Changes = c.Changes
	}
	return nil
}

func (q *question) change(at, text string) {
	q.out.Changes = append(q.out.Changes, Change{At: at, Text: text})
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
	if len(o.Changes) > 0 {
		b.WriteString("\tto fix this, change:\n")
	}
	for _, c := range o.Changes {
		b.WriteString("\t\t" + inert.Line(at(c.At)+c.Text) + "\n")
	}
	return b.String()
}
