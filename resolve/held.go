package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// HeldBack is the reason why an operator is not upgraded to the next bundle, or to the head of its
// channel.
type HeldBack string

// The reasons: first those of the declaration, then of the catalogs, then of the cluster and other
// operators.
const (
	HeldByApproval    HeldBack = "approval"       // Manual: upgraded only when named
	HeldByHold        HeldBack = "hold"           // its declaration has a hold
	HeldByRange       HeldBack = "range"          // its declaration does not allow the next version
	HeldByDowngrade   HeldBack = "downgrade"      // the only edge leads to an older version
	HeldByEdges       HeldBack = "stranded"       // no upgrade edge
	HeldByCatalog     HeldBack = "catalog"        // in a promotion: no catalog of its declaration has the version
	HeldByWithdrawal  HeldBack = "withdrawn"      // its catalog no longer has the version, channel or package
	HeldByFault       HeldBack = "notJudged"      // its catalog cannot be read, or its declaration is invalid
	HeldByInstallMode HeldBack = "installMode"    // the next bundle does not support the install mode of its OperatorGroup
	HeldByCluster     HeldBack = "clusterVersion" // the next bundle does not run on the cluster's version
	HeldByConflict    HeldBack = "conflict"       // the next bundle conflicts with another operator or a requirement
)

// HeldUpgrade is the reason why an operator is not upgraded. The zero value means that it is upgraded, or
// that there is no upgrade.
type HeldUpgrade struct {
	By      HeldBack
	Text    string   // By as text; empty: no message
	Refused []string // dependencies (namespace/package) whose bundles Options.Objection refused; sorted

	offered string         // the next bundle; empty: none
	to      *catalog.Entry // the bundle that a flag could install; nil: none
}

// upgradeOptions returns opt for an upgrade of everything.
func upgradeOptions(opt Options) Options {
	opt.Upgrade, opt.Named, opt.From, opt.Unpin, opt.AllowDowngrade = true, nil, nil, nil, false
	return opt
}

// holdReasons returns the state of lock, and the reason that would hold back each installed bundle
// in an upgrade. The options of w must come from upgradeOptions. The solver runs only if an upgrade
// is available.
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

// reportHeld warns if a requested upgrade was held back, and in any case if no edge leads to the
// head of the channel. The suggested flag is for a run that starts from lock. It implements Rule 6.
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

// reportOtherHolds warns about the elements of Options.Held that reportHeld has not reported, because
// no upgrade was requested or available.
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

// holdReason returns the reason why the upgrade of s is held back, given its candidates. It calls
// solved only if opts contains an upgrade.
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
		if e := w.nextDisallowed(s); e != nil {
			return HeldUpgrade{By: HeldByRange, offered: e.Name(), Text: "it is not " + s.describeAllowed()}
		}
		return w.strandedReason(s)
	}
	return HeldUpgrade{}
}

// faultReason returns the reason that a fault gives for an installed bundle.
func (w *world) faultReason(s *want, f *fault) HeldUpgrade {
	if f.withdrawn && s.current.pin != nil && !w.isEdited(s) {
		return HeldUpgrade{By: HeldByWithdrawal, Text: f.msg}
	}
	return HeldUpgrade{By: HeldByFault, Text: f.msg}
}

// nextDisallowed returns the first higher entry that has an edge from the installed bundle and that s
// does not allow, or nil.
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

// conflictReason returns the reason why the installed bundle of s is chosen again although s has
// other candidates. It returns the zero value if another bundle is chosen.
func (r *round) conflictReason(s *want) HeldUpgrade {
	if !r.staysInstalled(s) {
		return HeldUpgrade{}
	}
	root := r.b.roots[slices.IndexFunc(r.b.roots, func(x root) bool { return x.want == s })]
	better := slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool {
		a := r.b.atoms[id]
		return a.entry == nil || a.bundle() == s.current.bundle
	})
	if len(better) == 0 { // relaxed together with the other parties of its conflict
		return HeldUpgrade{By: HeldByConflict}
	}
	why := r.findObstacle(root, better)
	return HeldUpgrade{By: r.b.banReason(better), offered: r.b.atoms[better[0]].bundle(), Text: why.text, Refused: why.refused}
}

// banReason returns the reason of the last atom, HeldByInstallMode or HeldByCluster, if every atom
// is banned for one of these reasons. Otherwise it returns HeldByConflict.
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

// strandedReason returns the reason why the installed bundle has no upgrade path to the head. The
// zero value means that it is not stranded. It implements Rule 14.
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

// upgradeFlag returns the end of a message that suggests the flags which upgrade s to h.to, or ""
// if there are none. It resolves once from lock to prove the suggestion. It implements Rule 13.
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

// namesBundle reports whether s names a bundle: its catalog contains only that bundle.
func (s *want) namesBundle() bool { return s.decl != nil && s.decl.Bundle != "" }

// droppedBy returns the catalog that no longer has the pinned bundle of i, or "". It implements
// Rule 14.
func (w *world) droppedBy(i *installed) string {
	if _, read := w.x.Catalog(i.cat); i.pin == nil || i.entry != nil || !read {
		return ""
	}
	return i.cat.String()
}
