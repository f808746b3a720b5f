package diff

import (
	"fmt"
	"strings"
	"testing"
)

// TestNothingImportantIsCut checks that every report contains each finding of at least medium
// severity, or the number of findings in its group.
func TestNothingImportantIsCut(t *testing.T) {
	base := mutantBase(t)
	flood := base
	for i := range 60 {
		flood = flood.mutant(t, fmt.Sprintf("add {apiVersion: v1, kind: ConfigMap, metadata: {name: flood-%d, namespace: ops}}", i))
	}
	flood = flood.mutant(t, "add {apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, metadata: {name: needle}}")
	r := compare(t, base, flood)
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	for format, text := range map[string][]byte{"text": Text(r, false), "markdown": Markdown(r), "html": page} {
		if !strings.Contains(string(text), "needle: ") && !strings.Contains(string(text), "SecurityContextConstraints needle") {
			t.Errorf("%s does not name the constraints", format)
		}
		if !strings.Contains(string(text), "at 60 places") {
			t.Errorf("%s does not count the ConfigMaps", format)
		}
	}
	doc, err := indentJSON(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if !strings.Contains(string(doc), fmt.Sprintf(`"name": "flood-%d"`, i)) {
			t.Errorf("the JSON does not contain flood-%d", i)
		}
	}

	// More findings than fit into a comment.
	many := base
	var others []string
	for i := range 2000 {
		others = append(others, fmt.Sprintf("{name: v%d, hostPath: {path: /%d}}", i, i))
	}
	many = many.mutant(t, "set Deployment demo spec.template.spec.volumes ["+strings.Join(others, ", ")+"]")
	many = many.mutant(t, "add {apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, metadata: {name: needle}}")
	r = compare(t, base, many)
	text := string(Markdown(r))
	if len(text) >= MaxComment || !strings.Contains(text, "- high pods.host-path: ") && !strings.Contains(text, `- high pods\.host\-path: `) {
		t.Errorf("%d bytes, without the number of omitted findings:\n%s", len(text), text[max(0, len(text)-1500):])
	}
}

// TestRulesSeeObjects checks that expressions can use the objects of a finding on both sides.
func TestRulesSeeObjects(t *testing.T) {
	base := mutantBase(t)
	after := base.mutant(t, "add {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ops}}")
	after = after.mutant(t, "add {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ops}, data: {x: y}}")
	after = after.mutant(t, "set Widget demo spec.size 2").mutant(t, "del PodDisruptionBudget demo")
	r := compare(t, base, after)
	for expression, want := range map[string]int{
		`object.kind == "ConfigMap"`: 1, // one finding for both objects
		`object.name == "b"`:         1,
		`object.group == "demo.io" && before.spec.size == 1 && after.spec.size == 2`:          1,
		`object.kind == "PodDisruptionBudget" && after == null && before.kind == object.kind`: 1,
		`object.kind == "Secret"`: 0,
	} {
		got, err := Judge(r, Policy{Rules: []CELRule{{Name: "mine", Expression: expression}}}, "2026-11-27")
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		if len(got.Verdict.Faults) != want {
			t.Errorf("%s: %+v", expression, got.Verdict.Faults)
		}
		if strings.Contains(expression, `"b"`) && got.Verdict.Faults[0].Subject != "ConfigMap ops/b" {
			t.Errorf("%s: the fault is about %s", expression, got.Verdict.Faults[0].Subject)
		}
	}
	judge, err := Policy{Rules: []CELRule{{Name: "mine", Tree: true, Expression: `object.group == "security.openshift.io" && object.name == "demo-scc"`}}}.OnTree(base, "2026-11-27")
	if err != nil {
		t.Fatal(err)
	}
	if err := judge.Add(nil, base); err != nil {
		t.Fatal(err)
	}
	if refused, _ := judge.Verdict(); len(refused) != 1 {
		t.Errorf("objects of the tree: %v", refused)
	}
}
