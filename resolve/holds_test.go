package resolve_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// dependentCatalog returns the operators "app", "db" and "other", and a function for their declarations. Each
// version of app requires at least the same version of db.
func dependentCatalog(t *testing.T) (*catalog.Index, func(name, start string) declare.Subscription) {
	t.Helper()
	id := catalog.ID{Namespace: "olm", Name: "c"}
	pkg := func(name string, requires func(version string) string) catalog.PackageData {
		p := catalog.PackageData{Name: name, DefaultChannel: "stable", Channels: []catalog.ChannelData{{Name: "stable"}}}
		for _, version := range []string{"1.0.0", "2.0.0"} {
			property := func(typ string, v any) catalog.Property {
				value, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				return catalog.Property{Type: typ, Value: value}
			}
			properties := []catalog.Property{property("olm.package", map[string]string{"packageName": name, "version": version})}
			if requires != nil {
				properties = append(properties, property("olm.package.required", map[string]string{"packageName": requires(version), "versionRange": ">=" + version}))
			}
			entry := catalog.EntryData{Name: name + ".v" + version}
			if version == "2.0.0" {
				entry.Replaces = name + ".v1.0.0"
			}
			p.Bundles = append(p.Bundles, catalog.BundleData{Name: entry.Name, Image: "q/" + entry.Name, Properties: properties})
			p.Channels[0].Entries = append(p.Channels[0].Entries, entry)
		}
		return p
	}
	cat, err := catalog.New(catalog.Content{ID: id, Source: "dir:c", Digest: catalog.DigestOf(nil), Packages: []catalog.PackageData{
		pkg("app", func(string) string { return "db" }), pkg("db", nil), pkg("other", nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := catalog.NewIndex(cat)
	if err != nil {
		t.Fatal(err)
	}
	return x, func(name, start string) declare.Subscription {
		return declare.Subscription{
			Dialect: declare.V0, Name: name, Namespace: "ops", Package: name, Channels: []string{"stable"}, Approval: declare.Automatic,
			Policy: declare.CatalogProvided, Catalog: &id, StartingCSV: start,
		}
	}
}

// TestWithHolds resolves again and again. Each time, it holds the operators whose pinned bundles are refused.
func TestWithHolds(t *testing.T) {
	x, declared := dependentCatalog(t)
	decl := &declare.Set{
		OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}},
		Subscriptions:  []declare.Subscription{declared("app", "app.v1.0.0"), declared("db", "db.v1.0.0")},
	}
	first, err := resolve.Resolve(x, decl, nil, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	decl.Subscriptions = append(decl.Subscriptions, declared("other", ""))
	bundles := func(f *lockfile.File) (out []string) {
		for _, p := range f.Pins {
			out = append(out, p.Bundle)
		}
		return out
	}
	// resolveWithout resolves until no refused bundle is pinned.
	resolveWithout := func(opt resolve.Options, refused ...string) (*resolve.Result, error) {
		for {
			res, err := resolve.Resolve(x, decl, first.Lock, opt)
			if err != nil {
				return nil, err
			}
			var holds []resolve.Hold
			for _, p := range res.Lock.Pins {
				if slices.Contains(refused, p.Bundle) {
					holds = append(holds, resolve.Hold{Operator: p.Key(), Reason: "refused"})
				}
			}
			if len(holds) == 0 {
				return res, nil
			}
			if opt, err = opt.WithHolds(holds); err != nil {
				return nil, err
			}
		}
	}
	app := []resolve.Target{{Namespace: "ops", Package: "app"}}
	for _, c := range []struct {
		name    string
		opt     resolve.Options
		refused []string
		want    []string
		held    []string
	}{
		{"nothing refused", resolve.Options{Upgrade: true}, nil, []string{"app.v2.0.0", "db.v2.0.0", "other.v2.0.0"}, nil},
		{"an operator without dependents", resolve.Options{Upgrade: true}, []string{"app.v2.0.0"}, []string{"app.v1.0.0", "db.v2.0.0", "other.v2.0.0"}, []string{"ops/app"}},
		{"a named operator", resolve.Options{Named: app}, []string{"app.v2.0.0"}, []string{"app.v1.0.0", "db.v1.0.0", "other.v2.0.0"}, []string{"ops/app"}},
		{"a dependency", resolve.Options{Named: app}, []string{"db.v2.0.0"}, []string{"app.v1.0.0", "db.v1.0.0", "other.v2.0.0"}, []string{"ops/db"}},
		{"an operator that is not pinned", resolve.Options{}, []string{"other.v2.0.0"}, []string{"app.v1.0.0", "db.v1.0.0"}, []string{"ops/other"}},
		{"one after the other", resolve.Options{Upgrade: true}, []string{"app.v2.0.0", "other.v2.0.0"}, []string{"app.v1.0.0", "db.v2.0.0"}, []string{"ops/app", "ops/other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := resolveWithout(c.opt, c.refused...)
			if err != nil {
				t.Fatal(err)
			}
			var held []string
			for _, h := range res.Held {
				held = append(held, h.Operator)
				warned := 0
				for _, w := range res.Warnings {
					if w.Code == "held" && w.Subject == h.Operator && strings.HasSuffix(w.Msg, h.Reason) {
						warned++
					}
				}
				if warned != 1 {
					t.Errorf("%d warnings about %s: %v", warned, h.Operator, res.Warnings)
				}
			}
			if d := cmp.Diff(c.want, bundles(res.Lock)) + cmp.Diff(c.held, held); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}

	// The declaration no longer allows app 1.0.0, and 2.0.0 requires an upgrade of the dependency.
	decl.Subscriptions = []declare.Subscription{declared("app", "")}
	decl.Subscriptions[0].Range = ">=2.0.0"
	_, err = resolveWithout(resolve.Options{}, "db.v2.0.0")
	if err == nil || err.Error() != "ops/db cannot be held back, because another operator requires its upgrade: refused" {
		t.Errorf("want an error about ops/db, got %v", err)
	}
}

// TestBondOfDependency checks the bond between an operator and its undeclared dependency. The upgrade of the
// operator requires an upgrade of the dependency.
func TestBondOfDependency(t *testing.T) {
	x, declared := dependentCatalog(t)
	decl := &declare.Set{OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}}}
	decl.Subscriptions = []declare.Subscription{declared("app", "app.v1.0.0"), declared("db", "db.v1.0.0")}
	lock, err := resolve.Resolve(x, decl, nil, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	decl.Subscriptions = decl.Subscriptions[:1]
	if lock, err = resolve.Resolve(x, decl, lock.Lock, resolve.Options{}); err != nil {
		t.Fatal(err)
	}
	parts, _, err := resolve.Split(x, decl, lock.Lock, resolve.Options{Upgrade: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []resolve.Bond
	for _, p := range parts {
		got = append(got, p.Bonds...)
	}
	want := []resolve.Bond{{Operator: "ops/app", With: "ops/db", Why: "subscription ops/app requests package app, channel stable, from catalog olm/c: only app.v2.0.0 matches; " +
		"app.v2.0.0 requires package db >=2.0.0: only db.v2.0.0 meets it; namespace ops can have only one bundle of package db, not db.v1.0.0 and db.v2.0.0"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
