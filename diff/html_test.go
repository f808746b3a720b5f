package diff

import (
	"fmt"
	"html"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// fleetReport returns a report about clusters with long names, findings with links, and an operator
// that differs in one cluster.
func fleetReport() *Report {
	long := strings.Repeat("very-long-", 24) + "name"
	r := &Report{Before: "main", After: "upgrade", Notes: []string{"invalid YAML files were not compared: " + long + ".yaml"}}
	for i := range 12 {
		r.Clusters = append(r.Clusters, fmt.Sprintf("c%02d", i))
	}
	add := func(operator string, clusters []string, severity Severity, f Finding) {
		f.Operator, f.Clusters, f.Severity = operator, clusters, severity
		if f.Place.Path != "" {
			f.Link = "https://github.com/org/fleet/blob/c0ffee/" + f.Place.Path + "#L1"
		}
		r.Findings = append(r.Findings, f)
	}
	r.Operators = []OperatorReport{
		{Name: "databases/etcd", From: "0.9.2", To: "0.9.4", Clusters: []string{"c03"}, Changed: []Ref{{Kind: "Deployment", Name: "etcd"}}},
		{Name: "databases/etcd", From: "0.9.2", To: "0.9.4", Changed: []Ref{{Kind: "Deployment", Name: "etcd"}}},
		{Name: "observability/" + long, To: "1.0.0+" + long, Clusters: slices.Clone(r.Clusters[4:]), Added: []Ref{{Kind: "ServiceAccount", Name: long}}},
		{Name: "ops/quiet", From: "1.0.0", To: "1.0.0", Changed: []Ref{{Kind: "ConfigMap", Name: "quiet"}}},
		{Name: ""},
	}
	add("databases/etcd", []string{"c03"}, Critical, Finding{Rule: "data.crd-removed", Message: "the definition leaves the tree", Object: Ref{Kind: "CustomResourceDefinition", Name: "etcdclusters.etcd.database.coreos.com"}, Place: Region{Path: "rendered/clusters/c03/kustomization.yaml", Line: 1}})
	add("databases/etcd", nil, Medium, Finding{Rule: "rbac.gained", Message: "may now get pods", Before: "get", After: "get, list", Place: Region{Path: "rendered/operators/databases/etcd/clusterrole-" + long + ".yaml", Line: 1}})
	add("databases/etcd", nil, Info, Finding{Rule: "images.changed", Message: "another build", Before: "quay.io/a/b@sha256:" + strings.Repeat("0", 64), After: "quay.io/a/b@sha256:" + strings.Repeat("1", 64)})
	add("observability/"+long, r.Clusters[4:], Low, Finding{Rule: "pods.environment", Message: long, Before: "", After: "spec:\n  containers:\n  - name: " + long + "\n    env: [{name: A, value: '1'}]", Waiver: "accepted: " + long})
	add("", nil, Info, Finding{Rule: "clusters.added", Message: "the cluster is new"})
	return r
}

// hostileText attempts to inject markup, a URL, a policy and a log line.
const hostileText = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onclick='x' javascript:alert(1) {{.}} ${x} \u202egpj.exe \x1b[31m\n::error::x\n##[group]y `<!--"

func hostileReport(text string) *Report {
	f := Finding{
		Rule: "crd.field-removed", Severity: High, Operator: text, Message: text, Before: text, After: text, Field: text, Why: text, detail: repeats{[]Finding{{Field: text}, {Field: text}}, true},
		Object: Ref{Kind: text, Namespace: text, Name: text}, Place: Region{Path: text, Line: 1}, Link: text, Clusters: []string{text},
	}
	waived := f
	waived.Waiver, waived.Severity = text, Low
	clusters := []string{"a", text}
	slices.Sort(clusters)
	w := []diag.Warning{{Code: "waiver-unused", Msg: text}, {Code: "waiver-expired", Msg: text}}
	return &Report{
		Before: text, After: text, Clusters: clusters, Notes: []string{text},
		Operators: []OperatorReport{{Name: text, From: text, To: "2", Clusters: []string{text}, Added: []Ref{{Kind: text, Name: text}}}, {Name: "a/b", To: text}},
		Findings:  []Finding{f, waived},
		Removals:  []Removal{{Operator: text, Clusters: []string{text}, Resources: []RemovedResource{{Object: Ref{Kind: text, Name: text}, Path: text}}}},
		Verdict:   &PolicyResult{Fail: true, Faults: []Fault{{Policy: text, Message: text, Rule: text, Operator: text, Subject: text}}, Waivers: w},
	}
}

// TestGoldenPages updates the pages for test/browser.
func TestGoldenPages(t *testing.T) {
	for name, r := range map[string]*Report{"fleet": fleetReport(), "hostile": hostileReport(hostileText), "nothing": {Before: "main", After: "work tree", Verdict: &PolicyResult{}}} {
		page, err := HTML(r)
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Compare(t, filepath.Join("testdata", "reports", name+".html"), page)
	}
}

// TestZeroIsNotRed checks that zero counts are not colored in the summary and the contents.
func TestZeroIsNotRed(t *testing.T) {
	page, err := HTML(fleetReport())
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, want := range []string{`<li class="critical"><b>1</b> critical</li>`, `<li class="none"><b>0</b> high</li>`, `<td class="n critical"><b>1</b><span> critical</span></td>`, `<td class="n high"></td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
	if red := regexp.MustCompile(`<\w+ class="[^"]*\b(critical|high|medium|low|info)\b[^"]*"><b>0`).FindString(text); red != "" {
		t.Errorf("a colored zero: %s", red)
	}
}

// TestPageFits renders reports that exceed the maximum page size.
func TestPageFits(t *testing.T) {
	for name, text := range map[string]string{"plain": strings.Repeat("a", 300), "escaped": strings.Repeat("<'\u202e", 200)} {
		t.Run(name, func(t *testing.T) {
			r := hostileReport(text)
			for i := range 1000 {
				r.Clusters = append(r.Clusters, fmt.Sprintf("d%03d%s", i, text[:30]))
				r.Notes = append(r.Notes, text)
				r.Verdict.Faults, r.Verdict.Waivers = append(r.Verdict.Faults, r.Verdict.Faults[0]), append(r.Verdict.Waivers, r.Verdict.Waivers[0])
				r.Removals = append(r.Removals, r.Removals[0])
			}
			slices.Sort(r.Clusters)
			for i := range 43_000 {
				in := []string{r.Clusters[i%1000]}
				name := fmt.Sprintf("ns/o%02d%s", i%43, text)
				if i < 20_000 {
					r.Operators = append(r.Operators, OperatorReport{Name: name, From: "1", To: text, Clusters: in})
				}
				f := r.Findings[0]
				f.Severity, f.Operator, f.Clusters = severities()[i%5], name, in
				r.Findings = append(r.Findings, f)
			}
			slices.SortFunc(r.Findings, compareFindings)
			page, err := HTML(r)
			if err != nil {
				t.Fatal(err)
			}
			got := string(page)
			if len(got) > maxPage || len(got) < maxPage/8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "</body>\n</html>\n") {
				t.Errorf("%d bytes", len(got))
			}
			for _, what := range []string{"operators", "findings", "notes", "uninstall plans"} {
				if !regexp.MustCompile(`<p class="left">\d+ ` + what + ` are omitted to keep this page short: use -o json for everything.</p>`).MatchString(got) {
					t.Errorf("the page does not contain the number of omitted %s", what)
				}
			}
			p := newHTMLPage(r)
			for what, c := range map[string]struct{ shown, all int }{
				"operators": {len(p.Operators), len(r.Operators)}, "uninstall plans": {len(p.Removals), len(r.Removals)},
			} {
				if note := fmt.Sprintf(">%d %s are omitted ", c.all-c.shown, what); !strings.Contains(got, note) {
					t.Errorf("of %d %s, %d are shown, but the page does not contain %q", c.all, what, c.shown, note)
				}
			}
			for _, tag := range []string{"details", "section", "ul", "li", "table", "dl", "p"} {
				if opens, closes := strings.Count(got, "<"+tag+">")+strings.Count(got, "<"+tag+" "), strings.Count(got, "</"+tag+">"); opens != closes {
					t.Errorf("%d %s open, %d close", opens, tag, closes)
				}
			}
		})
	}
}

// TestPlanOfManyLinesFits checks that a long plan shows its first lines and the number of the other lines.
func TestPlanOfManyLinesFits(t *testing.T) {
	lines := slices.Repeat([]string{"kubectl delete"}, 50)
	space := byteBudget(10 * (itemOverhead + len(lines[0]) + 6))
	got := space.steps([]removalStep{{Title: "First", Lines: lines}})
	n := len(got[0].Lines) - 1
	if n < 5 || n > 10 || !slices.Equal(got[0].Lines[:n], lines[:n]) || !strings.Contains(got[0].Lines[n], fmt.Sprint(50-n)+" ") {
		t.Errorf("%d lines, the last is %q", n, got[0].Lines[n])
	}
}

// TestEscapedLength compares the bound with the escaped length. For letters and digits, it must be
// exact.
func TestEscapedLength(t *testing.T) {
	for r := rune(0); r < 0x3000; r++ {
		s := string(r)
		most := len(html.EscapeString(s))
		if r >= utf8.RuneSelf {
			most = max(most, len(url.PathEscape(s)))
		}
		if got := escapedLength(s); got < most {
			t.Errorf("%q: got %d, escaped length %d", s, got, most)
		}
	}
	for s, want := range map[string]int{"azAZ09": 6, "a b-c": 5, "@`[{/:": 6*3 + 3, "\xff": 12, "é": 6} {
		if got := escapedLength(s); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

// TestPageOfOneOperator checks that a page of one operator has no filters.
func TestPageOfOneOperator(t *testing.T) {
	page, err := HTML(&Report{Operators: []OperatorReport{{Name: "a/b"}}, Findings: []Finding{{Rule: "pods.replicas", Operator: "a/b", Severity: Low}}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(page), "<form") || strings.Contains(string(page), "<nav") {
		t.Error("the page of one operator with one severity has filters")
	}
}

func TestRanges(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f"}
	for want, names := range map[string][]string{
		"": nil, "0": {"a"}, "0-5": all, "1-2 4": {"b", "c", "e"}, "0 5": {"a", "f"}, "2-3": {"c", "cc", "d"},
	} {
		if got := formatRanges(names, all); got != want {
			t.Errorf("%v: got %q, want %q", names, got, want)
		}
	}
}

// FuzzHTML checks that texts of a report cannot inject markup: the page contains as many brackets
// and quotes as with a harmless text.
func FuzzHTML(f *testing.F) {
	f.Add(hostileText)
	f.Add("\" onmouseover=\"x")
	f.Add("javascript:alert(1)")
	f.Add("https://a.example/\"><script>")
	f.Add("##[x]\n::y")
	f.Add("a\x00\ufdd0\U000e0041&amp;+=`")
	page := func(t *testing.T, text string) string {
		got, err := HTML(hostileReport(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	attributes, quoted := regexp.MustCompile(`(?i)<[a-z][^>]*\son[a-z]+=`), regexp.MustCompile(`"[^"]*"`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) == "" {
			return // the template omits elements for empty texts
		}
		got, plain := page(t, text), page(t, "x")
		if strings.Contains(got, `href="javascript:`) || attributes.MatchString(quoted.ReplaceAllString(got, `""`)) {
			t.Fatalf("%q is an active URL or script", text)
		}
		if strings.Count(got, `"`) != strings.Count(plain, `"`) {
			t.Fatalf("%q: a quote is not escaped", text)
		}
		if strings.Count(got, "<") != strings.Count(plain, "<") {
			t.Fatalf("%q: a bracket is not escaped", text)
		}
	})
}
