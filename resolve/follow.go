package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// theirs returns the pin of a package in the lock to follow; nil where it has none.
func (w *world) theirs(ns, pkg string) *lockfile.Pin {
	if w.opt.From == nil {
		return nil
	}
	if pin, ok := w.opt.From.Pin(ns, pkg); ok {
		return &pin
	}
	return nil
}

// follows returns the pin that what is installed for s is to move to; nil where
// there is none, or it is there.
func (w *world) follows(s *want) *lockfile.Pin {
	if s.current == nil {
		return nil
	}
	if pin := w.theirs(s.ns, s.pkg); pin != nil && pin.Bundle != s.current.bundle {
		return pin
	}
	return nil
}

// reportStay says why s stays where it is, and not at what the lock to follow pins.
// lock is where the user goes on from.
func (r *round) reportStay(s *want, pin *lockfile.Pin, opts options, lock *lockfile.File) {
	w := r.b.w
	by, why := r.notFollowed(s, pin, opts)
	w.stays = append(w.stays, Stay{Namespace: s.ns, Package: s.pkg, By: by, Text: pin.Bundle + why})
	if by == HeldByVersions && w.downTakes(s, pin, lock) {
		why += "; --allow-downgrade takes it"
	}
	w.warnFor(s, "not-followed", s.title()+" stays at "+s.current.bundle+": the lock to follow pins "+pin.Bundle+why)
}

// notFollowed returns what keeps s from what the lock to follow pins, and the end
// of a sentence.
func (r *round) notFollowed(s *want, pin *lockfile.Pin, opts options) (HeldBack, string) {
	switch {
	case s.hold != "":
		return HeldByHold, ", and its declaration holds it: " + s.hold
	case opts.stay != "":
		return HeldByCatalog, ", and " + opts.stay
	case len(opts.down) > 0:
		return HeldByVersions, ", which is older"
	case slices.ContainsFunc(opts.of, func(o option) bool { return o.entry != nil && o.entry.Name() == pin.Bundle }):
		h := r.against(s)
		if h.why != nil {
			return h.by, ", but " + h.why()
		}
		return HeldByConflict, ""
	}
	by, why := r.b.w.unoffered(s, pin.Bundle)
	return by, ", " + why
}

// downTakes reports whether s goes down to a pin where that is allowed.
func (w *world) downTakes(s *want, pin *lockfile.Pin, lock *lockfile.File) bool {
	at := Target{Namespace: s.ns, Package: s.pkg}
	down := *w
	down.opt.KeepGoing = true
	return (trial{w: &down, prev: lock}).takes(at, remedy{apply: func(in *inputs) { in.opt.AllowDowngrade = true }}) == pin.Bundle
}

// unoffered returns why no entry of that bundle answers s.
func (w *world) unoffered(s *want, bundle string) (HeldBack, string) {
	pkgs, _ := w.packages(s)
	var in []string
	for _, p := range pkgs {
		b, has := p.Bundle(bundle)
		if !has {
			continue
		}
		for _, e := range b.Entries() {
			if len(s.channels) == 0 || slices.Contains(s.channels, e.Channel().Name()) {
				return HeldByRange, "which is not " + s.allowed()
			}
			in = append(in, e.Channel().Name())
		}
	}
	if len(in) > 0 {
		return HeldByRange, fmt.Sprintf("which is not in channel %s but in %s", strings.Join(s.channels, ", "), strings.Join(slices.Compact(in), ", "))
	}
	return HeldByCatalog, "which no catalog that it may come from has"
}

// followed returns the entries of a pin's bundle among those that answer s: where
// a lock is followed, no edge is asked for.
func (s *want) followed(pkgs []*catalog.Package, pin *lockfile.Pin) []*catalog.Entry {
	return slices.DeleteFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return e.Name() != pin.Bundle })
}
