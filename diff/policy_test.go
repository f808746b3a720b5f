package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// judgeTypeChange judges a report about the changed type of a field.
func judgeTypeChange(t *testing.T, p Policy, today string) *Report {
	t.Helper()
	r, err := Judge(compareManifests(t, widget("{type: string}"), widget("{type: integer}")), p, today)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJudge(t *testing.T) {
	waive := func(w diag.Waiver) Policy { return Policy{FailOn: High, Waivers: []diag.Waiver{w}} }
	rule := func(expr string) Policy {
		return Policy{Rules: []CELRule{{Name: "mine", Expression: expr, Message: "no"}}}
	}
	cases := []struct {
		name                    string
		policy                  Policy
		fail                    bool
		waived, expired, unused int
	}{
		{"no policy", Policy{}, false, 0, 0, 0},
		{"severity reached", Policy{FailOn: High}, true, 0, 0, 0},
		{"severity not reached", Policy{FailOn: Critical}, false, 0, 0, 0},
		{"waived", waive(diag.Waiver{Rule: "crd.type-changed", Reason: "r"}), false, 1, 0, 0},
		{"waived by family", waive(diag.Waiver{Rule: "crd.*", Operator: "ops/demo", Reason: "r"}), false, 1, 0, 0},
		{"waived by object", waive(diag.Waiver{Rule: "crd.*", Object: "CustomResourceDefinition widgets.demo.io", Reason: "r"}), false, 1, 0, 0},
		{"waived by field", waive(diag.Waiver{Rule: "crd.*", Field: "v1 spec.x", Reason: "r"}), false, 1, 0, 0},
		{"name of the object alone", waive(diag.Waiver{Rule: "crd.*", Object: "widgets.demo.io", Reason: "r"}), true, 0, 0, 1},
		{"another field", waive(diag.Waiver{Rule: "crd.*", Field: "v1 spec", Reason: "r"}), true, 0, 0, 1},
		{"another operator", waive(diag.Waiver{Rule: "crd.*", Operator: "ops/other", Reason: "r"}), true, 0, 0, 1},
		{"another rule", waive(diag.Waiver{Rule: "crd.scope-changed", Reason: "r"}), true, 0, 0, 1},
		{"last day", waive(diag.Waiver{Rule: "crd.*", Reason: "r", Expires: "2026-11-21"}), false, 1, 0, 0},
		{"day after", waive(diag.Waiver{Rule: "crd.*", Reason: "r", Expires: "2026-11-20"}), true, 0, 1, 0},
		{"CEL expression is true", rule(`finding.rule == "crd.type-changed" && finding.rank >= 4 && finding.name.endsWith(".demo.io")`), true, 0, 0, 0},
		{"CEL expression is false", rule(`finding.family == "rbac"`), false, 0, 0, 0},
		{"a waiver of the finding does not affect CEL rules", Policy{Rules: []CELRule{{Name: "mine", Expression: "true"}}, Waivers: []diag.Waiver{{Rule: "crd.*", Reason: "r"}}}, true, 1, 0, 0},
		{"a waiver of a CEL rule", Policy{Rules: []CELRule{{Name: "mine", Expression: "true"}}, Waivers: []diag.Waiver{{Rule: "mine", Reason: "r"}}}, false, 0, 0, 0},
		{"a waiver of a CEL rule does not affect the level", Policy{FailOn: High, Rules: []CELRule{{Name: "mine", Expression: "true"}}, Waivers: []diag.Waiver{{Rule: "mine", Reason: "r"}}}, true, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := judgeTypeChange(t, c.policy, "2026-11-21")
			n := 0
			for _, f := range r.Findings {
				if f.Waiver != "" {
					n++
				}
			}
			got := []any{r.Verdict.Fail, n, countWaiverWarnings(r, "waiver-expired"), countWaiverWarnings(r, "waiver-unused")}
			if d := cmp.Diff([]any{c.fail, c.waived, c.expired, c.unused}, got); d != "" {
				t.Errorf("fail, waived, expired, unused: -want +got\n%s", d)
			}
		})
	}
}

// countWaiverWarnings returns the number of warnings about waivers with the code.
func countWaiverWarnings(r *Report, code string) int {
	n := 0
	for _, w := range r.Verdict.Waivers {
		if w.Code == code {
			n++
		}
	}
	return n
}

// TestJudgeDoesNotModifyTheReport checks that waivers are set only in the returned report.
func TestJudgeDoesNotModifyTheReport(t *testing.T) {
	r := compareManifests(t, widget("{type: string}"), widget("{type: integer}"))
	if _, err := Judge(r, Policy{FailOn: Info, Waivers: []diag.Waiver{{Rule: "crd.*", Reason: "r"}}}, "2026-11-21"); err != nil || r.Findings[0].Waiver != "" || r.Verdict != nil {
		t.Errorf("%v, %+v", err, r.Findings[0])
	}
}

func TestBadPolicies(t *testing.T) {
	r := compareManifests(t, widget("{type: string}"), widget("{type: integer}"))
	_, err := Judge(r, Policy{
		Rules: []CELRule{{Name: "a", Expression: "finding.", Pos: diag.Pos{File: "quayside.yaml", Line: 5, Col: 3}}, {Name: "b", Expression: "1 + 1"}},
	}, "2026-11-21")
	want := []string{
		`policy rule "b": expression must return bool, got int`,
		`quayside.yaml:5:3: policy rule "a": `,
	}
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	if _, err := Judge(r, Policy{Rules: []CELRule{{Name: "x", Expression: "finding.nosuch == 1"}}}, "2026-11-21"); err == nil || !strings.Contains(err.Error(), `policy rule "x"`) {
		t.Errorf("a field that does not exist: %v", err)
	}
}

// TestAggregatedRoleNamesTheOperator compares states with two operators that extend one aggregated role and
// bind roles to one group. Findings must name the operator whose objects changed.
func TestAggregatedRoleNamesTheOperator(t *testing.T) {
	gives := func(operator, resource string) []Object {
		name := strings.ReplaceAll(operator, "/", "-")
		return parsed(t, operator, name+".yaml", doc(
			rbacHead+"kind: ClusterRole\nmetadata: {name: "+name+", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: ["+rule("x.io", resource, "'*'")+"]",
			rbacHead+"kind: ClusterRole\nmetadata: {name: "+name+"-all}\nrules: ["+rule("y.io", resource, "get")+"]",
			rbacHead+"kind: ClusterRoleBinding\nmetadata: {name: "+name+"}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+name+"-all}\nsubjects: [{kind: Group, name: 'system:authenticated'}]"))
	}
	state := State{
		Pins:      []lockfile.Pin{{Namespace: "a", Package: "one", Version: "1.0.0"}, {Namespace: "b", Package: "two", Version: "1.0.0"}},
		Objects:   append(gives("a/one", "ones"), gives("b/two", "twos")...),
		Resources: parsed(t, "", "mine.yaml", rbacHead+"kind: ClusterRoleBinding\nmetadata: {name: mine}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: Group, name: 'system:authenticated'}]"),
	}
	before := state
	before.Objects = gives("a/one", "ones")
	before.Pins = append(state.Pins[:1:1], lockfile.Pin{Namespace: "b", Package: "two", Version: "0.9.0"})
	for rule, sides := range map[string][2]State{"rbac.aggregated": {before, state}, "rbac.lost": {state, before}} {
		r, err := Compare(sides[0], sides[1], CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		aggregated := 0
		for _, f := range r.Findings {
			if strings.Contains(f.Message, "bound to ClusterRole admin") && f.Rule == rule {
				aggregated++
				if f.Operator != "b/two" {
					t.Errorf("%s of %s: %s", f.Rule, f.Operator, f.Message)
				}
			}
		}
		if aggregated != 1 {
			t.Errorf("%s: %d findings about admin, want 1", rule, aggregated)
		}
	}
}

// TestWaivedInSomeClusters checks that a finding is split by the clusters in waivers.
func TestWaivedInSomeClusters(t *testing.T) {
	finding := Finding{Rule: "pods.host-network", Severity: High, Operator: "ops/etcd", Message: "m"}
	report := &Report{Clusters: []string{"a1", "a2", "b1", "b2"}, Findings: []Finding{finding}, Operators: []OperatorReport{{Name: "ops/etcd", From: "1", To: "2"}}}
	waive := func(expires string, clusters ...string) diag.Waiver {
		return diag.Waiver{Rule: "pods.*", Reason: "r", Expires: expires, Clusters: clusters}
	}
	for _, c := range []struct {
		name    string
		waivers []diag.Waiver
		want    []string // clusters of the findings, in order; "!" marks waived findings
		unused  int
	}{
		{"none", nil, []string{"all"}, 0},
		{"all of them", []diag.Waiver{waive("")}, []string{"!all"}, 0},
		{"one", []diag.Waiver{waive("", "a1")}, []string{"!a1", "a2 b1 b2"}, 0},
		{"both halves", []diag.Waiver{waive("", "a*"), waive("", "b*")}, []string{"!a1 a2", "!b1 b2"}, 0},
		{"one, then all", []diag.Waiver{waive("", "a*"), waive("")}, []string{"!a1 a2", "!b1 b2"}, 0},
		{"another", []diag.Waiver{waive("", "c*")}, []string{"all"}, 1},
		{"expired", []diag.Waiver{waive("2020-01-01", "a*")}, []string{"all"}, 0},
	} {
		got, err := Judge(report, Policy{FailOn: High, Waivers: c.waivers}, "2026-11-22")
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		fails := 0
		for _, f := range got.Findings {
			word := strings.Join(f.Clusters, " ")
			if word == "" {
				word = "all"
			}
			if f.Waiver != "" {
				word = "!" + word
			} else {
				fails++
			}
			words = append(words, word)
			if !slices.ContainsFunc(got.Operators, func(op OperatorReport) bool { return slices.Equal(op.Clusters, f.Clusters) && op.To == "2" }) {
				t.Errorf("%s: no operator for %q", c.name, word)
			}
		}
		if !slices.Equal(words, c.want) || len(got.Verdict.Faults) != fails || countWaiverWarnings(got, "waiver-unused") != c.unused {
			t.Errorf("%s: %q, %d faults, %d unused; want %q", c.name, words, len(got.Verdict.Faults), countWaiverWarnings(got, "waiver-unused"), c.want)
		}
	}
}

// TestFailOnByCluster judges a finding by a policy with different levels for clusters. The finding is refused
// in each cluster whose level is not higher than the severity of the finding. The fault lists these clusters,
// unless they are all clusters of the finding.
func TestFailOnByCluster(t *testing.T) {
	all := []string{"dev", "prod-1", "prod-2", "stage"}
	strict := []Level{{[]string{"prod-2"}, Off}, {[]string{"prod-*", "stage"}, High}}
	for _, c := range []struct {
		name     string
		policy   Policy
		clusters []string // clusters of the finding
		fails    bool
		in       []string
	}{
		{"in all clusters, some are strict", Policy{FailOn: Critical, Clusters: strict}, nil, true, []string{"prod-1", "stage"}},
		{"in a strict one", Policy{FailOn: Critical, Clusters: strict}, []string{"prod-1"}, true, []string{"prod-1"}},
		{"the first entry decides", Policy{FailOn: High, Clusters: strict}, []string{"prod-2"}, false, nil},
		{"in no strict one", Policy{FailOn: Critical, Clusters: strict}, []string{"dev", "prod-2"}, false, nil},
		{"in a strict one and another", Policy{FailOn: Critical, Clusters: strict}, []string{"dev", "stage"}, true, []string{"stage"}},
		{"in all clusters, all are strict", Policy{FailOn: Off, Clusters: []Level{{[]string{"*"}, Low}}}, nil, true, nil},
		{"no levels", Policy{FailOn: High}, []string{"dev"}, true, []string{"dev"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Judge(&Report{Clusters: all, Findings: []Finding{{Rule: "pods.host-network", Severity: High, Clusters: c.clusters}}}, c.policy, "2026-11-21")
			if err != nil {
				t.Fatal(err)
			}
			var got []Fault
			if c.fails {
				got = []Fault{{Policy: "failOn", Message: "high: ", Rule: "pods.host-network", Subject: strings.TrimSuffix(clusterPrefix(c.in), ": "), Clusters: c.in}}
			}
			if d := cmp.Diff(got, r.Verdict.Faults); d != "" || r.Verdict.Fail != c.fails {
				t.Errorf("fail: %v; -want +got\n%s", r.Verdict.Fail, d)
			}
		})
	}
	r, err := Judge(&Report{Clusters: all}, Policy{Clusters: []Level{{[]string{"prd-*", "stage"}, High}}}, "2026-11-21")
	if want := []string{`policy.clusters: no cluster matches "prd-*"`}; err != nil || !slices.Equal(r.Notes, want) {
		t.Errorf("%q, %v", r.Notes, err)
	}
}
