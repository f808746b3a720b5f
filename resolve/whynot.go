package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// WhyNot returns the obstacles to installing a version of a package in a namespace, and the
// smallest changes that would remove them. An empty version means the channel head. If the package
// or the version does not exist, the error suggests similar names.
func WhyNot(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options, t Target) (*explain.Obstacles, error) {
	opt.Upgrade, opt.From, opt.KeepGoing, opt.Hops = true, nil, true, 1
	opt.Named = []Target{{Namespace: t.Namespace, Package: t.Package}}
	return runUntilStable(x, decl, opt, func(w *world) (*explain.Obstacles, error) { return w.whyNot(prev, t) })
}

func (w *world) whyNot(prev *lockfile.File, t Target) (*explain.Obstacles, error) {
	st := w.stateBefore(prev)
	q := &question{w: w, st: st, prev: prev, target: t}
	for _, s := range st.wants {
		if s.ns == t.Namespace && s.pkg == t.Package {
			q.want = s
			break
		}
	}
	q.declared = q.want != nil
	if !q.declared {
		q.want = &want{ns: t.Namespace, name: t.Package, pkg: t.Package, approval: declare.Automatic}
		st.wants = append(st.wants, q.want)
		st.sort()
	}
	if err := q.lookUpVersion(); err != nil {
		return nil, err
	}
	return q.answer()
}

// question is the state of one call of WhyNot.
type question struct {
	w        *world
	st       *state
	prev     *lockfile.File
	target   Target
	want     *want
	declared bool             // a declared subscription requests the package
	entries  []*catalog.Entry // entries of the version in all channels; those in permitted channels first
	out      *explain.Obstacles
}

// lookUpVersion finds the entries of the version in the catalogs that are visible in the namespace.
// It returns an error if there are none.
func (q *question) lookUpVersion() error {
	var all []*catalog.Entry
	var names, versions []string
	for _, c := range q.w.catalogs(q.target.Namespace) {
		if q.want.cat != nil && c.ID() != *q.want.cat {
			continue
		}
		names = append(names, c.Names()...)
		p, ok := c.Package(q.target.Package)
		if !ok {
			continue
		}
		permitted := q.want.channelsOf(p)
		if q.target.Version == "" && len(permitted) > 0 {
			q.target.Version = permitted[0].Head().Bundle().Version().String()
		}
		for _, ch := range append(permitted, p.Channels()...) {
			all = append(all, ch.Entries()...)
		}
	}
	if len(all) == 0 {
		return q.target.faultf("no package %[2]q visible in namespace %[1]s%[3]s", q.target.Namespace, q.target.Package, didYouMean(q.target.Package, names))
	}
	if q.target.Version == "" { // none of the permitted channels exists
		q.target.Version = all[0].Bundle().Version().String()
	}
	for _, e := range all {
		v := e.Bundle().Version().String()
		if (v == q.target.Version || e.Name() == q.target.Version) && !slices.Contains(q.entries, e) {
			q.entries = append(q.entries, e)
		}
		if !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	if len(q.entries) == 0 {
		return q.target.faultf("package %s has no version %q%s", q.target.Package, q.target.Version, didYouMean(q.target.Version, versions))
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
		Namespace: q.target.Namespace, Package: q.target.Package, Version: first.Bundle().Version().String(), Bundle: first.Name(),
		Reasons: []string{}, Changes: []explain.Remedy{},
	}
	if q.want.current != nil && q.want.current.bundle == first.Name() {
		q.out.Pinned = true
		return q.out, nil
	}
	if !q.declared {
		q.out.Reasons = append(q.out.Reasons, fmt.Sprintf("no subscription in namespace %s requests package %s", q.target.Namespace, q.target.Package))
	}
	offered := q.addOfferObstacles()
	forced := q.entries
	if len(offered) > 0 {
		forced = offered
	}
	explainer, err := q.explainConflict(forced)
	if err != nil {
		return nil, err
	}
	remedies := q.availableChanges()
	if explainer != nil {
		q.out.Conflict = explainer.conflict()
		for _, l := range q.out.Conflict.Chain {
			q.out.Reasons = append(q.out.Reasons, strings.Repeat("\t", l.Depth)+l.Text)
		}
		own := "remove subscription " + q.want.key()
		remedies = append(slices.DeleteFunc(explainer.remedies(), func(r remedy) bool { return r.Text == own }), remedies...)
	}
	q.out.Changes, q.out.Tried = tryRemedies(remedies, q.pinsVersion)
	if explainer != nil {
		q.out.Conflict.Changes, q.out.Conflict.Tried = q.out.Changes, q.out.Tried
	}
	return q.out, nil
}

// addOfferObstacles returns the candidates of the subscription that have the version. If there are none, it
// adds the reasons for their absence to q.out.
func (q *question) addOfferObstacles() []*catalog.Entry {
	opts := q.w.options(q.want)
	var offered []*catalog.Entry
	for _, o := range opts.list {
		if o.entry != nil && slices.Contains(q.entries, o.entry) {
			offered = append(offered, o.entry)
		}
	}
	if len(offered) > 0 {
		return offered
	}
	say := func(format string, args ...any) { q.out.Reasons = append(q.out.Reasons, fmt.Sprintf(format, args...)) }
	if opts.fault != nil {
		say("%s", opts.fault.msg)
	}
	if opts.keepReason != "" {
		say("subscription %s is held: %s", q.want.key(), opts.keepReason)
	}
	first := q.entries[0]
	allows, bad := q.want.versionFilter()
	switch {
	case bad == nil && !allows(first.Name(), first.Bundle().Version()):
		say("version %s is not %s, which the declaration allows", first.Bundle().Version(), q.want.describeAllowed())
	case !q.isPermitted(first):
		say("%s is not in channel %s but in %s", first.Name(), strings.Join(q.want.channels, ", "), strings.Join(q.channelNames(), ", "))
	case q.want.current != nil && q.want.current.facts.isAbove(first.Bundle()):
		say("%s is installed, and downgrades are not allowed", q.want.current.bundle)
	case q.want.current != nil && opts.fault == nil && opts.keepReason == "":
		say("no upgrade edge from %s to %s", q.want.current.bundle, first.Name())
	case q.want.current == nil && first.Skipped():
		say("%s is skipped by a later version of its channel", first.Name())
	}
	return nil
}

func (q *question) isPermitted(e *catalog.Entry) bool {
	return len(q.want.channels) == 0 || slices.Contains(q.want.channels, e.Channel().Name())
}

func (q *question) channelNames() []string {
	var names []string
	for _, e := range q.entries {
		if name := e.Channel().Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// explainConflict resolves with es as the only candidates of the subscription. It returns an
// explainer of the conflict, or nil if there is a solution. The parties of unrelated conflicts are
// relaxed.
func (q *question) explainConflict(es []*catalog.Entry) (*explainer, error) {
	w := *q.w
	w.forced = map[*want][]*catalog.Entry{q.want: es}
	for given := (relaxations{}); ; {
		b := w.build(q.st, given)
		core, _, err := b.solve()
		if err != nil || core == nil {
			return nil, err
		}
		parties := b.parties(core)
		if len(parties) == 0 || slices.Contains(parties, party{want: q.want}) {
			return b.newExplainer(b.p, core), nil
		}
		if !given.relaxGenerated(&w, parties) {
			given.relax(parties)
		}
	}
}

// pinsVersion reports whether Resolve pins the version after remedy r is applied. The version is named as a
// target.
func (q *question) pinsVersion(r remedy) bool {
	next := *q.w
	next.opt.Upgrade, next.opt.Named = false, []Target{{Namespace: q.target.Namespace, Package: q.target.Package, Version: q.out.Version}}
	return trial{w: &next, prev: q.prev}.pinnedWith(q.target, r) == q.out.Bundle
}

// availableChanges returns changes after which the version may be installable. It implements Rule 13 of the
// package comment.
func (q *question) availableChanges() []remedy {
	key := q.target.Namespace + "/" + q.target.Package
	var out []remedy
	add := func(at diag.Pos, text string, change func(*inputs)) {
		r := remedy{Remedy: explain.Remedy{Text: text}, apply: change}
		if !at.IsZero() {
			r.At = at.String()
		}
		out = append(out, r)
	}
	upgrade := "quayside resolve --upgrade=" + key + "@" + q.out.Version
	if !q.declared {
		e := q.entries[0]
		add(diag.Pos{}, fmt.Sprintf("declare a subscription to package %s in namespace %s", q.target.Package, q.target.Namespace), func(in *inputs) {
			id := e.Channel().Package().Catalog().ID()
			in.decl.Subscriptions = append(in.decl.Subscriptions, declare.Subscription{
				Dialect: declare.Quayside, Name: q.want.name, Namespace: q.want.ns, Package: q.want.pkg, Channels: []string{e.Channel().Name()}, Catalog: &id, Approval: declare.Automatic,
			})
		})
		return out
	}
	if names := q.upgradePath(); len(names) > 1 {
		add(diag.Pos{}, fmt.Sprintf("%s --hops=%d (%s)", upgrade, len(names), strings.Join(names, ", ")), func(in *inputs) { in.opt.Hops = len(names) })
	}
	if q.want.current != nil && q.want.current.facts.isAbove(q.entries[0].Bundle()) {
		add(diag.Pos{}, upgrade+" --allow-downgrade", func(in *inputs) { in.opt.AllowDowngrade = true })
	}
	if q.isPermitted(q.entries[0]) {
		add(diag.Pos{}, upgrade, func(*inputs) {})
	}
	for _, name := range q.channelNames() {
		if !slices.Contains(q.want.channels, name) && !q.isPermitted(q.entries[0]) {
			add(q.want.pos(declare.FieldChannel), "request channel "+name, func(in *inputs) { in.subscription(q.want.key()).Channels = []string{name} })
		}
	}
	if q.want.current != nil && q.want.current.pin != nil {
		add(diag.Pos{}, upgrade+" --unpin="+key, func(in *inputs) {
			in.opt.Unpin = append(slices.Clone(in.opt.Unpin), Target{Namespace: q.target.Namespace, Package: q.target.Package})
		})
	}
	return out
}

// upgradePath returns the bundles on the shortest upgrade path from the installed bundle to the
// version.
func (q *question) upgradePath() []string {
	var names []string
	if pkgs, bad := q.w.packages(q.want); bad == nil && q.want.current != nil {
		for _, e := range shortestPath(q.want, pkgs, q.want.current, func(e *catalog.Entry) bool { return slices.Contains(q.entries, e) }) {
			names = append(names, e.Name())
		}
	}
	return names
}
