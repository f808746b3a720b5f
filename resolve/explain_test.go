package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// locked returns a lock in which app is declared and requires db, db requires log, old is an
// orphan, and db is also pinned in another namespace.
func locked() *lockfile.File {
	pin := func(ns, pkg, version string, by []string, requires ...lockfile.Requirement) lockfile.Pin {
		return lockfile.Pin{
			Namespace: ns, Package: pkg, Version: version, Bundle: pkg + ".v" + version, Channel: "stable", RequestedBy: by, Requires: requires,
			Catalog: lockfile.Catalog{ID: catalog.ID{Namespace: "olm", Name: "hub"}},
		}
	}
	return &lockfile.File{Pins: []lockfile.Pin{
		pin("apps", "app", "1.0.0", []string{"apps/shop"}, lockfile.Requirement{Pin: "apps/db", Requirement: "olm.package.required db >=2.0.0"}),
		pin("apps", "db", "2.1.0", nil, lockfile.Requirement{Pin: "apps/log", Requirement: "olm.gvk.required log.example.com/v1 Log"}),
		pin("apps", "log", "3.0.0", nil),
		pin("apps", "old", "0.1.0", nil),
		pin("ops", "db", "2.0.0", []string{"ops/db"}),
	}}
}

func TestWhy(t *testing.T) {
	decl := &declare.Set{Subscriptions: []declare.Subscription{
		{Namespace: "apps", Name: "shop", Package: "app", Pos: diag.Pos{File: "shop.yaml", Line: 3, Col: 1}},
	}}
	for _, c := range []struct{ ns, pkg, want string }{
		{"", "log", "apps/log 3.0.0\n" +
			"\tshop.yaml:3:1: subscription apps/shop requests apps/app 1.0.0\n" +
			"\t\trequires olm.package.required db >=2.0.0: apps/db 2.1.0\n" +
			"\t\t\trequires olm.gvk.required log.example.com/v1 Log: apps/log 3.0.0\n"},
		{"ops", "db", "ops/db 2.0.0\n\tsubscription ops/db requests 2.0.0\n"},
		{"", "old", "apps/old 0.1.0\n\tno longer requested\n"},
		{"", "db", `package "db" is in several namespaces: choose one of apps/db, ops/db`},
		{"", "logs", "package logs is not pinned (did you mean log?)"},
		{"apps", "olde", "apps/olde is not pinned (did you mean apps/old or apps/db or apps/log?)"},
		{"", "unheard-of", "package unheard-of is not pinned"},
	} {
		got := ""
		if r, err := explain.Why(locked(), decl, c.ns, c.pkg); err != nil {
			got = err.Error()
		} else {
			got = r.Text()
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s/%s (-want +got):\n%s", c.ns, c.pkg, d)
		}
	}
}

func TestTree(t *testing.T) {
	want := "apps/app 1.0.0 (subscription shop)\n" +
		"\tapps/db 2.1.0 (olm.package.required db >=2.0.0)\n" +
		"\t\tapps/log 3.0.0 (olm.gvk.required log.example.com/v1 Log)\n" +
		"apps/old 0.1.0 (no longer requested)\n" +
		"ops/db 2.0.0 (subscription db)\n"
	nodes := explain.Tree(locked())
	if d := cmp.Diff(want, explain.TreeText(nodes)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
