package resolve_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// oneSubscription returns a catalog in namespace olm with one package, and a subscription to it.
func oneSubscription(t *testing.T) (*catalog.Index, *declare.Set) {
	t.Helper()
	s := newScenario(t)
	s.channel("stable", []string{"a1"})
	s.sub([]string{"a", "stable"})
	s.decl.OperatorGroups = nil
	return s.index(), &s.decl
}

func TestOperatorGroups(t *testing.T) {
	at := func(line int) diag.Pos { return diag.Pos{File: "group.yaml", Line: line} }
	tests := map[string]struct {
		groups     []declare.OperatorGroup
		namespaces []declare.Namespace
		watch      []string
		mode       catalog.InstallMode
		warn, fail string
	}{
		"ok/all namespaces": {
			groups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}},
			mode:   catalog.AllNamespaces,
		},
		"ok/selector": {
			groups: []declare.OperatorGroup{{
				Namespace: "ops", Name: "og",
				Selector: &declare.LabelSelector{
					MatchLabels:      map[string]string{"team": "x"},
					MatchExpressions: []declare.LabelExpression{{Key: "old", Operator: "DoesNotExist"}},
				},
			}},
			namespaces: []declare.Namespace{
				{Name: "two", Labels: map[string]string{"team": "x"}},
				{Name: "one", Labels: map[string]string{"team": "x"}},
				{Name: "gone", Labels: map[string]string{"team": "x", "old": ""}},
				{Name: "other", Labels: map[string]string{"team": "y"}},
			},
			watch: []string{"one", "two"},
			mode:  catalog.MultiNamespace,
		},
		"ok/service account is ignored": {
			groups: []declare.OperatorGroup{{Namespace: "ops", Name: "og", ServiceAccountName: "sa"}},
			mode:   catalog.AllNamespaces,
			warn:   "service-account",
		},
		"ok/none": {mode: catalog.AllNamespaces, warn: "no-operatorgroup"},
		"error/selector matches nothing": {
			groups: []declare.OperatorGroup{{Namespace: "ops", Name: "og", Selector: &declare.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, Pos: at(3)}},
			fail:   "group.yaml:3: no solution for subscription ops/a\n\tgroup.yaml:3: subscription ops/a: OperatorGroup ops/og: its selector matches no declared Namespace; list the namespaces in spec.targetNamespaces",
		},
		"error/two": {
			groups: []declare.OperatorGroup{{Namespace: "ops", Name: "one", Pos: at(1)}, {Namespace: "ops", Name: "two", Pos: at(9)}},
			fail:   "namespace ops has 2 OperatorGroups: one (group.yaml:1), two (group.yaml:9); keep one",
		},
		"error/global catalogs are excluded": {
			groups: []declare.OperatorGroup{{Namespace: "ops", Name: "og", ExcludeGlobal: true}},
			fail:   "catalog olm/cat is not visible in namespace ops",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x, decl := oneSubscription(t)
			decl.OperatorGroups, decl.Namespaces = tt.groups, tt.namespaces
			res, err := resolve.Resolve(x, decl, nil, resolve.Options{GlobalNamespaces: []string{"olm"}})
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("got %v, want %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p := res.Lock.Pins[0]
			if diff := cmp.Diff(tt.watch, p.WatchNamespaces); diff != "" || p.InstallMode != tt.mode {
				t.Errorf("install mode %s, watch (-want +got):\n%s", p.InstallMode, diff)
			}
			if tt.warn != "" && !slices.ContainsFunc(res.Warnings, func(w diag.Warning) bool { return w.Code == tt.warn }) {
				t.Errorf("no warning %s in %v", tt.warn, res.Warnings)
			}
		})
	}
}

func TestBrokenCatalogs(t *testing.T) {
	x, decl := oneSubscription(t)
	decl.OperatorGroups = []declare.OperatorGroup{{Namespace: "ops", Name: "og"}}
	res, err := resolve.Resolve(x.WithBroken(catalog.ID{Namespace: "olm", Name: "bad"}, errors.New("no head")), decl, nil, resolve.Options{})
	if err != nil || len(res.Lock.Pins) != 1 || len(res.Warnings) != 1 || res.Warnings[0].Code != "broken-catalog" {
		t.Errorf("an unused broken catalog: %v, %v", res, err)
	}
	_, err = resolve.Resolve(x.WithBroken(catalog.ID{Namespace: "olm", Name: "cat"}, errors.New("no head")), decl, nil, resolve.Options{})
	if err == nil || !strings.Contains(err.Error(), "catalog olm/cat cannot be used: no head") {
		t.Errorf("the broken catalog of a subscription: %v", err)
	}
}

// TestConflictIsData encodes a conflict as JSON and decodes it again.
func TestConflictIsData(t *testing.T) {
	x, decl := oneSubscription(t)
	decl.Subscriptions[0].Channels = []string{"stabel"}
	_, err := resolve.Resolve(x, decl, nil, resolve.Options{})
	var conflicts explain.Conflicts
	if !errors.As(err, &conflicts) {
		t.Fatal(err)
	}
	data, err := json.Marshal(conflicts[0])
	if err != nil {
		t.Fatal(err)
	}
	var back explain.Conflict
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(conflicts[0], &back); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if back.Error() != conflicts[0].Error() || back.Changes[0].Text != "request channel stable" {
		t.Errorf("got %v", &back)
	}
}

// TestArgumentsAreNotModified resolves twice from the same arguments.
func TestArgumentsAreNotModified(t *testing.T) {
	x, decl := oneSubscription(t)
	first, err := resolve.Resolve(x, decl, nil, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := *first.Lock
	before.Pins = slices.Clone(first.Lock.Pins)
	copied := *decl
	copied.Subscriptions = slices.Clone(decl.Subscriptions)
	if _, err := resolve.Resolve(x, decl, first.Lock, resolve.Options{Upgrade: true, Hops: -1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&before, first.Lock); diff != "" {
		t.Errorf("the previous lock (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(&copied, decl); diff != "" {
		t.Errorf("the declarations (-before +after):\n%s", diff)
	}
}
