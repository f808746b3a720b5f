package explain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// locked returns a lock in which the declared operator app requires db, and db requires log. The lock also
// contains the orphan `old`, and another pin of db in another namespace.
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

// TestTreeOfCycle checks that each pin is listed and is expanded only once, even if several pins require it or
// pins only require each other.
func TestTreeOfCycle(t *testing.T) {
	lock := locked()
	required := func(pin string) []lockfile.Requirement {
		return []lockfile.Requirement{{Pin: pin, Requirement: "r"}}
	}
	lock.Pins[0].Requires = append(lock.Pins[0].Requires, lockfile.Requirement{Pin: "apps/log", Requirement: "first"}, lockfile.Requirement{Pin: "apps/log", Requirement: "second"})
	lock.Pins[2].Requires = required("apps/db")
	lock.Pins = append(lock.Pins,
		lockfile.Pin{Namespace: "x", Package: "one", Version: "1.0.0", Requires: required("x/two")},
		lockfile.Pin{Namespace: "x", Package: "two", Version: "2.0.0", Requires: required("x/one")})
	want := "apps/app 1.0.0 (subscription shop)\n" +
		"\tapps/db 2.1.0 (olm.package.required db >=2.0.0)\n" +
		"\t\tapps/log 3.0.0 (olm.gvk.required log.example.com/v1 Log)\n" +
		"\t\t\tapps/db 2.1.0 (r) …\n" +
		"\tapps/log 3.0.0 (first, second) …\n" +
		"apps/old 0.1.0 (no longer requested)\n" +
		"ops/db 2.0.0 (subscription db)\n" +
		"x/one 1.0.0 (no longer requested)\n" +
		"\tx/two 2.0.0 (r)\n" +
		"\t\tx/one 1.0.0 (r) …\n"
	if d := cmp.Diff(want, explain.TreeText(explain.Tree(lock))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWhyIsShortestFirst checks the order of several chains, and that Why ends if there is a cycle.
func TestWhyIsShortestFirst(t *testing.T) {
	lock := locked()
	lock.Pins[0].Requires = append(lock.Pins[0].Requires, lockfile.Requirement{Pin: "apps/log", Requirement: "r"})
	lock.Pins[2].Requires = []lockfile.Requirement{{Pin: "apps/db", Requirement: "back"}}
	r, err := explain.Why(lock, &declare.Set{}, "", "log")
	if err != nil {
		t.Fatal(err)
	}
	want := "apps/log 3.0.0\n" +
		"\tsubscription apps/shop requests apps/app 1.0.0\n" +
		"\t\trequires r: apps/log 3.0.0\n" +
		"\tsubscription apps/shop requests apps/app 1.0.0\n" +
		"\t\trequires olm.package.required db >=2.0.0: apps/db 2.1.0\n" +
		"\t\t\trequires olm.gvk.required log.example.com/v1 Log: apps/log 3.0.0\n"
	if d := cmp.Diff(want, r.Text()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestConflictText checks the title, the depth of the chain, and the advice. It also checks that a text from a
// catalog cannot start a new line.
func TestConflictText(t *testing.T) {
	for _, c := range []struct {
		conflict explain.Conflict
		want     string
	}{
		{
			explain.Conflict{Namespace: "ns", Chain: []explain.Link{{Text: "a"}}, Tried: 1},
			"no solution in namespace ns\n\ta\n\tnone of the alternatives tried resolves it (1 change)",
		},
		{
			explain.Conflict{Subscriptions: []string{"ns/a"}, At: "a.yaml:1:2", Chain: []explain.Link{{At: "a.yaml:1:2", Text: "a"}, {Depth: 1, Text: "b\nc"}}, Changes: []explain.Remedy{{Text: "remove a"}}},
			"a.yaml:1:2: no solution for subscription ns/a\n\ta.yaml:1:2: a\n\t\tb c\n\tthis resolves it:\n\t\tremove a",
		},
		{
			explain.Conflict{Subscriptions: []string{"ns/a", "ns/b"}, Changes: []explain.Remedy{{Text: "remove a"}, {At: "b.yaml:3:1", Text: "remove b"}}},
			"no solution for subscriptions ns/a, ns/b together\n\tany of these resolves it:\n\t\tremove a\n\t\tb.yaml:3:1: remove b",
		},
	} {
		if d := cmp.Diff(c.want, c.conflict.Error()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestMapPositions checks that every position is mapped.
func TestMapPositions(t *testing.T) {
	c := explain.Conflict{At: "1", Chain: []explain.Link{{At: "2"}, {At: "3"}}, Changes: []explain.Remedy{{At: "4"}}}
	c.MapPositions(func(at string) string { return "envs/" + at })
	want := explain.Conflict{At: "envs/1", Chain: []explain.Link{{At: "envs/2"}, {At: "envs/3"}}, Changes: []explain.Remedy{{At: "envs/4"}}}
	if d := cmp.Diff(want, c); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestObstaclesText(t *testing.T) {
	for _, c := range []struct {
		obstacles explain.Obstacles
		want      string
	}{
		{explain.Obstacles{Pinned: true}, "ns/a 1.0.0\n\tis pinned\n"},
		{explain.Obstacles{Changes: []explain.Remedy{{Text: "--upgrade=a"}}}, "ns/a 1.0.0\n\tnothing prevents its installation\n\tthis allows it:\n\t\t--upgrade=a\n"},
		{explain.Obstacles{Reasons: []string{"one", "two"}, Tried: 2}, "ns/a 1.0.0\n\tone\n\ttwo\n\tnone of the alternatives tried allows it (2 changes)\n"},
	} {
		c.obstacles.Namespace, c.obstacles.Package, c.obstacles.Version = "ns", "a", "1.0.0"
		if d := cmp.Diff(c.want, c.obstacles.Text()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}
