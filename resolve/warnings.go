package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// reportRound warns about effects of a round that the user has not requested. It implements Rule 6.
func (w *world) reportRound(r *round) {
	for _, root := range r.b.roots {
		s := root.want
		id, ok := r.picks[s]
		if s == nil || !ok || len(root.opts.list) == 0 {
			continue
		}
		got := r.b.atoms[id]
		switch first := root.opts.list[0]; {
		case s.current == nil && first.entry != nil && first.entry.Name() != got.bundle():
			w.warnFor(s, "fallback", fmt.Sprintf("%s is resolved to %s, %s below %s: %s", s.title(), got.bundle(),
				diag.Count(countSteps(root.opts.list, got.bundle()), "version"), first.entry.Name(), r.whyNotChosen(root, first.entry.Name())))
		case first.current != nil && got.inst == nil && got.bundle() != s.current.bundle:
			w.along[s.operator()] = r.whyNotChosen(root, s.current.bundle)
			w.warnFor(s, "moved", fmt.Sprintf("%s is upgraded from %s to %s along with the requested upgrades: %s", s.title(), s.current.bundle, got.bundle(),
				w.along[s.operator()]))
		}
		w.reportChannelHop(s, got)
	}
}

// countSteps returns how many different bundles precede the bundle with this name in the list of candidates.
func countSteps(candidates []option, name string) int {
	seen := map[string]bool{}
	for _, o := range candidates {
		if o.entry == nil || o.entry.Name() == name {
			break
		}
		seen[o.entry.Name()] = true
	}
	return len(seen)
}

// reportChannelHop warns that a subscription without a channel is resolved to a bundle that is not
// in the default channel.
func (w *world) reportChannelHop(s *want, got *atom) {
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
	w.warnFor(s, "channel-hop", fmt.Sprintf("%s declares no channel and is resolved to %s, which is not in the default channel %s, but in %s",
		s.title(), got.bundle(), p.DefaultChannel(), strings.Join(names, ", ")))
}

func (w *world) warnFor(s *want, code, msg string) {
	w.warn(diag.Warning{Pos: s.requestPos(), Code: code, Msg: msg, Subject: s.operator()})
}

// whyNotChosen returns the reason why root cannot choose the bundle with this name, even as its
// only candidate.
func (r *round) whyNotChosen(root root, name string) string {
	return r.findObstacle(root, slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool { return r.b.atoms[id].bundle() != name })).text
}

// obstacle is the reason why a root can choose none of the given candidates.
type obstacle struct {
	text    string   // the causes, in one line
	refused []string // operators whose bundles Options.Objection rejected; sorted
}

// findObstacle returns the reason why root cannot choose any of the atoms. Either no solution contains any of
// the atoms, or every solution with one of them changes the choices of earlier roots. The reason does not
// mention the subscription of root itself.
func (r *round) findObstacle(root root, of []int) obstacle {
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
		return obstacle{text: err.Error()}
	case res.Core == nil:
		return obstacle{text: "a requirement with higher precedence selects another version"}
	}
	var out obstacle
	t := r.b.newExplainer(p, res.Core)
	for _, x := range t.causes {
		if c, ok := x.cause.(banCause); ok && c.why.kind == banObjection {
			out.refused = append(out.refused, c.ns+"/"+c.pkg)
		}
	}
	slices.Sort(out.refused)
	out.refused = slices.Compact(out.refused)
	var parts []string
	for _, l := range t.chain() {
		if l.Depth > 0 || !strings.HasPrefix(l.Text, root.want.title()+" ") {
			parts = append(parts, l.Text)
		}
	}
	out.text = strings.Join(parts, "; ")
	return out
}

// reportResult warns about the state after the last round, which becomes the lock. It implements Rule 6 of the
// package comment.
func (w *world) reportResult(r *round, st *state, res *Result) {
	reported := map[catalog.ID]bool{} // catalogs that a conflict already mentions
	for _, c := range res.Conflicts {
		for _, id := range c.UnreadableCatalogs {
			reported[id] = true
		}
	}
	for id, err := range w.x.Broken() {
		if !reported[id] {
			w.warn(diag.Warning{Code: "broken-catalog", Subject: id.String(), Msg: "catalog " + id.String() + " cannot be used: " + err.Error()})
		}
	}
	for _, root := range r.b.roots {
		if s := root.want; s != nil && s.current != nil && !slices.ContainsFunc(w.unreadableNeeds(s), func(id catalog.ID) bool { return reported[id] }) {
			w.reportHeld(r, root, res.Partial)
		}
	}
	w.reportOtherHolds()
	r.recordMissingPromotions()
	w.reportOrphans(st)
	for _, i := range st.installed {
		wants := st.wantsOf(i)
		if id := w.droppedBy(i); id != "" && len(wants) > 0 && !wants[0].namesBundle() {
			w.warnFor(wants[0], "dropped", fmt.Sprintf("%s is pinned to %s, which is no longer in catalog %s: --upgrade=%s upgrades the operator if there is an upgrade path", wants[0].title(), i.bundle, id, wants[0].ns+"/"+wants[0].pkg))
		}
		if len(wants) > 0 && i.entry != nil {
			w.reportDeprecated(i, wants[0])
			w.reportCannotRun(i, wants[0])
		}
	}
	w.reportBadRanges(st)
	w.reportUnchecked(st)
	w.reportOverlap(st)
	w.reportNamespaces(st)
	for _, a := range r.b.atoms[1:] {
		if a.entry == nil {
			continue
		}
		if text := a.facts.unusable(); text != "" {
			b := a.entry.Bundle()
			w.warn(diag.Warning{Code: "unusable-bundle", Subject: b.Package().Name(), Msg: fmt.Sprintf("bundle %s of package %s in catalog %s cannot be used: %s",
				b.Name(), b.Package().Name(), b.Package().Catalog().ID(), text)})
		}
	}
}

// reportOrphans warns about dependencies that are no longer required. It mentions their unmet requirements, and
// their APIs that other operators also provide. It implements Rule 6 of the package comment.
func (w *world) reportOrphans(st *state) {
	needed := st.needed()
	for _, s := range st.wants {
		if !s.generated || needed[s.current] {
			continue
		}
		msg := fmt.Sprintf("%s/%s is no longer required; 'quayside resolve --prune' removes it", s.ns, s.pkg)
		for _, r := range s.current.facts.needs {
			if len(st.providersFor(s.current, r)) == 0 {
				msg += fmt.Sprintf("; %s requires %s, which is missing", s.current.bundle, r.text)
			}
		}
		for _, g := range s.current.facts.apis {
			for _, i := range st.installed {
				if i != s.current && i.ns == s.ns && slices.Contains(i.facts.apis, g) {
					msg += fmt.Sprintf("; %s also provides the API %s", i.bundle, g)
				}
			}
		}
		w.warn(diag.Warning{Code: "orphan", Msg: msg, Subject: s.operator()})
	}
}

// reportBadRanges warns about malformed skipRanges in the channels that subscriptions use. It implements Rule 4
// of the package comment.
func (w *world) reportBadRanges(st *state) {
	for _, s := range st.wants {
		pkgs, _ := w.packages(s)
		for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
			if err := e.BadRange(); err != nil {
				p := e.Channel().Package()
				w.warn(diag.Warning{Code: "bad-skip-range", Subject: p.Name(), Msg: fmt.Sprintf("bundle %s of package %s in catalog %s has an invalid skipRange and skips no versions: %v",
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
		w.warnFor(s, "lifecycle", fmt.Sprintf("%s/%s: support dates unknown: %s", i.ns, b.Package().Name(), oneLine(err)))
	}
}

// oneLine returns the message of an error with several lines as one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// reportCannotRun warns about a pinned bundle that cannot run in its namespace or on the cluster. Such a bundle
// is pinned only if it was already installed, or if Options.Requirements is "warn". It implements Rule 7 of the
// package comment.
func (w *world) reportCannotRun(i *installed, s *want) {
	a := &atom{ns: i.ns, entry: i.entry, facts: i.facts, watch: w.watchOf(i.ns, s, i.entry.Bundle())}
	if no := w.cannotRun(a); no.kind != 0 {
		w.warnFor(s, "requirement", fmt.Sprintf("%s/%s: %s %s", i.ns, cmp.Or(i.pkg(), s.pkg), i.bundle, no.text))
	}
}

// reportUnchecked warns about version checks that were skipped, because the version of the cluster is not set
// or has no patch number. It implements Rule 7 of the package comment.
func (w *world) reportUnchecked(st *state) {
	kube, shift := 0, 0
	for _, i := range st.installed {
		if i.entry == nil || len(st.wantsOf(i)) == 0 {
			continue
		}
		minimum := i.entry.Bundle().Metadata().MinKubeVersion
		limited := minimum != "" || i.entry.Bundle().Metadata().KubeVersions != ""
		clusters := w.clusters(i.ns + "/" + i.pkg())
		if limited && slices.ContainsFunc(clusters, func(c Cluster) bool { return c.KubernetesVersion == "" }) {
			kube++
		}
		if at := slices.IndexFunc(clusters, func(c Cluster) bool { return needsPatch(c.KubernetesVersion, minimum) }); at >= 0 {
			w.warn(diag.Warning{Code: "unchecked", Subject: i.ns + "/" + i.pkg(), Msg: fmt.Sprintf("%s/%s needs Kubernetes %s: kubernetesVersion %s has no patch version, so its newest patch is assumed", i.ns, i.pkg(), minimum, clusters[at].KubernetesVersion)})
		}
		if i.entry.Bundle().MaxOpenShiftVersion() != "" {
			shift++
		}
	}
	if kube > 0 {
		w.warn(diag.Warning{Code: "unchecked", Subject: "kubernetesVersion", Msg: "kubernetesVersion is not set in quayside.yaml: minKubeVersion of " + diag.Count(kube, "operator") + " is not checked"})
	}
	if shift > 0 && w.opt.OpenShiftVersion == "" {
		w.warn(diag.Warning{Code: "unchecked", Subject: "openshiftVersion", Msg: "openshiftVersion is not set in quayside.yaml: olm.maxOpenShiftVersion of " + diag.Count(shift, "operator") + " is not checked"})
	}
}

// reportOverlap warns about operators that provide the same API to a common namespace, if Options.AllowOverlap
// permits such overlaps.
func (w *world) reportOverlap(st *state) {
	if !w.opt.AllowOverlap {
		return
	}
	providers := map[catalog.GVK][]*installed{}
	for _, i := range st.installed {
		for _, g := range i.facts.apis {
			for _, other := range providers[g] {
				if other.ns != i.ns && isOverlapping(w.watchedNamespaces(st, other), w.watchedNamespaces(st, i)) {
					w.warn(diag.Warning{Code: "overlap", Subject: i.ns + "/" + i.pkg(), Msg: fmt.Sprintf("%s in namespace %s and %s in namespace %s both provide the API %s to the same namespaces",
						other.bundle, other.ns, i.bundle, i.ns, g)})
				}
			}
			providers[g] = append(providers[g], i)
		}
	}
}

func (w *world) watchedNamespaces(st *state, i *installed) []string {
	var s *want
	if wants := st.wantsOf(i); len(wants) > 0 {
		s = wants[0]
	}
	if i.entry == nil {
		return w.watchOf(i.ns, s, nil)
	}
	return w.watchOf(i.ns, s, i.entry.Bundle())
}

// reportNamespaces warns about namespaces without an OperatorGroup, and about operators that the
// upstream lock does not pin.
func (w *world) reportNamespaces(st *state) {
	for _, s := range st.wants {
		if s.decl == nil || s.current == nil {
			continue
		}
		if sp := w.namespace(s.ns); sp.group == nil && sp.fault == "" && s.decl.Dialect == declare.V0 {
			w.warn(diag.Warning{Pos: s.pos(declare.FieldNamespace), Code: "no-operatorgroup", Subject: s.operator(), Msg: fmt.Sprintf("namespace %s has no OperatorGroup: %s watches %s", s.ns, s.current.bundle,
				formatWatched(w.watchedNamespaces(st, s.current)))})
		}
		if w.opt.From != nil {
			if _, ok := w.opt.From.Pin(s.ns, s.pkg); !ok {
				w.warnFor(s, "not-followed", fmt.Sprintf("the upstream lock does not pin %s/%s", s.ns, s.pkg))
			}
		}
	}
}
