package resolve_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// strictProblem is a problem in which package a requires package b. Package b is in two catalogs. The replaced
// ClusterServiceVersion of a still exists.
const strictProblem = `{"id": "strict", "globalCatalogNamespace": "olm", "catalogs": {
  "cat": {"namespace": "olm", "fbc": [
    {"schema": "olm.package", "name": "a", "defaultChannel": "stable"},
    {"schema": "olm.channel", "package": "a", "name": "stable", "entries": [{"name": "a.v2.0.0", "replaces": "a.v1.0.0"}, {"name": "a.v3.0.0", "replaces": "a.v2.0.0"}]},
    {"schema": "olm.bundle", "package": "a", "name": "a.v2.0.0", "image": "example.com/a:2", "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "2.0.0"}}]},
    {"schema": "olm.bundle", "package": "a", "name": "a.v3.0.0", "image": "example.com/a:3", "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "3.0.0"}},
      {"type": "olm.constraint", "value": {"failureMessage": "b", "cel": {"rule": "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'b' && semver_compare(p.value.version, '1.0.0') >= 0)"}}}]},
    {"schema": "olm.package", "name": "b", "defaultChannel": "stable"},
    {"schema": "olm.channel", "package": "b", "name": "stable", "entries": [{"name": "b.v1.0.0"}]},
    {"schema": "olm.channel", "package": "b", "name": "other", "entries": [{"name": "b.v1.0.0"}]},
    {"schema": "olm.bundle", "package": "b", "name": "b.v1.0.0", "image": "example.com/b:1", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "1.0.0"}}]}]},
  "more": {"namespace": "olm", "fbc": [
    {"schema": "olm.package", "name": "b", "defaultChannel": "stable"},
    {"schema": "olm.channel", "package": "b", "name": "stable", "entries": [{"name": "b.v1.0.0"}]},
    {"schema": "olm.bundle", "package": "b", "name": "b.v1.0.0", "image": "example.com/b:1", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "1.0.0"}}]}]}},
 "objects": [
  {"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "og", "namespace": "ops"}, "spec": {"targetNamespaces": ["ops"]}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "a", "namespace": "ops"}, "spec": {"name": "a", "channel": "stable", "source": "cat", "sourceNamespace": "olm"}, "status": {"installedCSV": "a.v2.0.0"}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "a.v1.0.0", "namespace": "ops"}, "spec": {"version": "1.0.0"}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "a.v2.0.0", "namespace": "ops"}, "spec": {"version": "2.0.0", "replaces": "a.v1.0.0"}}],
 "expect": {"namespaces": [{"namespace": "ops", "outcome": "fixpoint",
  "installed": [{"csv": "a.v3.0.0", "package": "a", "version": "3.0.0", "subscriptions": ["a"]}, {"csv": "b.v1.0.0", "package": "b", "version": "1.0.0", "subscriptions": ["b-stable-cat-olm"]}],
  "hops": [["a.v3.0.0", "b.v1.0.0"]], "steps": [{"install": [{"csv": "a.v3.0.0", "package": "a", "version": "3.0.0"}, {"csv": "b.v1.0.0", "package": "b", "version": "1.0.0"}]}],
  "generatedSubscriptions": [{"name": "b-stable-cat-olm", "package": "b", "channel": "stable", "source": "cat", "sourceNamespace": "olm"}]}]}}`

// TestConformanceIsStrict changes one detail of quayside's answer or of OLM's result in each case. The checks
// of TestConformance must find the change, and demandingRule must return the rule that explains it, or 0 if
// there is none.
func TestConformanceIsStrict(t *testing.T) {
	cat, more := catalog.ID{Namespace: "olm", Name: "cat"}, catalog.ID{Namespace: "olm", Name: "more"}
	from := func(a *answer, id catalog.ID, channel string) { // pins b from another catalog or channel
		b := &a.pins[slices.IndexFunc(a.pins, func(p lockfile.Pin) bool { return p.Package == "b" })]
		b.Catalog, b.Channel, b.RequestedBy = lockfile.Catalog{ID: id}, channel, nil
		a.Installed[1] = formatPin(*b)
		a.Generated = []string{strings.Join([]string{b.Subscription(), "b", channel, id.String()}, " ")}
	}
	olmFrom := func(e *expectation, id catalog.ID, channel string) {
		name := strings.Join([]string{"b", channel, id.Name, id.Namespace}, "-")
		e.Generated = []generated{{name, "b", channel, id.Name, id.Namespace}}
		e.Installed[1].Subscriptions = []string{name}
	}
	down := func(e *expectation) { // from a.v3.0.0 back to a.v2.0.0
		e.Hops = append(e.Hops, []string{"a.v2.0.0"})
		e.Steps = append(e.Steps, struct{ Install []install }{[]install{{"a.v2.0.0", "a", "2.0.0", nil}}})
		e.Installed[0] = install{"a.v2.0.0", "a", "2.0.0", []string{"a"}}
	}
	conflictOf := func(a *answer, sub string) {
		a.Outcome, a.conflicts = "conflict", []*explain.Conflict{{Namespace: "ops", Subscriptions: []string{"ops/" + sub}}}
	}
	for _, c := range []struct {
		name  string
		spoil func(*expectation, *answer)
		fault string // part of the fault; empty: none
		rule  int
	}{
		{"nothing", func(*expectation, *answer) {}, "", 0},
		{"another channel", func(_ *expectation, a *answer) { from(a, cat, "other") }, "another end", 0},
		{"another catalog", func(_ *expectation, a *answer) { from(a, more, "stable") }, "another end", 0},
		{"only the catalog of a generated subscription", func(_ *expectation, a *answer) { a.Generated[0] = "b-stable-cat-olm b stable olm/more" }, "other generated", 0},
		{"OLM loses a preferred channel", func(e *expectation, _ *answer) { olmFrom(e, cat, "other") }, "another end", 15},
		{"OLM loses a preferred catalog", func(e *expectation, _ *answer) { olmFrom(e, more, "stable") }, "another end", 15},
		{"OLM loses a preferred catalog, and other rounds", func(e *expectation, a *answer) { olmFrom(e, more, "stable"); a.Rounds = nil }, "another end", 0},
		{"another round after the first", func(_ *expectation, a *answer) { a.Rounds = append(a.Rounds, []string{"a.v3.0.0"}) }, "other rounds", 0},
		{"OLM still counts the replaced bundle", func(e *expectation, _ *answer) {
			e.Outcome, e.Error = "unsat", "clusterserviceversion a.v1.0.0 exists"
			e.Installed = append(e.Installed, install{CSV: "a.v1.0.0"})
		}, "no conflict", 8},
		{"OLM still counts the replaced bundle, and another answer", func(e *expectation, a *answer) {
			e.Outcome = "unsat"
			e.Installed = append(e.Installed, install{CSV: "a.v1.0.0"})
			from(a, more, "stable")
		}, "no conflict", 0},
		{"OLM downgrades", func(e *expectation, _ *answer) { down(e) }, "another end", 5},
		{"OLM downgrades, and another dependency", func(e *expectation, a *answer) { down(e); from(a, more, "stable") }, "another end", 0},
		{"OLM downgrades in a cycle", func(e *expectation, _ *answer) { down(e); e.Outcome = "cycle" }, "", 0},
		{"OLM downgrades in a cycle, and another first round", func(e *expectation, a *answer) { down(e); e.Outcome, a.Rounds = "cycle", nil }, "other rounds", 0},
		{"OLM's conflict", func(e *expectation, a *answer) {
			e.Outcome, e.Error = "unsat", "subscription a exists"
			conflictOf(a, "a")
		}, "", 0},
		{"a conflict of other subscriptions", func(e *expectation, a *answer) {
			e.Outcome, e.Error = "unsat", "subscription a exists"
			conflictOf(a, "z")
		}, "a conflict of others", 0},
		{"a failure that is not isolated", func(e *expectation, a *answer) { e.Outcome = "error"; conflictOf(a, "a") }, "without a subscription that causes the error", 0},
		{"nondeterministic, and another channel", func(e *expectation, a *answer) { e.Nondeterministic = true; from(a, cat, "other") }, "another end", 0},
		{"nondeterministic, and OLM has another channel", func(e *expectation, _ *answer) { e.Nondeterministic = true; olmFrom(e, cat, "other") }, "another end", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p problem
			if err := json.Unmarshal([]byte(strictProblem), &p); err != nil {
				t.Fatal(err)
			}
			x, _ := p.index(t, nil)
			want, got := p.Expect.Namespaces[0], p.solve(t, x)["ops"]
			c.spoil(&want, &got)
			fault := want.check(&p, got)
			if !strings.Contains(fault, c.fault) || (fault == "") != (c.fault == "") {
				t.Errorf("fault %q, want %q", fault, c.fault)
			}
			if rule := p.demandingRule(t, want, got); fault != "" && rule != c.rule {
				t.Errorf("rule %d demands the difference, want %d", rule, c.rule)
			}
		})
	}
}

// TestNeedsDowngrade checks that rule 5 explains a conflict if OLM downgrades an operator, but not if OLM's
// answer differs in any other way.
func TestNeedsDowngrade(t *testing.T) {
	const text = `{"id": "down", "globalCatalogNamespace": "olm", "catalogs": {"cat": {"namespace": "olm", "fbc": [
    {"schema": "olm.package", "name": "a", "defaultChannel": "stable"},
    {"schema": "olm.channel", "package": "a", "name": "stable", "entries": [{"name": "a.v1.0.0", "skipRange": "<3.0.0"}]},
    {"schema": "olm.bundle", "package": "a", "name": "a.v1.0.0", "image": "example.com/a:1", "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "1.0.0"}}]},
    {"schema": "olm.package", "name": "b", "defaultChannel": "stable"},
    {"schema": "olm.channel", "package": "b", "name": "stable", "entries": [{"name": "b.v1.0.0"}]},
    {"schema": "olm.bundle", "package": "b", "name": "b.v1.0.0", "image": "example.com/b:1", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "1.0.0"}},
      {"type": "olm.package.required", "value": {"packageName": "a", "versionRange": "<2.0.0"}}]}]}},
 "objects": [
  {"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "og", "namespace": "ops"}, "spec": {"targetNamespaces": ["ops"]}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "a", "namespace": "ops"}, "spec": {"name": "a", "channel": "stable", "source": "cat", "sourceNamespace": "olm"}, "status": {"installedCSV": "a.v2.0.0"}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "b", "namespace": "ops"}, "spec": {"name": "b", "channel": "stable", "source": "cat", "sourceNamespace": "olm"}},
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "a.v2.0.0", "namespace": "ops"}, "spec": {"version": "2.0.0"}}],
 "expect": {"namespaces": [{"namespace": "ops", "outcome": "fixpoint", "hops": [["a.v1.0.0", "b.v1.0.0"]],
  "installed": [{"csv": "a.v1.0.0", "package": "a", "version": "1.0.0", "subscriptions": ["a"]}, {"csv": "b.v1.0.0", "package": "b", "version": "1.0.0", "subscriptions": ["b"]}],
  "steps": [{"install": [{"csv": "a.v1.0.0", "package": "a", "version": "1.0.0"}, {"csv": "b.v1.0.0", "package": "b", "version": "1.0.0"}]}]}]}}`
	var p problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	x, _ := p.index(t, nil)
	got, want := p.solve(t, x)["ops"], p.Expect.Namespaces[0]
	if fault := want.check(&p, got); got.Outcome != "conflict" || fault == "" {
		t.Fatalf("%s, fault %q", got.Outcome, fault)
	}
	if rule := p.demandingRule(t, want, got); rule != 5 {
		t.Errorf("rule %d demands the conflict, want 5", rule)
	}
	want.Installed[1].Subscriptions = []string{"other"}
	if rule := p.demandingRule(t, want, got); rule != 0 {
		t.Errorf("rule %d demands another answer", rule)
	}
}

// TestMalformed checks which constraints are malformed.
func TestMalformed(t *testing.T) {
	for text, bad := range map[string]bool{
		`{"failureMessage": "x", "gvk": {"group": "a", "version": "v1", "kind": "A"}}`:                                      false,
		`{"package": {"packageName": "a", "versionRange": ">=1.0.0"}}`:                                                      false,
		`{"cel": {"rule": "properties.exists(p, p.type == 'x')"}}`:                                                          false,
		`{"any": {"constraints": [{"cel": {"rule": "semver_compare('1.0.0', '2.0.0') < 0"}}]}}`:                             false,
		`{"cel": {"rule": "properties.exists(p, "}}`:                                                                        true,
		`{"cel": {"rule": "'text'"}}`:                                                                                       true,
		`{"all": {"constraints": [{"cel": {"rule": "1"}}]}}`:                                                                true,
		`{"package": {"packageName": "a", "versionRange": "^1"}}`:                                                           true,
		`{"gvk": {"group": "a", "version": "v1", "kind": "A"}, "package": {"packageName": "a", "versionRange": ">=1.0.0"}}`: true,
		`{"failureMessage": "x"}`:                                                                                           true,
		`{"none": {}}`:                                                                                                      true,
	} {
		if got := unreadable(catalog.Property{Type: "olm.constraint", Value: json.RawMessage(text)}); got != bad {
			t.Errorf("%s: malformed: %v", text, got)
		}
	}
}

// TestMisplaced changes one origin of a pin in each case: findMisplaced must return the error. TestConformance
// needs this check, because the list of installed bundles contains no origins.
func TestMisplaced(t *testing.T) {
	var p problem
	if err := json.Unmarshal([]byte(strictProblem), &p); err != nil {
		t.Fatal(err)
	}
	x, _ := p.index(t, nil)
	decl, _ := p.declarations(t)
	for fault, spoil := range map[string]func(*answer){
		"a has no pin":               func(a *answer) { a.Installed = a.Installed[1:] },
		"does not declare":           func(a *answer) { a.pins[0].Channel = "other" },
		"is not visible":             func(a *answer) { a.pins[1].Catalog.ID.Namespace = "dev" },
		"is not in channel \"none\"": func(a *answer) { a.pins[1].Channel = "none" },
	} {
		a := p.solve(t, x)["ops"]
		if a.fault != "" {
			t.Fatal(a.fault)
		}
		if spoil(&a); !strings.Contains(p.findMisplaced(a, decl, "ops"), fault) {
			t.Errorf("%q, want %q", p.findMisplaced(a, decl, "ops"), fault)
		}
	}
	a := p.solve(t, x)["ops"]
	a.pins[0].Properties = nil
	if findUnsound(a.pins[:1], decl, "ops") != "" {
		t.Error("a bundle without requirements has an unmet one")
	}
	whole := p.solve(t, x)["ops"].pins
	if fault := findUnsound(whole[:1], decl, "ops"); !strings.Contains(fault, "a.v3.0.0 misses olm.constraint") {
		t.Errorf("without b: %q", fault)
	}
}
