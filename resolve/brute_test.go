package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/resolve"
)

// TestBruteForceAgrees compares the resolver, run without a previous lock, with a naive search that implements
// only the documented order.
func TestBruteForceAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		u.decl.Subscriptions = slices.DeleteFunc(u.decl.Subscriptions, func(s declare.Subscription) bool { return s.Namespace != "ops" })
		opt := resolve.Options{AllowOverlap: true}
		res, err := resolve.Resolve(u.index(t), &u.decl, nil, opt)
		want, ok := u.solveNaively()
		if ok != (err == nil) {
			t.Fatalf("brute force found a solution: %v, Resolve: %v", ok, err)
		}
		if !ok {
			return
		}
		var got []string
		for _, p := range res.Lock.Pins {
			got = append(got, p.Catalog.ID.Name+"/"+p.Bundle)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, brute force %v", got, want)
		}
	})
}

// node is a channel entry in the naive search.
type node struct {
	cat, pkg, channel string
	prio              int
	isDefault         bool
	b                 catalog.BundleData
}

func (u universe) solveNaively() ([]string, bool) {
	var queue [][]node
	for _, s := range u.decl.Subscriptions {
		var of []node
		for _, n := range u.nodes() {
			if n.cat == s.Catalog.Name && n.pkg == s.Package && (len(s.Channels) == 0 || s.Channels[0] == n.channel) {
				of = append(of, n)
			}
		}
		of = slices.DeleteFunc(of, func(n node) bool { return len(s.Channels) > 0 && n.channel != s.Channels[0] })
		queue = append(queue, u.withOtherChannels(of, s))
	}
	chosen, ok := u.search(queue, nil)
	var out []string
	for _, n := range chosen {
		if name := n.cat + "/" + n.b.Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, ok
}

// withOtherChannels adds, after each node, the same bundle in the other channels of its package, even in
// channels that skip it. It returns the nodes unchanged if the subscription names a channel.
func (u universe) withOtherChannels(of []node, s declare.Subscription) []node {
	if len(s.Channels) > 0 {
		return of
	}
	var out []node
	seen := map[string]bool{}
	for _, n := range of {
		for _, c := range u.cats {
			for _, p := range c.Packages {
				if c.ID.Name != n.cat || p.Name != n.pkg {
					continue
				}
				channels := slices.Clone(p.Channels)
				slices.SortFunc(channels, func(a, b catalog.ChannelData) int {
					switch { // the entry itself first
					case a.Name == n.channel:
						return -1
					case b.Name == n.channel:
						return 1
					}
					return strings.Compare(a.Name, b.Name)
				})
				for _, ch := range channels {
					has := slices.ContainsFunc(ch.Entries, func(e catalog.EntryData) bool { return e.Name == n.b.Name })
					if key := ch.Name + "/" + n.b.Name; has && !seen[key] {
						seen[key] = true
						twin := n
						twin.channel, twin.isDefault = ch.Name, ch.Name == p.DefaultChannel
						out = append(out, twin)
					}
				}
			}
		}
	}
	return out
}

// nodes returns every channel entry that can be chosen: entries of default channels first, then by package, by
// channel, and from the head of the channel down. Skipped entries are omitted.
func (u universe) nodes() []node {
	var out []node
	for _, c := range u.cats {
		for _, p := range c.Packages {
			for _, ch := range p.Channels {
				for _, name := range chain(ch) {
					for _, b := range p.Bundles {
						if b.Name == name {
							out = append(out, node{c.ID.Name, p.Name, ch.Name, c.Priority, ch.Name == p.DefaultChannel, b})
						}
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b node) int {
		if a.isDefault != b.isDefault {
			if a.isDefault {
				return -1
			}
			return 1
		}
		return strings.Compare(a.pkg+"\x00"+a.channel, b.pkg+"\x00"+b.channel)
	})
	return out
}

func chain(ch catalog.ChannelData) []string {
	skipped, replaced, by := map[string]bool{}, map[string]bool{}, map[string]catalog.EntryData{}
	for _, e := range ch.Entries {
		by[e.Name], replaced[e.Replaces] = e, true
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	var out []string
	for _, e := range ch.Entries {
		if replaced[e.Name] || skipped[e.Name] {
			continue
		}
		for at, ok := e, true; ok; at, ok = by[at.Replaces] {
			if !skipped[at.Name] {
				out = append(out, at.Name)
			}
		}
	}
	return out
}

func (u universe) search(queue [][]node, chosen []node) ([]node, bool) {
	same := func(a, b node) bool { return a.cat == b.cat && a.channel == b.channel && a.b.Name == b.b.Name }
	for len(queue) > 0 && slices.ContainsFunc(queue[0], func(n node) bool {
		return slices.ContainsFunc(chosen, func(c node) bool { return same(n, c) })
	}) {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		return chosen, true
	}
	for _, n := range queue[0] {
		if !isCompatible(n, chosen) {
			continue
		}
		next := slices.Clone(queue[1:])
		for _, p := range n.b.Properties {
			if m := requirementTest(p); m != nil {
				next = append(next, u.providers(n, m))
			}
		}
		if out, ok := u.search(next, append(slices.Clone(chosen), n)); ok {
			return out, true
		}
	}
	return nil, false
}

// isCompatible reports whether n can be installed together with the chosen nodes.
func isCompatible(n node, chosen []node) bool {
	if slices.ContainsFunc(n.b.Properties, func(p catalog.Property) bool { return p.Type == "olm.deprecated" }) {
		return false
	}
	for _, c := range chosen {
		for _, claim := range (presentBundle{n.b.Name, n.b.Properties}).claims() {
			if slices.Contains((presentBundle{c.b.Name, c.b.Properties}).claims(), claim) {
				return false
			}
		}
	}
	return true
}

// providers returns the nodes that meet a requirement of the node by. Nodes in the catalog of this node come
// first, then the nodes in other catalogs, by priority and name of the catalog.
func (u universe) providers(by node, m func(presentBundle) bool) []node {
	var out []node
	for _, n := range u.nodes() {
		if m(presentBundle{n.b.Name, n.b.Properties}) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b node) int {
		switch {
		case a.cat == b.cat:
			return 0
		case a.cat == by.cat:
			return -1
		case b.cat == by.cat:
			return 1
		case a.prio != b.prio:
			return b.prio - a.prio
		}
		return strings.Compare(a.cat, b.cat)
	})
	return out
}
