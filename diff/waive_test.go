package diff

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// atom is the smallest unit that a waiver can select.
type atom struct {
	rule, operator, object, field, container, vulnerability, also, cluster string
}

// hides reports whether a waiver should hide an atom: all its selectors match, and it has not expired.
func hides(w diag.Waiver, a atom, today string) bool {
	like := func(pattern, s string) bool {
		if strings.HasSuffix(pattern, "*") {
			return strings.HasPrefix(s, pattern[:len(pattern)-1])
		}
		return pattern == s
	}
	if today > w.Expires || !like(w.Rule, a.rule) {
		return false
	}
	if w.Operator != "" && w.Operator != a.operator || w.Object != "" && !like(w.Object, a.object) || w.Field != "" && w.Field != a.field {
		return false
	}
	if w.Container != "" && w.Container != a.container || w.Vulnerability != "" && w.Vulnerability != a.vulnerability && w.Vulnerability != a.also {
		return false
	}
	return len(w.Clusters) == 0 || slices.ContainsFunc(w.Clusters, func(name string) bool { return like(name, a.cluster) })
}

// atomsOf returns the atoms of a finding, derived from its reported fields.
func atomsOf(f Finding, clusters []string) []atom {
	if f.Clusters != nil {
		clusters = f.Clusters
	}
	var out []atom
	for _, cluster := range clusters {
		one := atom{rule: f.Rule, operator: f.Operator, object: f.Object.String(), field: f.Field, container: f.Container, cluster: cluster}
		switch {
		case f.family() == "rbac":
			for field := range strings.SplitSeq(f.Field, ", ") {
				one.field = field
				out = append(out, one)
			}
		case f.family() == "vulnerabilities":
			for _, v := range f.vulnerabilities() {
				one.vulnerability, one.also = v.ID, strings.Join(v.Also, "")
				out = append(out, one)
			}
		case f.family() == "images":
			out = append(out, one)
			for _, s := range f.locations()[min(1, len(f.locations())):] {
				one.object, one.field, one.container = s.Object.String(), s.Field, s.Container
				out = append(out, one)
			}
		default:
			for _, field := range append([]string{f.Field}, f.otherFields()...) {
				one.field = field
				out = append(out, one)
			}
		}
	}
	return out
}

// randomFinding returns a finding of any form.
func randomFinding(r *rand.Rand, clusters []string) Finding {
	f := Finding{Severity: High, Operator: "ops/" + string('a'+rune(r.IntN(2))), Object: Ref{Kind: "Kind", Namespace: "ops", Name: string('x' + rune(r.IntN(3)))}, Message: "m"}
	if r.IntN(2) == 0 {
		n := 1 + r.IntN(len(clusters))
		f.Clusters = slices.Sorted(slices.Values(selectItems(clusters, r.Perm(len(clusters))[:n])))
	}
	some := func(words ...string) []string {
		return slices.Sorted(slices.Values(selectItems(words, r.Perm(len(words))[:1+r.IntN(len(words))])))
	}
	switch r.IntN(5) {
	case 0:
		f.Rule, f.Field, f.Container = "pods.privileged", "m securityContext", some("m", "n")[0]
	case 1:
		c := clause{grant: k8s.Grant{}, verbs: []string{"get"}, objects: some("secrets", "pods", "jobs.batch")}
		f.Rule, f.Field, f.Message, f.detail = "rbac.gained", c.field(), c.message(), c
	case 2:
		f.Rule = vulnerabilitiesStayed
		list := vulnerabilityList{counts: map[string]int{}}
		for _, id := range some("CVE-1", "CVE-2", "CVE-3") {
			list.listed = append(list.listed, Vulnerability{ID: id, Also: []string{"GHSA" + id[3:]}, Severity: "high"})
			list.counts["high"]++
		}
		f.Message, f.detail = list.summary(f.Rule), list
	case 3:
		f.Rule, f.Message = "images.changed", "another build"
		var all []Finding
		for _, at := range some("x", "y", "z") {
			all = append(all, Finding{Object: Ref{Kind: "Kind", Namespace: "ops", Name: at}, Field: "container " + at, Container: string(at[0] - 11)})
		}
		f.Object, f.Field, f.Container, f.detail = all[0].Object, all[0].Field, all[0].Container, repeats{locations: all}
		if len(all) > 1 {
			f.Message += formatLocationCount(len(all))
		}
	default:
		fields := some("v1 a.x", "v1 b.x", "v1 c.x")
		var folded []Finding
		for _, field := range fields {
			g := f
			g.Rule, g.Field = "crd.field-removed", field
			folded = append(folded, g)
		}
		return foldFindings(folded)[0]
	}
	return f
}

func randomWaiver(r *rand.Rand) diag.Waiver {
	maybe := func(words ...string) string {
		if r.IntN(3) > 0 {
			return ""
		}
		return words[r.IntN(len(words))]
	}
	w := diag.Waiver{
		Rule:     []string{"crd.*", "crd.field-removed", "rbac.gained", "rbac.*", "images.changed", "pods.privileged", "vulnerabilities.*", vulnerabilitiesStayed}[r.IntN(8)],
		Operator: maybe("ops/a", "ops/b"), Object: maybe("Kind ops/x", "Kind ops/y", "Kind ops/*"), Field: maybe("v1 a.x", "v1 b.x", "secrets", "pods", "container x", "container y"),
		Container: maybe("m", "n", "o"), Reason: "r", Expires: []string{"2026-11-21", "2026-11-20", "2027-01-01"}[r.IntN(3)],
	}
	if strings.HasPrefix(w.Rule, "vuln") {
		w.Vulnerability = maybe("CVE-1", "GHSA-2")
	}
	if c := maybe("c1", "c2", "d*"); c != "" {
		w.Clusters = []string{c}
	}
	return w
}

// TestWaiverHidesItsSelection applies random waivers to random findings, and compares the waived atoms
// with the specification.
func TestWaiverHidesItsSelection(t *testing.T) {
	const today = "2026-11-21"
	clusters := []string{"c1", "c2", "d1", "d2"}
	split := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 28))
		report := &Report{Clusters: clusters, scanned: true}
		want := map[string]int{}
		var waivers []diag.Waiver
		for range 1 + r.IntN(3) {
			waivers = append(waivers, randomWaiver(r))
		}
		for range 1 + r.IntN(3) {
			f := randomFinding(r, clusters)
			report.Findings = append(report.Findings, f)
			for _, a := range atomsOf(f, clusters) {
				hidden := slices.ContainsFunc(waivers, func(w diag.Waiver) bool { return hides(w, a, today) })
				want[fmt.Sprint(a, hidden)]++
			}
		}
		judged, err := Judge(report, Policy{FailOn: High, Waivers: waivers}, today)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		shown := 0
		for _, f := range judged.Findings {
			for _, a := range atomsOf(f, clusters) {
				got[fmt.Sprint(a, f.Waiver != "")]++
			}
			if f.Waiver == "" {
				shown++
			}
		}
		if d := cmp.Diff(want, got); d != "" || len(judged.Verdict.Faults) != shown {
			t.Fatalf("seed %d: %d faults, %d findings shown; findings %+v; waivers %+v: -want +got\n%s", seed, len(judged.Verdict.Faults), shown, report.Findings, waivers, d)
		}
		if len(judged.Findings) > len(report.Findings) {
			split++
		}
	}
	if split < 100 {
		t.Errorf("%d of 3000 reports have a split finding: the test is ineffective", split)
	}
}

// TestPartlyWaived checks that the remaining part of a finding does not mention the waived part.
func TestPartlyWaived(t *testing.T) {
	before := parsed(t, "ops/demo", "a.yaml", doc(clusterRole(rule("''", "pods", "get")), binding, account))
	after := parsed(t, "ops/demo", "a.yaml", doc(clusterRole(rule("''", "pods", "get"), rule("batch", "jobs, cronjobs", "create")), binding, account))
	r, err := Compare(State{Objects: before}, State{Objects: after}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err = Judge(r, Policy{FailOn: High, Waivers: []diag.Waiver{{Rule: "rbac.*", Object: "ServiceAccount ops/demo", Field: "jobs.batch", Reason: "r", Expires: "2026-12-31"}}}, "2026-11-21")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.Findings {
		got[f.subject()+": "+f.fullMessage()] = f.Waiver
	}
	want := map[string]string{
		"ServiceAccount ops/demo cronjobs.batch: may now create cronjobs.batch in all namespaces": "",
		"ServiceAccount ops/demo jobs.batch: may now create jobs.batch in all namespaces":         "r",
	}
	if !maps.Equal(want, got) {
		t.Errorf("-want +got\n%s", cmp.Diff(want, got))
	}
}

// TestUnlistedVulnerabilities splits findings whose counts exceed their lists, and checks that the
// counts of the parts add up.
func TestUnlistedVulnerabilities(t *testing.T) {
	list := vulnerabilityList{counts: map[string]int{"high": 3, "critical": 2}, listed: []Vulnerability{{ID: "CVE-1", Severity: "critical"}, {ID: "CVE-2", Severity: "high"}}}
	f := Finding{Rule: vulnerabilitiesStayed, detail: list}
	if n := len(f.parts()); n != 3 {
		t.Fatalf("%d parts, want two listed vulnerabilities and the rest", n)
	}
	for first := range 3 {
		selected, others := f.withParts([]int{first}), f.withParts(slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == first }))
		one, rest := selected.document(), others.document()
		if n := len(one.Vulnerabilities) + len(rest.Vulnerabilities); n != 2 {
			t.Errorf("part %d: %d vulnerabilities are listed", first, n)
		}
		for severity, want := range list.counts {
			if got := one.Counts[severity] + rest.Counts[severity]; got != want {
				t.Errorf("part %d: %d of severity %s in %v and %v, want %d", first, got, severity, one.Counts, rest.Counts, want)
			}
		}
		if first < 2 && (len(selected.parts()) != 1 || one.Counts[one.Vulnerabilities[0].Severity] != 1) {
			t.Errorf("part %d: got %+v", first, one)
		}
	}
	list.counts = map[string]int{"high": 1, "critical": 1}
	f.detail = list
	if n := len(f.parts()); n != 2 {
		t.Errorf("%d parts if all are listed, want 2", n)
	}
}

// TestPlacesOfAPart selects some locations of a finding, and checks the number in the message.
func TestPlacesOfAPart(t *testing.T) {
	f := Finding{Rule: "images.changed"}
	var all []Finding
	for _, name := range []string{"x", "y", "z"} {
		all = append(all, Finding{Object: Ref{Kind: "Pod", Name: name}})
	}
	f.Object, f.Message, f.detail = all[0].Object, "new digest"+formatLocationCount(3), repeats{locations: all}
	for want, which := range map[string][]int{"new digest": {1}, "new digest (at 2 places)": {1, 2}} {
		if got := f.withParts(which); got.Message != want || got.Object.Name != "y" {
			t.Errorf("%v: got %q at %s, want %q", which, got.Message, got.Object, want)
		}
	}
}
