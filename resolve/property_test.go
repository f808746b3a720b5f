package resolve_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/internal/solve"
	"github.com/quayside/quayside/subscription"
)

// universe is a random set of catalogs and declarations.
type universe struct {
	cats []catalog.Content
	decl subscription.Set
}

// drawUniverse draws up to five packages of up to five versions in up to three
// catalogs, with edges of every sort, dependencies by package and by API, and
// subscriptions to some of them.
func drawUniverse(t *rapid.T) universe {
	names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "packages")]
	var u universe
	for i := range rapid.IntRange(1, 3).Draw(t, "catalogs") {
		c := catalog.Content{ID: catalog.ID{Namespace: "olm", Name: fmt.Sprintf("cat%d", i)}, Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
			Source: fmt.Sprintf("dir:cat%d", i), Digest: catalog.DigestOf([]byte{byte(i)})}
		for _, n := range names {
			if i == 0 || rapid.Bool().Draw(t, "also here") {
				c.Packages = append(c.Packages, drawPackage(t, n, names))
			}
		}
		u.cats = append(u.cats, c)
	}
	spaces := []string{"ops", "team"}[:rapid.IntRange(1, 2).Draw(t, "namespaces")]
	for _, ns := range spaces {
		u.decl.OperatorGroups = append(u.decl.OperatorGroups, subscription.OperatorGroup{Namespace: ns, Name: "og", TargetNamespaces: []string{ns}})
		for _, n := range names {
			if !rapid.Bool().Draw(t, "asked") {
				continue
			}
			s := subscription.Subscription{Dialect: subscription.V0, Name: n, Namespace: ns, Package: n, Approval: subscription.Automatic,
				Policy: subscription.CatalogProvided, Catalog: &catalog.ID{Namespace: "olm", Name: "cat0"}}
			if ch := rapid.SampledFrom([]string{"", "stable", "beta"}).Draw(t, "channel"); ch != "" {
				s.Channels = []string{ch}
			}
			u.decl.Subscriptions = append(u.decl.Subscriptions, s)
		}
	}
	return u
}

func drawPackage(t *rapid.T, name string, others []string) catalog.PackageData {
	p := catalog.PackageData{Name: name, DefaultChannel: "stable"}
	n := rapid.IntRange(1, 5).Draw(t, "versions")
	bundle := func(v int) string { return fmt.Sprintf("%s.v%d.0.0", name, v) }
	for v := 1; v <= n; v++ {
		b := catalog.BundleData{Name: bundle(v), Image: "quay.io/example/" + name + "@sha256:" + catalog.DigestOf([]byte(bundle(v))).Hex()}
		b.Properties = append(b.Properties, property("olm.package", map[string]string{"packageName": name, "version": fmt.Sprintf("%d.0.0", v)}))
		if rapid.IntRange(0, 2).Draw(t, "gives") > 0 {
			b.Properties = append(b.Properties, property("olm.gvk", api(rapid.SampledFrom([]string{"A", "B", "C", "D", "E"}).Draw(t, "kind"))))
		}
		for range rapid.IntRange(0, 2).Draw(t, "needs") {
			if rapid.Bool().Draw(t, "by api") {
				b.Properties = append(b.Properties, property("olm.gvk.required", api(rapid.SampledFrom([]string{"A", "B", "C", "D", "E"}).Draw(t, "kind"))))
				continue
			}
			b.Properties = append(b.Properties, property("olm.package.required", map[string]string{
				"packageName":  rapid.SampledFrom(others).Draw(t, "needed"),
				"versionRange": fmt.Sprintf("%s%d.0.0", rapid.SampledFrom([]string{"<", ">=", ""}).Draw(t, "op"), rapid.IntRange(1, 4).Draw(t, "version"))}))
		}
		if rapid.IntRange(0, 11).Draw(t, "deprecated") == 0 {
			b.Properties = append(b.Properties, property("olm.deprecated", struct{}{}))
		}
		p.Bundles = append(p.Bundles, b)
	}
	p.Channels = append(p.Channels, drawChannel(t, "stable", 1, n, bundle))
	if rapid.Bool().Draw(t, "beta") {
		p.Channels = append(p.Channels, drawChannel(t, "beta", rapid.IntRange(1, n).Draw(t, "from"), n, bundle))
	}
	return p
}

// drawChannel draws a chain; an entry may skip the one before it or lie in a
// skipRange.
func drawChannel(t *rapid.T, name string, from, to int, bundle func(int) string) catalog.ChannelData {
	ch := catalog.ChannelData{Name: name}
	for v := from; v <= to; v++ {
		e := catalog.EntryData{Name: bundle(v)}
		if v > from {
			e.Replaces = bundle(v - 1)
			if v > from+1 && rapid.IntRange(0, 3).Draw(t, "skips") == 0 {
				e.Replaces, e.Skips = bundle(v-2), []string{bundle(v - 1)}
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "skipRange") == 0 {
			e.SkipRange = fmt.Sprintf(">=0.0.0 <%d.0.0", v)
		}
		ch.Entries = append(ch.Entries, e)
	}
	return ch
}

func (u universe) index(t *rapid.T) *catalog.Index {
	var cats []*catalog.Catalog
	for _, c := range u.cats {
		cat, err := catalog.New(c)
		if err != nil {
			t.Skip("an invalid catalog", err)
		}
		cats = append(cats, cat)
	}
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// shuffled returns u in another order, equal in meaning.
func (u universe) shuffled(t *rapid.T) universe {
	v := universe{cats: rapid.Permutation(u.cats).Draw(t, "catalogs"), decl: u.decl}
	for i := range v.cats {
		c := &v.cats[i]
		c.Packages = rapid.Permutation(c.Packages).Draw(t, "packages")
		for j := range c.Packages {
			p := &c.Packages[j]
			p.Bundles = rapid.Permutation(p.Bundles).Draw(t, "bundles")
			p.Channels = rapid.Permutation(p.Channels).Draw(t, "channels")
			for k := range p.Channels {
				p.Channels[k].Entries = rapid.Permutation(p.Channels[k].Entries).Draw(t, "entries")
			}
		}
	}
	v.decl.Subscriptions = rapid.Permutation(u.decl.Subscriptions).Draw(t, "subscriptions")
	v.decl.OperatorGroups = rapid.Permutation(u.decl.OperatorGroups).Draw(t, "groups")
	return v
}

func drawOptions(t *rapid.T) resolve.Options {
	return resolve.Options{
		Upgrade: rapid.Bool().Draw(t, "upgrade"), Hops: rapid.SampledFrom([]int{0, 2, -1}).Draw(t, "hops"), KeepGoing: true,
		AllowOverlap: rapid.Bool().Draw(t, "overlap"), SharedDependencies: rapid.Bool().Draw(t, "shared"),
	}
}

func mustResolve(t *rapid.T, x *catalog.Index, decl *subscription.Set, prev *lockfile.File, opt resolve.Options) *resolve.Result {
	res, err := resolve.Resolve(x, decl, prev, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestShuffledInputGivesTheSameLock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		a := mustResolve(t, u.index(t), &u.decl, nil, opt)
		v := u.shuffled(t)
		b := mustResolve(t, v.index(t), &v.decl, nil, opt)
		if diff := cmp.Diff(string(lockfile.Format(a.Lock)), string(lockfile.Format(b.Lock))); diff != "" {
			t.Fatalf("lock (-first +shuffled):\n%s", diff)
		}
		if diff := cmp.Diff(a.Warnings, b.Warnings); diff != "" {
			t.Fatalf("warnings (-first +shuffled):\n%s", diff)
		}
		if diff := cmp.Diff(a.Conflicts, b.Conflicts); diff != "" {
			t.Fatalf("conflicts (-first +shuffled):\n%s", diff)
		}
	})
}

func TestOwnResultStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		plain := opt
		plain.Upgrade, plain.Hops = false, 0
		again := mustResolve(t, x, &u.decl, first.Lock, plain)
		if diff := cmp.Diff(string(lockfile.Format(first.Lock)), string(lockfile.Format(again.Lock))); diff != "" {
			t.Fatalf("lock (-first +again):\n%s", diff)
		}
		if len(again.Moves) > 0 {
			t.Fatalf("moves: %v", again.Moves)
		}
		if err := resolve.Check(x, &u.decl, first.Lock, plain); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAllHopsEndWhereNothingChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		opt.Upgrade, opt.Hops = true, -1
		x := u.index(t)
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		again := mustResolve(t, x, &u.decl, first.Lock, opt)
		if len(again.Moves) > 0 {
			t.Fatalf("moves: %v", again.Moves)
		}
	})
}

func TestLocksAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		opt.SharedDependencies = false
		res := mustResolve(t, u.index(t), &u.decl, nil, opt)
		for _, ns := range []string{"ops", "team"} {
			if fault := unsound(res.Partial.Pins, &u.decl, ns); fault != "" {
				t.Fatal(fault)
			}
		}
	})
}

// TestConflictsAreTrueAndMinimal proves each core by taking it apart, and asks
// the subscriptions that it names alone.
func TestConflictsAreTrueAndMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		p, core, err := resolve.FirstCore(x, &u.decl, opt)
		if err != nil {
			t.Fatal(err)
		}
		if core == nil {
			return
		}
		in := map[int]bool{}
		for _, tag := range core {
			in[tag] = true
		}
		if ok, err := solve.Satisfiable(p, in); ok || err != nil {
			t.Fatalf("the core %v can hold (%v)", core, err)
		}
		for _, tag := range core {
			in[tag] = false
			if ok, err := solve.Satisfiable(p, in); !ok || err != nil {
				t.Fatalf("the core %v does not need %d (%v)", core, tag, err)
			}
			in[tag] = true
		}
		opt.KeepGoing = false
		_, err = resolve.Resolve(x, &u.decl, nil, opt)
		var conflicts resolve.Conflicts
		if !errors.As(err, &conflicts) {
			t.Fatalf("a core and no conflict: %v", err)
		}
		failsAlone(t, x, &u.decl, conflicts[0], opt)
	})
}

func failsAlone(t *rapid.T, x *catalog.Index, decl *subscription.Set, c *resolve.Conflict, opt resolve.Options) {
	alone := *decl
	alone.Subscriptions = slices.DeleteFunc(slices.Clone(decl.Subscriptions), func(s subscription.Subscription) bool {
		return !slices.Contains(c.Subscriptions, s.Key())
	})
	if strings.Contains(c.Error(), "which could not be answered") {
		return // it rests on another conflict
	}
	opt.Upgrade = false
	if _, err := resolve.Resolve(x, &alone, nil, opt); err == nil {
		t.Fatalf("the subscriptions of this conflict have a solution:\n%v", c)
	}
}

// TestUnselectedBundlesDoNotMatter takes away the oldest entry of a channel, or
// a whole package, of which nothing was chosen.
func TestUnselectedBundlesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		opt.Hops = 0
		res := mustResolve(t, u.index(t), &u.decl, nil, opt)
		if len(res.Conflicts) > 0 {
			return
		}
		v := u.without(t, res.Lock)
		again := mustResolve(t, v.index(t), &v.decl, nil, opt)
		if diff := cmp.Diff(picks(res.Lock), picks(again.Lock)); diff != "" {
			t.Fatalf("pins (-all +without):\n%s", diff)
		}
	})
}

func picks(f *lockfile.File) []string {
	var out []string
	for _, p := range f.Pins {
		out = append(out, p.Key()+" "+p.Bundle+" "+p.Catalog.Name+" "+p.Subscription)
	}
	return out
}

// without returns u less one package or tail of which nothing is pinned.
func (u universe) without(t *rapid.T, lock *lockfile.File) universe {
	v := universe{decl: u.decl, cats: slices.Clone(u.cats)}
	i := rapid.IntRange(0, len(v.cats)-1).Draw(t, "catalog")
	c := &v.cats[i]
	c.Packages = slices.Clone(c.Packages)
	j := rapid.IntRange(0, max(0, len(c.Packages)-1)).Draw(t, "package")
	if j >= len(c.Packages) {
		return v
	}
	p := c.Packages[j]
	asked := slices.ContainsFunc(u.decl.Subscriptions, func(s subscription.Subscription) bool { return s.Package == p.Name })
	pinned := func(name string) bool {
		return slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool { return pin.Catalog == c.ID && pin.Bundle == name })
	}
	if !asked && !slices.ContainsFunc(p.Bundles, func(b catalog.BundleData) bool { return pinned(b.Name) }) {
		c.Packages = slices.Delete(c.Packages, j, j+1)
		return v
	}
	oldest := p.Channels[0].Entries[0].Name
	if len(p.Channels[0].Entries) < 2 || pinned(oldest) {
		return v
	}
	p.Channels = slices.Clone(p.Channels)
	for k := range p.Channels {
		p.Channels[k].Entries = slices.DeleteFunc(slices.Clone(p.Channels[k].Entries), func(e catalog.EntryData) bool { return e.Name == oldest })
		if len(p.Channels[k].Entries) == 0 {
			return u
		}
	}
	p.Bundles = slices.DeleteFunc(slices.Clone(p.Bundles), func(b catalog.BundleData) bool { return b.Name == oldest })
	c.Packages[j] = p
	return v
}

// TestBruteForceAgrees resolves from nothing by a naive search that knows only
// what the documentation says.
func TestBruteForceAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		u.decl.Subscriptions = slices.DeleteFunc(u.decl.Subscriptions, func(s subscription.Subscription) bool { return s.Namespace != "ops" })
		opt := resolve.Options{AllowOverlap: true}
		res, err := resolve.Resolve(u.index(t), &u.decl, nil, opt)
		want, ok := u.brute()
		if ok != (err == nil) {
			t.Fatalf("brute force finds a solution: %v, Resolve: %v", ok, err)
		}
		if !ok {
			return
		}
		var got []string
		for _, p := range res.Lock.Pins {
			got = append(got, p.Catalog.Name+"/"+p.Bundle)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, brute force %v", got, want)
		}
	})
}

// node is one entry as the naive search sees it.
type node struct {
	cat, pkg, channel string
	prio              int
	isDefault         bool
	b                 catalog.BundleData
}

func (u universe) brute() ([]string, bool) {
	var queue [][]node
	for _, s := range u.decl.Subscriptions {
		var of []node
		for _, n := range u.nodes() {
			if n.cat == s.Catalog.Name && n.pkg == s.Package && (len(s.Channels) == 0 || s.Channels[0] == n.channel) {
				of = append(of, n)
			}
		}
		of = slices.DeleteFunc(of, func(n node) bool { return len(s.Channels) > 0 && n.channel != s.Channels[0] })
		queue = append(queue, u.twins(of, s))
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

// twins adds the same bundles in other channels, also where they are skipped,
// for a subscription that names no channel.
func (u universe) twins(of []node, s subscription.Subscription) []node {
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

// nodes returns every entry that can be chosen: default channels first, then by
// package and channel, from the head down, without skipped ones.
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
		if !fits(n, chosen) {
			continue
		}
		next := slices.Clone(queue[1:])
		for _, p := range n.b.Properties {
			if m := meets(p); m != nil {
				next = append(next, u.providers(n, m))
			}
		}
		if out, ok := u.search(next, append(slices.Clone(chosen), n)); ok {
			return out, true
		}
	}
	return nil, false
}

// fits reports whether n can stand beside what is chosen.
func fits(n node, chosen []node) bool {
	if slices.ContainsFunc(n.b.Properties, func(p catalog.Property) bool { return p.Type == "olm.deprecated" }) {
		return false
	}
	for _, c := range chosen {
		for _, claim := range (thing{n.b.Name, n.b.Properties}).claims() {
			if slices.Contains((thing{c.b.Name, c.b.Properties}).claims(), claim) {
				return false
			}
		}
	}
	return true
}

// providers returns what meets a requirement of by: its own catalog first, then
// by priority, then by name.
func (u universe) providers(by node, m func(thing) bool) []node {
	var out []node
	for _, n := range u.nodes() {
		if m(thing{n.b.Name, n.b.Properties}) {
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

// FuzzResolve runs the properties on inputs that the fuzzer finds.
func FuzzResolve(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		again := mustResolve(t, x, &u.decl, first.Lock, resolve.Options{KeepGoing: true, AllowOverlap: opt.AllowOverlap, SharedDependencies: opt.SharedDependencies})
		if !bytes.Equal(lockfile.Format(first.Lock), lockfile.Format(again.Lock)) {
			t.Fatal("its own result as the previous lock changes something")
		}
	}))
}
