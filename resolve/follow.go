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

// notFollowed returns the end of a sentence: why s stays where it is, and not at
// what the lock to follow pins.
func (r *round) notFollowed(s *want, pin *lockfile.Pin, opts options, lock *lockfile.File) string {
	w := r.b.w
	text := ": the lock to follow pins " + pin.Bundle
	switch {
	case s.hold != "":
		return text + ", and its declaration holds it: " + s.hold
	case opts.stay != "":
		return text + ", and " + opts.stay
	case len(opts.down) > 0:
		text += ", which is older"
		at := Target{Namespace: s.ns, Package: s.pkg}
		down := *w
		down.opt.KeepGoing = true
		if (trial{w: &down, prev: lock}).takes(at, remedy{apply: func(in *inputs) { in.opt.AllowDowngrade = true }}) == pin.Bundle {
			text += "; --allow-downgrade takes it"
		}
		return text
	case slices.ContainsFunc(opts.of, func(o option) bool { return o.entry != nil && o.entry.Name() == pin.Bundle }):
		if h := r.against(s); h.why != nil {
			return text + ", but " + h.why()
		}
		return text
	}
	return text + ", " + w.unoffered(s, pin.Bundle)
}

// unoffered returns why no entry of that bundle answers s.
func (w *world) unoffered(s *want, bundle string) string {
	pkgs, _ := w.packages(s)
	var in []string
	for _, p := range pkgs {
		b, has := p.Bundle(bundle)
		if !has {
			continue
		}
		for _, e := range b.Entries() {
			if len(s.channels) == 0 || slices.Contains(s.channels, e.Channel().Name()) {
				return "which is not " + s.allowed()
			}
			in = append(in, e.Channel().Name())
		}
	}
	if len(in) > 0 {
		return fmt.Sprintf("which is not in channel %s but in %s", strings.Join(s.channels, ", "), strings.Join(slices.Compact(in), ", "))
	}
	return "which no catalog that it may come from has"
}

// followed returns the entries of a pin's bundle among those that answer s: where
// a lock is followed, no edge is asked for.
func (s *want) followed(pkgs []*catalog.Package, pin *lockfile.Pin) []*catalog.Entry {
	return slices.DeleteFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return e.Name() != pin.Bundle })
}
