package resolve

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// HeldBack is the reason why an operator is not upgraded to the next bundle of its
// channel, or to the head.
type HeldBack string

// The reasons: of the declaration, then of the catalogs, then of the cluster and of
// other operators.
const (
	HeldByApproval    HeldBack = "approval"       // Manual: upgraded only when named
	HeldByHold        HeldBack = "hold"           // its declaration holds it
	HeldByRange       HeldBack = "range"          // its declaration does not allow the next version
	HeldByVersions    HeldBack = "downgrade"      // the only edge leads to an older version
	HeldByCatalog     HeldBack = "stranded"       // no edge leads on, or its channel or package was removed
	HeldByDrop        HeldBack = "dropped"        // likewise, and its catalog dropped the version
	HeldByInstallMode HeldBack = "installMode"    // the next one does not support what its OperatorGroup wants
	HeldByCluster     HeldBack = "clusterVersion" // the next one does not run on that version of the cluster
	HeldByConflict    HeldBack = "conflict"       // the next one conflicts with something else
)

// held is why something installed stays where it is. The zero value says that it
// moves, or need not.
type held struct {
	by   HeldBack
	text string         // the end of a sentence: " although a.v2 is offered: "; empty: nothing is to be said
	why  func() string  // the rest of it, where that has to be found out; nil: there is none
	to   *catalog.Entry // what a flag may get it to; nil: nothing
}

// sentence returns the end of a sentence, with what gets out of it when resolving
// from lock; or nothing.
func (w *world) sentence(s *want, h held, lock *lockfile.File) string {
	if h.why != nil {
		h.text += h.why()
	}
	return h.text + w.exit(s, h, lock)
}

// moving returns opt where everything is to move that may.
func moving(opt Options) Options {
	opt.Upgrade, opt.Named, opt.From, opt.Unpin, opt.AllowDowngrade = true, nil, nil, nil, false
	return opt
}

// holds returns the state that lock makes, and what would hold back each thing
// that is asked for. Options are those of moving. The solver is asked where there
// is somewhere to go.
func (w *world) holds(lock *lockfile.File) (*state, map[*want]held) {
	st, out := w.stateBefore(lock), map[*want]held{}
	var once *round
	solved := func() *round {
		if once == nil {
			once = &round{b: &builder{}}
			if r, err := w.round(st, func() *lockfile.File { return lock }); err == nil {
				once = r
			}
		}
		return once
	}
	for _, s := range st.wants {
		if s.current != nil {
			out[s] = w.held(s, w.options(s), solved)
		}
	}
	return st, out
}

// reportHeld says why something stays that was to move, or that nothing leads on
// from, whether or not it was to. lock is where the user goes on from. Rule 6.
func (w *world) reportHeld(r *round, root root, lock *lockfile.File) {
	s := root.want
	if !r.leaves(s) {
		return
	}
	if pin := w.follows(s); pin != nil {
		r.reportStay(s, pin, root.opts, lock)
		return
	}
	h, code := w.held(s, root.opts, func() *round { return r }), "held"
	switch h.by {
	case HeldByVersions:
		code = "downgrade"
	case HeldByCatalog, HeldByDrop:
		code = "stranded"
	default:
	}
	if h.text != "" && (code == "stranded" || w.opt.Upgrade || w.named(s) != nil) {
		w.warnFor(s, code, s.title()+" stays at "+s.current.bundle+w.sentence(s, h, lock))
	}
}

// leaves reports whether what is installed for s stays.
func (r *round) leaves(s *want) bool {
	id, ok := r.picks[s]
	return ok && r.b.atoms[id].bundle() == s.current.bundle
}

// held returns why what is installed for s stays, which opts can answer. What is
// possible and not done only solved knows.
func (w *world) held(s *want, opts options, solved func() *round) held {
	how, stay := w.manner(s)
	switch {
	case opts.stay != "" && opts.stay != stay:
		return held{by: HeldByCatalog, text: ": " + opts.stay}
	case how == moveIt && slices.ContainsFunc(opts.of, func(o option) bool { return o.entry != nil && o.entry.Name() != s.current.bundle }):
		return solved().against(s)
	}
	next := w.remaining(s.current, s, 1)
	switch {
	case how == fixIt && len(next) > 0:
		h := held{by: HeldByApproval, text: " although " + next[0] + " is offered: " + stay}
		if s.hold != "" {
			h.by = HeldByHold
		}
		return h
	case len(opts.down) > 0:
		return held{by: HeldByVersions, text: ": the only way on goes down to " + opts.down[0].Name(), to: opts.down[0]}
	case len(next) == 0:
		if e := w.outside(s); e != nil {
			return held{by: HeldByRange, text: " although " + e.Name() + " is offered: that is not " + s.allowed()}
		}
		return w.stranded(s)
	}
	return held{}
}

// outside returns the first entry that an edge leads up to from what is installed
// and that s does not allow; nil where there is none.
func (w *world) outside(s *want) *catalog.Entry {
	pkgs, bad := w.packages(s)
	if bad != nil || !s.limits() {
		return nil
	}
	allowed, bad := s.allows()
	if bad != nil {
		return nil
	}
	edges := w.edges(s, pkgs)
	i := slices.IndexFunc(edges, func(e *catalog.Entry) bool {
		v := e.Bundle().Version()
		return !allowed(e.Name(), v) && s.current.facts.hasVersion && s.current.facts.isBelow(e.Bundle())
	})
	if i < 0 {
		return nil
	}
	return edges[i]
}

// against returns why s keeps what is installed although something else is
// offered, or nothing where it does not.
func (r *round) against(s *want) held {
	if !r.leaves(s) {
		return held{}
	}
	root := r.b.roots[slices.IndexFunc(r.b.roots, func(x root) bool { return x.want == s })]
	better := slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool {
		a := r.b.atoms[id]
		return a.entry == nil || a.bundle() == s.current.bundle
	})
	if len(better) == 0 { // it was given up with what it takes part in
		return held{by: HeldByConflict}
	}
	h := held{by: r.b.bannedBy(better), text: " although " + r.b.atoms[better[0]].bundle() + " is offered: "}
	h.why = func() string { return r.prevents(root, better) }
	return h
}

// bannedBy returns what none of the atoms can do where they are, else that they
// conflict with something.
func (b *builder) bannedBy(ids []int) HeldBack {
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

// stranded says that no edge leads from what is installed to the head. Rule 14.
func (w *world) stranded(s *want) held {
	pkgs, bad := w.packages(s)
	if bad != nil || s.direct() {
		return held{}
	}
	var head *catalog.Entry
	for _, p := range pkgs {
		for _, ch := range s.channelsOf(p) {
			if ch.Head().Name() == s.current.bundle {
				return held{}
			}
			if head == nil {
				head = ch.Head()
			}
		}
	}
	if head == nil {
		return held{}
	}
	h := held{by: HeldByCatalog, text: ": no edge leads from it towards " + head.Name(), to: head}
	if w.dropped(s.current) != "" {
		h.by = HeldByDrop
	}
	return h
}

// exit says of the flag that may get s to what h names whether it does: it is
// tried from lock. Rule 13.
func (w *world) exit(s *want, h held, lock *lockfile.File) string {
	if h.to == nil {
		return ""
	}
	at := Target{Namespace: s.ns, Package: s.pkg, Anew: true}
	flags, takes := "--reinstall="+s.ns+"/"+s.pkg, " takes that without one"
	down := s.current.facts.hasVersion && s.current.facts.isAbove(h.to.Bundle())
	switch {
	case h.by == HeldByVersions:
		flags, takes = "--allow-downgrade", " takes it"
		at.Anew = w.named(s) != nil && w.named(s).Anew
	case down:
		flags += " --allow-downgrade"
	}
	plain := *w
	plain.opt = moving(w.opt)
	plain.opt.Upgrade, plain.opt.KeepGoing, plain.opt.AllowDowngrade, plain.opt.Hops = false, true, down, 1
	if (trial{w: &plain, prev: lock}).takes(at, remedy{apply: func(in *inputs) { in.name(at) }}) != h.to.Name() {
		takes = " does not take it there either"
	}
	return "; " + flags + takes
}

// direct reports whether s names a bundle: its catalog is made of that alone.
func (s *want) direct() bool { return s.decl != nil && s.decl.Bundle != "" }

// dropped returns the catalog that had i and has it no more, or "". Rule 14.
func (w *world) dropped(i *installed) string {
	if _, read := w.x.Catalog(i.cat); i.pin == nil || i.entry != nil || !read {
		return ""
	}
	return i.cat.String()
}
