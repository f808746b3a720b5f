package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// upstreamPin returns the pin of a package in the upstream lock, or nil if there is none.
func (w *chooser) upstreamPin(ns, pkg string) *lockfile.Pin {
	if w.opt.From == nil {
		return nil
	}
	if pin, ok := w.opt.From.Pin(ns, pkg); ok {
		return &pin
	}
	return nil
}

// pinToReach returns the pin of s in the upstream lock, if the installed bundle of s is not the bundle of that
// pin. Otherwise it returns nil.
func (w *chooser) pinToReach(s *want) *lockfile.Pin {
	if s.current == nil {
		return nil
	}
	if pin := w.upstreamPin(s.ns, s.pkg); pin != nil && pin.Bundle != s.current.bundle {
		return pin
	}
	return nil
}

// reportHeldPromotion records the reason why s is not promoted to pin, and adds a warning. pin is
// in the upstream lock.
func (r *round) reportHeldPromotion(s *want, pin *lockfile.Pin, opts options) {
	w := r.b.w
	h := r.notPromotedReason(s, pin, opts)
	h.Text = pin.Bundle + h.Text
	w.heldPromotions[s.operator()] = h
	w.warnFor(s, "not-followed", s.title()+" is held back at "+s.current.bundle+": the upstream lock pins "+h.Text)
}

// recordMissingPromotions records the declared operators that cannot be installed as pinned in the
// upstream lock.
func (r *round) recordMissingPromotions() {
	for _, s := range r.b.st.wants {
		pin := r.b.w.upstreamPin(s.ns, s.pkg)
		if _, ok := r.picks[s]; ok || pin == nil || !r.b.isOptional(s) {
			continue
		}
		h := HeldUpgrade{By: HeldByConflict}
		i := slices.IndexFunc(r.b.roots, func(x root) bool {
			return x.want == s && slices.ContainsFunc(x.choice.Of, func(id int) bool { return r.b.atoms[id].bundle() == pin.Bundle })
		})
		if i >= 0 {
			root := r.b.roots[i]
			of := slices.DeleteFunc(slices.Clone(root.choice.Of), func(id int) bool { return r.b.atoms[id].bundle() != pin.Bundle })
			why := r.findObstacle(root, of)
			h.By, h.Text, h.Refused = r.b.banReason(of), "but "+why.text, why.refused
		} else if text := r.b.w.namespace(s.ns).fault; text != "" {
			h.Text = "but " + text
		} else {
			h.By, h.Text = r.b.w.reasonNotOffered(s, pin.Bundle)
		}
		h.Text = pin.Bundle + ", " + h.Text
		r.b.w.heldPromotions[s.operator()] = h
	}
}

// notPromotedReason returns the reason why s is not promoted to pin. Its text is the end of a
// sentence.
func (r *round) notPromotedReason(s *want, pin *lockfile.Pin, opts options) HeldUpgrade {
	switch {
	case s.held != nil:
		return HeldUpgrade{By: HeldByHold, Text: ", but it is held: " + s.hold}
	case s.hold != "":
		return HeldUpgrade{By: HeldByHold, Text: ", but its declaration holds it: " + s.hold}
	case opts.keepReason != "":
		return HeldUpgrade{By: HeldByCatalog, Text: ", and " + opts.keepReason}
	case len(opts.downgrades) > 0:
		return HeldUpgrade{By: HeldByDowngrade, Text: ", which is older"}
	case slices.ContainsFunc(opts.list, func(o option) bool { return o.entry != nil && o.entry.Name() == pin.Bundle }):
		h := r.conflictReason(s)
		if h.Text == "" {
			return HeldUpgrade{By: HeldByConflict}
		}
		h.Text = ", but " + h.Text
		return h
	}
	by, why := r.b.w.reasonNotOffered(s, pin.Bundle)
	return HeldUpgrade{By: by, Text: ", " + why}
}

// reasonNotOffered returns the reason why bundle is not a candidate for s.
func (w *chooser) reasonNotOffered(s *want, bundle string) (HeldBack, string) {
	pkgs, _ := w.packages(s)
	var in []string
	for _, p := range pkgs {
		b, has := p.Bundle(bundle)
		if !has {
			continue
		}
		for _, e := range b.Entries() {
			switch {
			case len(s.channels) > 0 && !slices.Contains(s.channels, e.Channel().Name()):
			case !s.limitsVersions():
				return HeldByRange, "which is not " + s.starting + ", its startingCSV"
			default:
				return HeldByRange, "which is not " + s.describeAllowed()
			}
			in = append(in, e.Channel().Name())
		}
	}
	if len(in) > 0 {
		return HeldByRange, fmt.Sprintf("which is not in channel %s but in %s", strings.Join(s.channels, ", "), strings.Join(slices.Compact(in), ", "))
	}
	return HeldByCatalog, "which is in none of its catalogs"
}

// pinnedEntries returns the entries for the bundle of pin in the packages and channels that s
// permits. A promotion needs no upgrade edge.
func (s *want) pinnedEntries(pkgs []*catalog.Package, pin *lockfile.Pin) []*catalog.Entry {
	return slices.DeleteFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return e.Name() != pin.Bundle })
}
