package resolve

import (
	"cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Age compares one pin with the newest version of its catalog. Versions include their release, if
// any: "1.2.0 release 2".
type Age struct {
	Namespace      string        `json:"namespace"`
	Package        string        `json:"package"`
	Subscription   string        `json:"subscription"`
	Channel        string        `json:"channel,omitempty"`
	Pinned         string        `json:"pinned"`              // version
	Next           string        `json:"next,omitempty"`      // version one hop away; empty: none
	Reachable      string        `json:"reachable,omitempty"` // version after all reachable hops; empty: none
	Hops           int           `json:"hops"`                // number of hops to Reachable
	Head           string        `json:"head,omitempty"`      // version at the head of the channel
	HeldBackReason string        `json:"reason,omitempty"`    // why --upgrade would not upgrade it: hold, approval, a conflict, no edge
	HeldBack       HeldBack      `json:"heldBack,omitempty"`  // HeldBackReason as a constant
	Dropped        string        `json:"dropped,omitempty"`   // the catalog that no longer has the pinned bundle
	OtherChannels  []ChannelHead `json:"others"`              // the other channels, default first
	Deprecated     []string      `json:"deprecated"`          // messages for the package, channel and bundle

	Lifecycle      *catalog.SupportedVersion `json:"lifecycle,omitempty"`      // the catalog's support data of the pinned version; nil: none
	Support        *catalog.Support          `json:"support,omitempty"`        // its state on the requested day; nil: no support data, or no day
	LifecycleError string                    `json:"lifecycleError,omitempty"` // the reason why malformed support data is ignored
}

// ChannelHead is the newest version of a channel.
type ChannelHead struct {
	Channel string `json:"channel"`
	Version string `json:"version"`
}

// Current reports whether the pin is at the head of its channel.
func (a Age) Current() bool {
	return (a.Head == "" || a.Head == a.Pinned) && !a.Withdrawn() && a.HeldBack != HeldByFault
}

// Withdrawn reports whether the catalog no longer has the pinned version, or its channel or package.
func (a Age) Withdrawn() bool { return a.HeldBack == HeldByWithdrawal || a.Dropped != "" }

// Unsupported reports whether support for the pinned version has ended on the day of Support.
func (a Age) Unsupported() bool { return a.Support != nil && a.Support.State == catalog.Ended }

// Outdated returns the age of every pin, by namespace and package. It includes the reasons that
// would hold back the pin in a full upgrade, and the state of its support on a day such as
// "2027-01-31". If day is empty, it omits the state of the support.
func Outdated(x *catalog.Index, decl *declare.Set, lock *lockfile.File, opt Options, day string) []Age {
	w := newWorld(x, decl, upgradeOptions(opt))
	w.quiet = true
	st, holds := w.holdReasons(lock)
	var out []Age
	for _, p := range lock.Pins {
		a := Age{
			Namespace: p.Namespace, Package: p.Package, Subscription: p.Subscription(), Channel: p.Channel, Pinned: p.VersionText(),
			OtherChannels: []ChannelHead{}, Deprecated: []string{},
		}
		for _, s := range st.wants {
			if s.current != nil && s.current.pin != nil && s.current.pin.Key() == p.Key() {
				w.fillAge(&a, s, p.Version)
				h := holds[s]
				a.HeldBack, a.HeldBackReason = h.By, cmp.Or(h.Text+w.upgradeFlag(s, h, lock), a.HeldBackReason)
				a.Dropped = w.droppedBy(s.current)
				break
			}
		}
		a.Support = a.Lifecycle.SupportOn(day)
		out = append(out, a)
	}
	return out
}

// fillAge sets the fields of a from subscription s and its catalogs. pinned is the installed
// version.
func (w *world) fillAge(a *Age, s *want, pinned string) {
	_, a.HeldBackReason = w.preference(s)
	pkgs, bad := w.packages(s)
	if bad != nil {
		a.HeldBackReason = bad.msg
		return
	}
	way := w.remaining(s.current, s, maxRounds)
	a.Hops = len(way)
	for _, p := range pkgs {
		version := func(name string) string {
			if b, ok := p.Bundle(name); ok {
				return b.VersionText()
			}
			return name
		}
		if len(way) > 0 && a.Next == "" {
			a.Next, a.Reachable = version(way[0]), version(way[len(way)-1])
		}
		mine := s.channelsOf(p)
		for i, ch := range mine {
			if i == 0 && a.Head == "" {
				a.Head = ch.Head().Bundle().VersionText()
			}
			a.addDeprecation(ch.Deprecation())
		}
		for _, ch := range p.Channels() {
			if len(s.channels) == 0 || len(mine) > 0 && ch != mine[0] {
				a.OtherChannels = append(a.OtherChannels, ChannelHead{ch.Name(), ch.Head().Bundle().VersionText()})
			}
		}
		a.addDeprecation(p.Deprecation())
		if b, ok := p.Bundle(s.current.bundle); ok {
			a.addDeprecation(b.Deprecation())
		}
		a.Lifecycle = catalog.FindSupport(p.Lifecycle(), pinned)
		if err := p.LifecycleFaults(); err != nil {
			a.LifecycleError = oneLine(err)
		}
	}
}

func (a *Age) addDeprecation(msg string) {
	if msg != "" {
		a.Deprecated = append(a.Deprecated, msg)
	}
}
