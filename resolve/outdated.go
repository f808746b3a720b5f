package resolve

import (
	"cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Age compares a pin with the newest versions in its catalog. Versions include the release if there
// is one: "1.2.0 release 2".
type Age struct {
	Namespace      string        `json:"namespace"`
	Package        string        `json:"package"`
	Subscription   string        `json:"subscription"`
	Channel        string        `json:"channel,omitempty"`
	Pinned         string        `json:"pinned"`              // pinned version
	Next           string        `json:"next,omitempty"`      // version after one upgrade edge; empty if there is none
	Reachable      string        `json:"reachable,omitempty"` // version after all upgrade edges; empty if there is none
	Hops           int           `json:"hops"`                // number of upgrade edges to Reachable
	ByVersion      bool          `json:"byVersion,omitempty"` // the upgrade edges follow the order of versions, because the author publishes no upgrade graph
	Head           string        `json:"head,omitempty"`      // version of the channel head
	HeldBackReason string        `json:"reason,omitempty"`    // reason why --upgrade would not upgrade the pin, as text
	HeldBack       HeldBack      `json:"heldBack,omitempty"`  // kind of this reason
	Dropped        string        `json:"dropped,omitempty"`   // catalog that no longer has the pinned bundle; empty if none
	OtherChannels  []ChannelHead `json:"others"`              // heads of the other channels, default channel first
	Deprecated     []string      `json:"deprecated"`          // deprecation messages of the package, channel and bundle

	Lifecycle      *catalog.SupportedVersion `json:"lifecycle,omitempty"`      // support periods of the pinned version; nil if unknown
	Support        *catalog.Support          `json:"support,omitempty"`        // state of support on the requested day; nil if unknown, or without a day
	LifecycleError string                    `json:"lifecycleError,omitempty"` // error in the lifecycle document, which is then ignored
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

// Withdrawn reports whether the catalog no longer has the pinned version, its channel or its
// package.
func (a Age) Withdrawn() bool { return a.HeldBack == HeldByWithdrawal || a.Dropped != "" }

// Unsupported reports whether support for the pinned version had ended on the requested day.
func (a Age) Unsupported() bool { return a.Support != nil && a.Support.State == catalog.Ended }

// Outdated returns the age of every pin, sorted by namespace and package. An age includes the reason why an
// upgrade of all operators would not upgrade the pin. It also includes the state of the pin's support on day,
// such as "2027-01-31", unless day is empty.
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

// fillAge sets the fields of a for the installed bundle of s. pinned is the version of this bundle.
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
				a.Head, a.ByVersion = ch.Head().Bundle().VersionText(), ch.ByVersion()
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
