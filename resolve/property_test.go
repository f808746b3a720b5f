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
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// universe is a random set of catalogs and declarations.
type universe struct {
	cats []catalog.Content
	decl declare.Set
}

// drawUniverse draws up to three catalogs of up to five packages, each with up to five versions. There are
// edges of all kinds, dependencies by package and by API, and subscriptions to some packages.
func drawUniverse(t *rapid.T) universe {
	names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "packages")]
	var u universe
	for i := range rapid.IntRange(1, 3).Draw(t, "catalogs") {
		c := catalog.Content{
			ID: catalog.ID{Namespace: "olm", Name: fmt.Sprintf("cat%d", i)}, Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
			Source: fmt.Sprintf("dir:cat%d", i), Digest: catalog.DigestOf([]byte{byte(i)}),
		}
		for _, n := range names {
			if i == 0 || rapid.Bool().Draw(t, "also here") {
				c.Packages = append(c.Packages, drawPackage(t, n, names))
			}
		}
		u.cats = append(u.cats, c)
	}
	u.decl = drawDeclarations(t, names)
	return u
}

// drawDeclarations draws subscriptions to some of the packages with the given names.
func drawDeclarations(t *rapid.T, names []string) declare.Set {
	var decl declare.Set
	spaces := []string{"ops", "team"}[:rapid.IntRange(1, 2).Draw(t, "namespaces")]
	for _, ns := range spaces {
		decl.OperatorGroups = append(decl.OperatorGroups, declare.OperatorGroup{Namespace: ns, Name: "og", TargetNamespaces: []string{ns}})
		for _, n := range names {
			if !rapid.Bool().Draw(t, "asked") {
				continue
			}
			s := declare.Subscription{
				Dialect: declare.V0, Name: n, Namespace: ns, Package: n, Approval: declare.Automatic,
				Policy: declare.CatalogProvided, Catalog: &catalog.ID{Namespace: "olm", Name: "cat0"},
			}
			if ch := rapid.SampledFrom([]string{"", "stable", "beta"}).Draw(t, "channel"); ch != "" {
				s.Channels = []string{ch}
			}
			decl.Subscriptions = append(decl.Subscriptions, s)
		}
	}
	return decl
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
				"versionRange": fmt.Sprintf("%s%d.0.0", rapid.SampledFrom([]string{"<", ">=", ""}).Draw(t, "op"), rapid.IntRange(1, 4).Draw(t, "version")),
			}))
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

// drawChannel draws a channel as a chain of upgrade edges. An entry may skip its predecessor or have
// a skipRange.
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

// shuffled returns u with all lists in another order. The order of these lists must not affect the result.
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

func mustResolve(t *rapid.T, x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt resolve.Options) *resolve.Result {
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

// TestResolveIsIdempotent resolves again from a resulting lock: nothing may change.
func TestResolveIsIdempotent(t *testing.T) {
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
		if len(again.PinChanges) > 0 {
			t.Fatalf("changes: %v", again.PinChanges)
		}
		if err := check(x, &u.decl, first.Lock, plain); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHeldBackStays requests an upgrade of all operators. An operator that Outdated reports as held back must
// not change. An operator that has an upgrade and is not held back must be upgraded.
func TestHeldBackStays(t *testing.T) {
	stayed, moved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		for i := range u.decl.Subscriptions {
			s := &u.decl.Subscriptions[i]
			for _, c := range x.CatalogsWith(s.Package) {
				p, _ := c.Package(s.Package)
				if b := rapid.SampledFrom(p.Bundles()).Draw(t, "starts at"); !b.Deprecated() {
					s.StartingCSV = b.Name()
				}
			}
		}
		opt.Upgrade, opt.Hops = false, 1
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		opt.Upgrade = true
		next := mustResolve(t, x, &u.decl, first.Lock, opt)
		ages := resolve.Outdated(x, &u.decl, first.Lock, opt, "")
		for i, p := range first.Lock.Pins {
			held, hops := ages[i].HeldBack, resolve.UpgradePath(x, &u.decl, first.Lock, p, opt)
			switch q, _ := next.Lock.Pin(p.Namespace, p.Package); {
			case held != "" && q.Bundle != p.Bundle:
				t.Fatalf("%s is held back (%s), but was upgraded from %s to %s", p.Key(), held, p.Bundle, q.Bundle)
			case held == "" && len(hops) > 0 && q.Bundle == p.Bundle:
				t.Fatalf("%s remains at %s although %s are available, and is not reported as held back", p.Key(), p.Bundle, hops)
			case held != "":
				stayed++
			case q.Bundle != p.Bundle:
				moved++
			}
		}
	})
	if stayed == 0 || moved == 0 {
		t.Errorf("%d held back, %d upgraded: the test is ineffective", stayed, moved)
	}
}

// TestFollowedLock promotes versions from another lock. Operators may change only to the bundles of that lock,
// and may be downgraded only if the options permit it. A warning must name each operator whose bundle still
// differs from that lock. After all hops, resolving again must change nothing.
func TestFollowedLock(t *testing.T) {
	moved, stayed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		for i := range u.decl.Subscriptions {
			u.decl.Subscriptions[i].Channels = nil
		}
		start := func() *lockfile.File {
			decl := u.decl
			decl.Subscriptions = slices.Clone(u.decl.Subscriptions)
			for i := range decl.Subscriptions {
				s := &decl.Subscriptions[i]
				cat, _ := x.Catalog(*s.Catalog)
				if p, ok := cat.Package(s.Package); ok {
					s.StartingCSV = rapid.SampledFrom(p.Bundles()).Draw(t, "starts at").Name()
				}
			}
			return mustResolve(t, x, &decl, nil, opt).Partial
		}
		opt.Upgrade, opt.Hops = false, 1
		prev, from := start(), start()
		opt.From, opt.AllowDowngrade = from, rapid.Bool().Draw(t, "down")
		res := mustResolve(t, x, &u.decl, prev, opt)
		for _, was := range prev.Pins {
			is, pinned := res.Partial.Pin(was.Namespace, was.Package)
			theirs, both := from.Pin(was.Namespace, was.Package)
			switch {
			case !pinned:
			case is.Bundle != was.Bundle && both && is.Bundle != theirs.Bundle:
				t.Fatalf("%s changed from %s to %s, but the other lock pins %s", was.Key(), was.Bundle, is.Bundle, theirs.Bundle)
			case is.Bundle != was.Bundle && !opt.AllowDowngrade && is.Version < was.Version:
				t.Fatalf("%s was downgraded from %s to %s", was.Key(), was.Bundle, is.Bundle)
			case both && is.Bundle != theirs.Bundle && len(res.Conflicts) == 0:
				stayed++
				if !isReported(res, is) {
					t.Fatalf("%s remains at %s, the other lock pins %s, and no warning reports it:\n%v", was.Key(), is.Bundle, theirs.Bundle, res.Warnings)
				}
			case is.Bundle != was.Bundle:
				moved++
			}
		}
		if len(res.Conflicts) > 0 {
			return
		}
		opt.Hops = -1
		end := mustResolve(t, x, &u.decl, res.Lock, opt)
		if again := mustResolve(t, x, &u.decl, end.Partial, opt); len(end.Conflicts) == 0 && len(again.PinChanges) > 0 {
			t.Fatalf("changes again: %v", again.PinChanges)
		}
	})
	if moved == 0 || stayed == 0 && !testing.Short() { // -short draws only a few cases
		t.Errorf("%d changed, %d unchanged: the test is ineffective", moved, stayed)
	}
}

// isReported reports whether there is a warning that p differs from the followed lock.
func isReported(res *resolve.Result, p lockfile.Pin) bool {
	for _, w := range res.Warnings {
		if w.Code == "not-followed" && strings.Contains(w.Msg, " is held back at "+p.Bundle) && strings.Contains(w.Msg, p.Namespace+"/") {
			return true
		}
	}
	return false
}

// TestAllHopsReachTheEnd checks that no upgrades remain after all hops.
func TestAllHopsReachTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		opt.Upgrade, opt.Hops = true, -1
		x := u.index(t)
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		again := mustResolve(t, x, &u.decl, first.Lock, opt)
		if len(again.PinChanges) > 0 {
			t.Fatalf("changes: %v", again.PinChanges)
		}
	})
}

// TestLocksAreSound checks the lock of every round of two runs. The first run has no previous lock. The second
// run starts from the resulting lock, with other declarations.
func TestLocksAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		opt.SharedDependencies = false
		opt.KeepGoing = rapid.Bool().Draw(t, "keep going")
		x := u.index(t)
		lock := checkRounds(t, x, &u.decl, nil, opt)
		var names []string
		for _, p := range u.cats[0].Packages {
			names = append(names, p.Name)
		}
		decl, opt := drawDeclarations(t, names), drawOptions(t)
		opt.SharedDependencies = false
		opt.KeepGoing = rapid.Bool().Draw(t, "keep going")
		if s := decl.Subscriptions; len(s) > 0 && rapid.Bool().Draw(t, "one by name") {
			one := rapid.SampledFrom(s).Draw(t, "named")
			opt.Named = []resolve.Target{{Namespace: one.Namespace, Package: one.Package}}
		}
		checkRounds(t, x, &decl, lock, opt)
	})
}

// checkRounds resolves, checks the lock of every round, even if there are conflicts, and returns the lock of
// the last round.
func checkRounds(t *rapid.T, x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt resolve.Options) *lockfile.File {
	all := opt.Hops
	for hop := 1; ; hop++ {
		opt.Hops = hop
		res, err := resolve.Resolve(x, decl, prev, opt)
		var conflicts explain.Conflicts
		if err != nil && !errors.As(err, &conflicts) {
			t.Fatal(err)
		}
		for _, ns := range []string{"ops", "team"} {
			if fault := findUnsound(requestedPins(res.Partial.Pins), decl, ns); fault != "" {
				t.Fatalf("round %d: %s", hop, fault)
			}
		}
		if len(res.Rounds) < hop || all >= 0 && hop >= all {
			return res.Partial
		}
	}
}

// requestedPins returns the pins that a declaration requests, directly or indirectly. It omits orphans: they
// affect no other pin, and may have unmet requirements.
func requestedPins(pins []lockfile.Pin) []lockfile.Pin {
	in := map[string]bool{}
	for range pins {
		for _, p := range pins {
			if in[p.Key()] = in[p.Key()] || !p.Generated(); in[p.Key()] {
				for _, r := range p.Requires {
					in[r.Pin] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(pins), func(p lockfile.Pin) bool { return !in[p.Key()] })
}

// TestConflictsAreTrueAndMinimal checks that a core has no solution, but has a solution if any one of its tags
// is removed. It also checks that the conflict occurs with only its own subscriptions.
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
		if ok, err := isSatisfiable(p, in); ok || err != nil {
			t.Fatalf("the core %v has a solution (%v)", core, err)
		}
		for _, tag := range core {
			in[tag] = false
			if ok, err := isSatisfiable(p, in); !ok || err != nil {
				t.Fatalf("the core %v is not minimal: %d is unnecessary (%v)", core, tag, err)
			}
			in[tag] = true
		}
		opt.KeepGoing = false
		_, err = resolve.Resolve(x, &u.decl, nil, opt)
		var conflicts explain.Conflicts
		if !errors.As(err, &conflicts) {
			t.Fatalf("there is a core, but no conflict: %v", err)
		}
		checkFailsAlone(t, x, &u.decl, conflicts[0], opt)
	})
}

// isSatisfiable reports whether the constraints with the given tags have a solution.
func isSatisfiable(p solve.Problem, tags map[int]bool) (bool, error) {
	choices := func(of []solve.Choice) []solve.Choice {
		return slices.DeleteFunc(slices.Clone(of), func(c solve.Choice) bool { return !tags[c.Tag] })
	}
	p.Roots, p.Needs = choices(p.Roots), slices.Clone(p.Needs)
	for i, of := range p.Needs {
		p.Needs[i] = choices(of)
	}
	p.Groups = slices.DeleteFunc(slices.Clone(p.Groups), func(g solve.Group) bool { return !tags[g.Tag] })
	p.Bans = slices.DeleteFunc(slices.Clone(p.Bans), func(b solve.Ban) bool { return !tags[b.Tag] })
	res, err := solve.Solve(p)
	return err == nil && res.Core == nil, err
}

func checkFailsAlone(t *rapid.T, x *catalog.Index, decl *declare.Set, c *explain.Conflict, opt resolve.Options) {
	alone := *decl
	alone.Subscriptions = slices.DeleteFunc(slices.Clone(decl.Subscriptions), func(s declare.Subscription) bool {
		return !slices.Contains(c.Subscriptions, s.Key())
	})
	if strings.Contains(c.Error(), ", which has no candidate") {
		return // it depends on another conflict
	}
	opt.Upgrade = false
	if _, err := resolve.Resolve(x, &alone, nil, opt); err == nil {
		t.Fatalf("the subscriptions of this conflict have a solution:\n%v", c)
	}
}

// TestUnselectedBundlesDoNotMatter removes an entry or a package without a pin: the pins must stay
// the same.
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
		if diff := cmp.Diff(pinSummaries(res.Lock), pinSummaries(again.Lock)); diff != "" {
			t.Fatalf("pins (-all +without):\n%s", diff)
		}
	})
}

func pinSummaries(f *lockfile.File) []string {
	var out []string
	for _, p := range f.Pins {
		out = append(out, p.Key()+" "+p.Bundle+" "+p.Catalog.ID.Name+" "+p.Subscription())
	}
	return out
}

// without returns u without one package, or without the oldest bundle of one channel. It never removes a bundle
// with a pin or a package with a subscription.
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
	asked := slices.ContainsFunc(u.decl.Subscriptions, func(s declare.Subscription) bool { return s.Package == p.Name })
	pinned := func(name string) bool {
		return slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool { return pin.Catalog.ID == c.ID && pin.Bundle == name })
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
			t.Fatal("resolving again from the resulting lock changes it")
		}
	}))
}
