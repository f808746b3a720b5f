package settings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/settings"
)

// TestCheckRules checks the faults of unknown or reserved rule names, and their positions.
func TestCheckRules(t *testing.T) {
	const text = `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  policy:
    severity: {rbac.gaind: low}
    rules:
    - {name: one-registry, expression: "true"}
    - {name: rbac.gained, expression: "true"}
    - {name: orphan, expression: "true"}
    - {name: mine, expression: "true"}
    waivers:
    - {rule: rbac.gaind, reason: r, expires: 2027-01-01}
    - {rule: rbac.*, object: etcd, reason: r, expires: 2027-01-01}
    - {rule: pods.*, reason: r, expires: 2027-01-01}
    - {rule: one-registri, reason: r, expires: 2027-01-01}
    - {rule: one-registry, vulnerability: CVE-1, reason: r, expires: 2027-01-01}
    - {rule: rbac.gained, vulnerability: CVE-1, reason: r, expires: 2027-01-01}
    - {rule: orphan, object: etcd/etcd, reason: r, expires: 2027-01-01}
    - {rule: unchecked, clusters: [c1], reason: r, expires: 2027-01-01}
    - {rule: unchekced, reason: r, expires: 2027-01-01}
`
	w, err := settings.Parse("quayside.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = `quayside.yaml:5:28: spec.policy.severity.rbac.gaind: unknown rule "rbac.gaind" (did you mean "rbac.gained"?)
quayside.yaml:8:14: spec.policy.rules[1].name: "rbac.gained" is the name of a built-in rule: choose another name
quayside.yaml:9:14: spec.policy.rules[2].name: "orphan" is the code of a warning: choose another name
quayside.yaml:12:14: spec.policy.waivers[0].rule: unknown rule "rbac.gaind" (did you mean "rbac.gained"?)
quayside.yaml:13:30: spec.policy.waivers[1].object: "etcd" is not an object in the form of the report, such as Deployment ops/etcd
quayside.yaml:14:14: spec.policy.waivers[2].rule: unknown rule "pods.*"
quayside.yaml:15:14: spec.policy.waivers[3].rule: unknown rule "one-registri" (did you mean "one-registry"?)
quayside.yaml:17:42: spec.policy.waivers[5].vulnerability: rule rbac.gained has no vulnerability IDs: omit vulnerability, or use a rule of vulnerabilities.*
quayside.yaml:19:7: spec.policy.waivers[7]: warnings such as "unchecked" are selected only by rule and object
quayside.yaml:20:14: spec.policy.waivers[8].rule: unknown rule "unchekced" (did you mean "unchecked"?)`
	got := ""
	if err := w.CheckRules([]string{"crd.field-removed", "rbac.gained"}); err != nil {
		got = err.Error()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestRulesWithout checks that a rule without a name or expression is a fault.
func TestRulesWithout(t *testing.T) {
	const text = `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  policy:
    rules:
    - {on: tree, expression: "true"}
    - {name: "", expression: "true"}
    - {name: one}
    - {name: two, expression: " "}
`
	const want = `quayside.yaml:6:7: spec.policy.rules[0].name: missing: the rule needs a name for reports and waivers
quayside.yaml:7:14: spec.policy.rules[1].name: missing: the rule needs a name for reports and waivers
quayside.yaml:8:7: spec.policy.rules[2].expression: missing: write an expression that is true for refused objects
quayside.yaml:9:31: spec.policy.rules[3].expression: missing: write an expression that is true for refused objects`
	_, err := settings.Parse("quayside.yaml", []byte(text))
	if err == nil {
		t.Fatal("accepted")
	}
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
