package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// HeldBack is the kind of reason why an operator is not upgraded.
type HeldBack string

// The kinds of reasons: first the reasons in the declaration, then in the catalogs, then in the cluster or in
// other operators.
const (
	HeldByApproval    HeldBack = "approval"       // approval is Manual: upgraded only if the user names it
	HeldByHold        HeldBack = "hold"           // the declaration has a hold
	HeldByRange       HeldBack = "range"          // the declaration does not allow the next version
	HeldByDowngrade   HeldBack = "downgrade"      // the only upgrade edge leads to a lower version
	HeldByEdges       HeldBack = "stranded"       // no upgrade edge leads to the channel head
	HeldByCatalog     HeldBack = "catalog"        // in a promotion: no catalog of the declaration has the version
	HeldByWithdrawal  HeldBack = "withdrawn"      // the catalog no longer has the version, channel or package
	HeldByFault       HeldBack = "notJudged"      // the catalog cannot be read, or the declaration is invalid
	HeldByInstallMode HeldBack = "installMode"    // the next bundle does not support the install mode that the OperatorGroup needs
	HeldByCluster     HeldBack = "clusterVersion" // the next bundle does not support the version of the cluster
	HeldByConflict    HeldBack = "conflict"       // the next bundle conflicts with another operator or a requirement
)

// HeldUpgrade is the reason why an operator is not upgraded. The zero value means that the operator is upgraded
// or has no available upgrade.
type HeldUpgrade struct {
	By      HeldBack
	Text    string   // the reason for messages; empty if no message is needed
	Refused []string // dependencies ("namespace/package") whose bundles Options.Objection rejected; sorted

	offered string         // name of the next bundle, or ""
	to      *catalog.Entry // bundle that flags could install, or nil
}

// upgradeOptions returns opt changed to request an upgrade of all operators.
func upgradeOptions(opt Options) Options {
	opt.Upgrade, opt.Named, opt.From, opt.Unpin, opt.AllowDowngrade = true, nil, nil, nil, false
	return opt
}

// holdReasons returns the state of lock. For each installed bundle, it also returns the reason why an upgrade
// of all operators would not upgrade it. w must have the options of upgradeOptions. The solver runs only if
// an upgrade is available.
func (w *world) holdReasons(lock *lockfile.File) (*state, map[*want]HeldUpgrade) {
	st, out := w.stateBefore(lock), map[*want]HeldUpgrade{}
	var once *round
	solved := func() *round {
		if once == nil {
			once = &round{b: &builder{}}
			if r, err := w.runRound(st); err == nil {
				once = r
			}
		}
		return once
	}
	for _, s := range st.wants {
		if s.current != nil {
			out[s] = w.holdReason(s, w.options(s), solved)
		}
	}
	return st, out
}

// reportHeld warns that a requested upgrade was held back. If no upgrade was requested, it warns only about a
// fault, a withdrawn version, or a missing upgrade path to the channel head. The flags that it suggests apply
// to a run whose previous lock is lock. It implements Rule 6 of the package comment.
func (w *world) reportHeld(r *round, root root, lock *lockfile.File) {
	s := root.want
	if !r.staysInstalled(s) {
		return
	}
	if pin := w.pinToReach(s); pin != nil {
		r.reportHeldPromotion(s, pin, root.opts)
		return
	}
	h, code := w.holdReason(s, root.opts, func() *round { return r }), "held"
	switch h.By {
	case HeldByDowngrade:
		code = "downgrade"
	case HeldByEdges, HeldByWithdrawal, HeldByFault:
		code = "stranded"
	default:
	}
	if h.Text == "" || code != "stranded" && !w.opt.Upgrade && w.targetOf(s) == nil {
		return
	}
	text := s.title() + " is held back at " + s.current.bundle
	if h.offered != "" {
		text += " although " + h.offered + " is available"
	}
	w.warnFor(s, code, text+": "+h.Text+w.upgradeFlag(s, h, lock))
	if h.By == HeldByHold {
		w.reportedHolds = append(w.reportedHolds, s.held)
	}
}

// reportOtherHolds warns about the holds in Options.Held that reportHeld has not reported. This happens if no
// upgrade of a held operator was requested or available.
func (w *world) reportOtherHolds() {
	for i := range w.opt.Held {
		if h := &w.opt.Held[i]; !slices.Contains(w.reportedHolds, h) {
			w.warn(diag.Warning{Pos: h.At, Code: "held", Subject: h.Operator, Msg: h.Operator + " is held back: " + h.Reason})
		}
	}
}

// staysInstalled reports whether the installed bundle of s was chosen again.
func (r *round) staysInstalled(s *want) bool {
	id, ok := r.picks[s]
	return ok && r.b.atoms[id].bundle() == s.current.bundle
}

// holdReason returns the reason why s is not upgraded. opts are the candidates of s. If they contain an
// upgrade, holdReason calls solved, which returns the resolved round.
func (w *world) holdReason(s *want, opts options, solved func() *round) HeldUpgrade {
	how, stay := w.preference(s)
	switch {
	case cmp.Or(opts.fault, opts.keepFault) != nil:
		return w.faultReason(s, cmp.Or(opts.fault, opts.keepFault))
	case how == preferUpgrade && slices.ContainsFunc(opts.list, func(o option) bool { return o.entry != nil && o.entry.Name() != s.current.bundle }):
		return solved().conflictReason(s)
	}
	next := w.remaining(s.current, s, 1)
	switch {
	case how == onlyInstalled && len(next) > 0:
		h := HeldUpgrade{By: HeldByApproval, offered: next[0], Text: stay}
		if s.hold != "" {
			h.By = HeldByHold
		}
		return h
	case len(opts.downgrades) > 0:
		return HeldUpgrade{By: HeldByDowngrade, Text: "the only candidate is older: " + opts.downgrades[0].Name(), to: opts.downgrades[0]}
	case len(next) == 0:
		if t := w.targetOf(s); t != nil && s.current.entry != nil && isVersion(s.current.entry, t.Version) {
			return HeldUpgrade{} // it is the requested version
		}
		if e := w.nextDisallowed(s); e != nil {
			return HeldUpgrade{By: HeldByRange, offered: e.Name(), Text: "it is not " + s.describeAllowed()}
		}
		return w.strandedReason(s)
	}
	return HeldUpgrade{}
}

// faultReason returns the hold reason for an installed bundle whose candidates have a fault.
func (w *world) faultReason(s *want, f *fault) HeldUpgrade {
	if f.withdrawn && s.current.pin != nil && !w.isEdited(s) {
		return HeldUpgrade{By: HeldByWithdrawal, Text: f.msg}
	}
	return HeldUpgrade{By: HeldByFault, Text: f.msg}
}

// nextDisallowed returns the first channel entry with a higher version and an upgrade edge from the installed
// bundle, if the declaration of s does not allow this entry. It returns nil if there is no such entry.
func (w *world) nextDisallowed(s *want) *catalog.Entry {
	pkgs, bad := w.packages(s)
	if bad != nil || !s.limitsVersions() {
		return nil
	}
	allowed, bad := s.versionFilter()
	if bad != nil {
		return nil
	}
	edges := w.upgradeEntries(s, pkgs)
	i := slices.IndexFunc(edges, func(e *catalog.Entry) bool {
		v := e.Bundle().Version()
		return !allowed(e.Name(), v) && s.current.facts.hasVersion && s.current.facts.isBelow(e.Bundle())
	})
	if i < 0 {
		return nil
	}
	return edges[i]
}

// conflictReason returns the reason why the installed bundle of s was chosen again, although there
// were other candidates. If another bundle was chosen, it returns the zero value.
func (r *round) conflictReason(s *want) HeldUpgrade {
	if !r.staysInstalled(s) {
		return HeldUpgrade{}
	}
	root := r.b.roots[slices.IndexFunc(r.b.roots, func(x root) bool { return x.want == s })]
	better := slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool {
		a := r.b.atoms[id]
		return a.entry == nil || a.bundle() == s.current.bundle
	})
	if len(better) == 0 { // s was relaxed together with the other parties of a conflict
		return HeldUpgrade{By: HeldByConflict}
	}
	why := r.findObstacle(root, better)
	return HeldUpgrade{By: r.b.banReason(better), offered: r.b.atoms[better[0]].bundle(), Text: why.text, Refused: why.refused}
}

// banReason returns HeldByInstallMode or HeldByCluster if install modes or the cluster's version exclude every
// atom. The last atom decides which of the two. If any atom is not excluded in this way, it returns HeldByConflict.
func (b *builder) banReason(ids []int) HeldBack {
	words := map[banKind]HeldBack{banInstallMode: HeldByInstallMode, banCluster: HeldByCluster}
	by := HeldByConflict
	for _, id := range ids {
		why := b.bans(b.atoms[id])
		i := slices.IndexFunc(why, func(w ban) bool { return words[w.kind] != "" })
		if i < 0 {
			return HeldByConflict
		}
		by = words[why[i].kind]
	}
	return by
}

// strandedReason returns the reason why the installed bundle of s has no upgrade path to the channel head. If
// there is a path, it returns the zero value. It implements Rule 14 of the package comment.
func (w *world) strandedReason(s *want) HeldUpgrade {
	pkgs, bad := w.packages(s)
	if bad != nil || s.namesBundle() {
		return HeldUpgrade{}
	}
	var head *catalog.Entry
	for _, p := range pkgs {
		for _, ch := range s.channelsOf(p) {
			if ch.Head().Name() == s.current.bundle {
				return HeldUpgrade{}
			}
			if head == nil {
				head = ch.Head()
			}
		}
	}
	if head == nil {
		return HeldUpgrade{}
	}
	h := HeldUpgrade{By: HeldByEdges, Text: "it has no upgrade path to " + head.Name(), to: head}
	if w.droppedBy(s.current) != "" {
		h.By = HeldByWithdrawal
	}
	return h
}

// upgradeFlag returns a message suffix with the flags that upgrade s to h.to, or "" if no flags do this. To prove
// the suggestion, it resolves once with lock as the previous lock. It implements Rule 13 of the package comment.
func (w *world) upgradeFlag(s *want, h HeldUpgrade, lock *lockfile.File) string {
	if h.to == nil {
		return ""
	}
	at := Target{Namespace: s.ns, Package: s.pkg, Reinstall: true}
	flags, effect := "--reinstall="+s.ns+"/"+s.pkg, " upgrades without an upgrade edge"
	down := s.current.facts.hasVersion && s.current.facts.isAbove(h.to.Bundle())
	switch {
	case h.By == HeldByDowngrade:
		flags, effect = "--allow-downgrade", " allows it"
		at.Reinstall = w.targetOf(s) != nil && w.targetOf(s).Reinstall
	case down:
		flags += " --allow-downgrade"
	}
	opt := upgradeOptions(w.opt)
	opt.Upgrade, opt.Named, opt.AllowDowngrade = false, []Target{at}, down
	as := w.forTrial(w.decl, opt)
	as.successors = w.successors
	r, err := as.runRound(as.stateBefore(lock))
	if err != nil || !slices.ContainsFunc(r.next.wants, func(n *want) bool {
		return n.key() == s.key() && n.current != nil && n.current.bundle == h.to.Name()
	}) {
		return ""
	}
	if w.opt.Command != "" {
		flags = fmt.Sprintf("'%s %s'", w.opt.Command, flags)
	}
	return "; " + flags + effect
}

// namesBundle reports whether the declaration of s names a bundle. Each such bundle has a catalog of its own.
func (s *want) namesBundle() bool { return s.decl != nil && s.decl.Bundle != "" }

// droppedBy returns the catalog that no longer has the pinned bundle of i, or "" if the catalog has it. It
// implements Rule 14 of the package comment.
func (w *world) droppedBy(i *installed) string {
	if _, read := w.x.Catalog(i.cat); i.pin == nil || i.entry != nil || !read {
		return ""
	}
	return i.cat.String()
}
