package resolve_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// fullSizeIndex returns the index of the full-size catalog.
func fullSizeIndex(b *testing.B) *catalog.Index {
	b.Helper()
	content, ok := corpus(b, map[string]*catalog.Content{}, "full-slim")
	if !ok {
		b.Skip("QUAYSIDE_CORPUS is unset: no full-size catalog")
	}
	c := *content
	c.ID = catalog.ID{Namespace: "olm", Name: "full"}
	cat, err := catalog.New(c)
	if err != nil {
		b.Fatal(err)
	}
	x, err := catalog.NewIndex(cat)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// declareSubscriptions declares subscriptions to n packages that have a common solution. It prefers packages
// with dependencies.
func declareSubscriptions(b *testing.B, x *catalog.Index, n int) *declare.Set {
	b.Helper()
	decl := &declare.Set{OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}}}
	cat := x.Catalogs()[0]
	for _, depends := range []bool{true, false} {
		for _, p := range cat.Packages() {
			ch, ok := p.Channel(p.DefaultChannel())
			if !ok || (len(ch.Head().Bundle().Requires()) > 0) != depends || len(decl.Subscriptions) == n {
				continue
			}
			s := declare.Subscription{
				Dialect: declare.V0, Name: p.Name(), Namespace: "ops", Package: p.Name(),
				Catalog: &catalog.ID{Namespace: "olm", Name: "full"}, Channels: []string{ch.Name()}, Approval: declare.Automatic,
			}
			try := &declare.Set{OperatorGroups: decl.OperatorGroups, Subscriptions: append(decl.Subscriptions[:len(decl.Subscriptions):len(decl.Subscriptions)], s)}
			if _, err := resolve.Resolve(x, try, nil, resolve.Options{Requirements: "warn"}); err == nil {
				decl = try
			}
		}
	}
	if len(decl.Subscriptions) < n {
		b.Fatalf("only %d packages resolve together", len(decl.Subscriptions))
	}
	return decl
}

func BenchmarkResolve(b *testing.B) {
	x := fullSizeIndex(b)
	for _, n := range []int{1, 6, 60} {
		decl := declareSubscriptions(b, x, n)
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := resolve.Resolve(x, decl, nil, resolve.Options{Requirements: "warn"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSpread resolves sixty subscriptions, each in its own namespace. Namespaces may share dependencies.
// Overlaps are conflicts.
func BenchmarkSpread(b *testing.B) {
	x := fullSizeIndex(b)
	decl := declareSubscriptions(b, x, 60)
	spread := &declare.Set{Subscriptions: slices.Clone(decl.Subscriptions)}
	for i := range spread.Subscriptions {
		s := &spread.Subscriptions[i]
		s.Namespace = "ns-" + s.Name
		spread.OperatorGroups = append(spread.OperatorGroups, declare.OperatorGroup{Namespace: s.Namespace, Name: "og"})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := resolve.Resolve(x, spread, nil, resolve.Options{Requirements: "warn", SharedDependencies: true, KeepGoing: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpgrade resolves all hops of a package with an upgrade path of eleven versions.
func BenchmarkUpgrade(b *testing.B) {
	x := fullSizeIndex(b)
	decl, lock := findElevenHops(b, x)
	b.ReportAllocs()
	for b.Loop() {
		res, err := resolve.Resolve(x, decl, lock, resolve.Options{Requirements: "warn", Upgrade: true, Hops: -1})
		if err != nil || len(res.Rounds) != 11 {
			b.Fatalf("%d rounds, error %v", len(res.Rounds), err)
		}
	}
}

func findElevenHops(b *testing.B, x *catalog.Index) (*declare.Set, *lockfile.File) {
	b.Helper()
	for _, p := range x.Catalogs()[0].Packages() {
		for _, ch := range p.Channels() {
			for _, e := range ch.Walk() {
				decl := &declare.Set{
					OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}},
					Subscriptions: []declare.Subscription{{
						Dialect: declare.V0, Name: p.Name(), Namespace: "ops", Package: p.Name(),
						Catalog: &catalog.ID{Namespace: "olm", Name: "full"}, Channels: []string{ch.Name()}, StartingCSV: e.Name(), Approval: declare.Automatic,
					}},
				}
				res, err := resolve.Resolve(x, decl, nil, resolve.Options{Requirements: "warn"})
				if err != nil || len(res.Lock.Pins) != 1 || len(resolve.UpgradePath(x, decl, res.Lock, res.Lock.Pins[0], resolve.Options{Requirements: "warn"})) != 11 {
					continue
				}
				return decl, res.Lock
			}
		}
	}
	b.Fatal("no upgrade path of eleven hops")
	return nil, nil
}

// BenchmarkGrowth resolves one subscription with a chain of ten dependencies in catalogs of different sizes.
// Each package has fifty versions. The cost should depend only on the required packages.
func BenchmarkGrowth(b *testing.B) {
	for _, packages := range []int{10, 100, 1000} {
		x := newSyntheticIndex(b, packages, 50)
		decl := &declare.Set{
			OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}},
			Subscriptions: []declare.Subscription{{
				Dialect: declare.V0, Name: "p0", Namespace: "ops", Package: "p0",
				Catalog: &catalog.ID{Namespace: "olm", Name: "full"}, Channels: []string{"stable"}, Approval: declare.Automatic,
			}},
		}
		b.Run(fmt.Sprintf("packages=%d", packages), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := resolve.Resolve(x, decl, nil, resolve.Options{})
				if err != nil || len(res.Lock.Pins) != 10 {
					b.Fatal(err)
				}
			}
		})
	}
}

// newSyntheticIndex returns packages in chains of ten: each version of a package requires at least the same
// version of the next package in the chain.
func newSyntheticIndex(b *testing.B, packages, versions int) *catalog.Index {
	b.Helper()
	c := catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "full"}}
	for i := range packages {
		name := fmt.Sprintf("p%d", i)
		p := catalog.PackageData{Name: name, DefaultChannel: "stable"}
		ch := catalog.ChannelData{Name: "stable"}
		for v := 1; v <= versions; v++ {
			e := catalog.EntryData{Name: fmt.Sprintf("%s.v%d.0.0", name, v)}
			if v > 1 {
				e.Replaces = fmt.Sprintf("%s.v%d.0.0", name, v-1)
			}
			ch.Entries = append(ch.Entries, e)
			d := catalog.BundleData{Name: e.Name, Image: "quay.io/example/" + name + "@sha256:" + catalog.DigestOf([]byte(e.Name)).Hex()}
			d.Properties = append(d.Properties, property("olm.package", map[string]string{"packageName": name, "version": fmt.Sprintf("%d.0.0", v)}))
			d.Properties = append(d.Properties, property("olm.gvk", api(name)))
			if i%10 != 9 && i+1 < packages {
				d.Properties = append(d.Properties, property("olm.package.required", map[string]string{
					"packageName": fmt.Sprintf("p%d", i+1), "versionRange": fmt.Sprintf(">=%d.0.0", v),
				}))
			}
			p.Bundles = append(p.Bundles, d)
		}
		p.Channels = append(p.Channels, ch)
		c.Packages = append(c.Packages, p)
	}
	cat, err := catalog.New(c)
	if err != nil {
		b.Fatal(err)
	}
	x, err := catalog.NewIndex(cat)
	if err != nil {
		b.Fatal(err)
	}
	return x
}
