package resolve_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
)

// problem is one line of a problem file: an input of the resolver, and OLM's result for each namespace.
type problem struct {
	ID                     string
	GlobalCatalogNamespace string
	Catalogs               map[string]problemCatalog
	InvalidCatalogs        []string
	Objects                []json.RawMessage
	Expect                 struct{ Namespaces []expectation }

	allowDowngrade bool

	read map[catalog.ID][]catalog.PackageData // the cache of packages
}

type problemCatalog struct {
	Namespace string
	Priority  int
	FBC       json.RawMessage // a list of objects, or absent
	Corpus    string
}

type expectation struct {
	Namespace        string
	Outcome          string
	Error            string
	ErrorsSeen       []string // further errors of the same problem
	Installed        []install
	Hops             [][]string
	Steps            []struct{ Install []install }
	PendingInstall   []install
	Generated        []generated `json:"generatedSubscriptions"`
	Nondeterministic bool
	Alternatives     []struct {
		Outcome   string
		Installed []string
	}
}

type install struct {
	CSV, Package, Version string
	Subscriptions         []string
}

type generated struct {
	Name, Package, Channel, Source, SourceNamespace string
}

// TestConformance compares quayside's answer to each problem with OLM's answer, and both answers with the table
// testdata/conformance/problems.tsv, which has the reason for each difference. QUAYSIDE_CONFORMANCE may name
// another directory of problems. The answer to a problem that is missing from the table must equal OLM's answer
// or follow from a rule. Each mismatch is reported as one line of JSON.
func TestConformance(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CONFORMANCE")
	if dir == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no problems to solve")
	}
	var files []string
	for _, pattern := range []string{"resolve/*.jsonl", "nights/*.jsonl"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("no problems in %s", dir)
	}
	table := readAgreements(t)
	corpora := map[string]*catalog.Content{}
	var rows []agreement
	var count struct{ namespaces, agreed, differs, mismatched, skipped int }
	for _, file := range files {
		for _, p := range readProblems(t, file) {
			count.namespaces += len(p.Expect.Namespaces)
			x, ok := p.index(t, corpora)
			if !ok {
				count.skipped += len(p.Expect.Namespaces)
				continue
			}
			got := p.solve(t, x)
			for _, want := range p.Expect.Namespaces {
				row, fault := p.compareAnswer(t, want, got[want.Namespace], table)
				rows = append(rows, row)
				switch {
				case fault != "":
					count.mismatched++
					line, err := json.Marshal(map[string]any{"id": p.ID, "namespace": want.Namespace, "fault": fault, "expected": want.asAnswer(&p), "got": got[want.Namespace]})
					if err != nil {
						t.Fatal(err)
					}
					t.Errorf("%s", line)
				case row.verdict == agreed:
					count.agreed++
				default:
					count.differs++
				}
			}
		}
	}
	checkAgreements(t, table, rows, count.skipped)
	t.Logf("%d namespaces: %d agreed, %d differ for a reason, %d mismatches, %d skipped without QUAYSIDE_CORPUS",
		count.namespaces, count.agreed, count.differs, count.mismatched, count.skipped)
}

func readProblems(t *testing.T, file string) []problem {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []problem
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var p problem
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// asAnswer converts OLM's result to an answer. It omits bundles that OLM plans again although they are already
// installed.
func (e *expectation) asAnswer(p *problem) answer {
	a := answer{Outcome: e.Outcome, Installed: []string{}}
	for _, i := range e.Installed {
		if len(i.Subscriptions) == 0 {
			continue // bundles without a subscription have no pin
		}
		subs := slices.Clone(i.Subscriptions)
		slices.Sort(subs)
		a.Installed = append(a.Installed, fmt.Sprintf("%s %s", i.CSV, strings.Join(subs, ",")))
	}
	for i, hop := range e.Hops {
		hop = slices.Sorted(slices.Values(hop))
		if i == 0 {
			hop = slices.DeleteFunc(hop, func(csv string) bool { return p.wasInstalled(e.Namespace, csv) })
		}
		if len(hop) > 0 {
			a.Rounds = append(a.Rounds, hop)
		}
	}
	for _, g := range e.Generated {
		a.Generated = append(a.Generated, fmt.Sprintf("%s %s %s %s", g.Name, g.Package, g.Channel, catalog.ID{Namespace: g.SourceNamespace, Name: g.Source}))
	}
	slices.Sort(a.Installed)
	slices.Sort(a.Generated)
	return a
}

// checkEndless checks an answer to a problem for which OLM does not terminate. The first rounds must equal
// OLM's rounds before its first downgrade. The bundles that OLM plans again and again must be installed. It
// returns the error, or "".
func (e *expectation) checkEndless(p *problem, got answer) string {
	want := e.asAnswer(p).Rounds
	if at, _ := p.firstDowngrade(*e); at >= 0 {
		want = want[:min(at, len(want))]
	}
	switch {
	case got.Outcome != "fixpoint":
		return "a conflict where OLM finds an answer"
	case !e.Nondeterministic && (len(got.Rounds) < len(want) || !slices.EqualFunc(want, got.Rounds[:len(want)], slices.Equal)):
		return "other rounds"
	}
	for _, i := range e.PendingInstall {
		if !slices.ContainsFunc(got.Installed, func(have string) bool { return strings.HasPrefix(have, i.CSV+" ") }) {
			return i.CSV + " is not installed, which OLM plans for ever"
		}
	}
	return ""
}

// wasInstalled reports whether a subscription had the ClusterServiceVersion installed.
func (p *problem) wasInstalled(ns, csv string) bool {
	asked, there := false, false
	for _, raw := range p.Objects {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Status   struct{ InstalledCSV string }
		}
		if json.Unmarshal(raw, &o) != nil || o.Metadata.Namespace != ns {
			continue
		}
		asked = asked || o.Kind == "Subscription" && o.Status.InstalledCSV == csv
		there = there || o.Kind == "ClusterServiceVersion" && o.Metadata.Name == csv
	}
	return asked && there
}

// terminates reports whether OLM's resolution terminates without an error.
func (e *expectation) terminates() bool { return e.Outcome == "fixpoint" || e.Outcome == "unsat" }

// check returns the error in got, or "". If OLM has an answer, got must agree with it. If OLM fails or does not
// terminate, failures must be isolated (rule 4 of the package comment), nothing may be downgraded (rule 5), and
// the bundles in OLM's endless loop must be installed. In every case, got must be sound.
func (e *expectation) check(p *problem, got answer) string {
	switch e.Outcome {
	case "unsat":
		if got.Outcome != "conflict" {
			return "no conflict where OLM finds none satisfiable"
		}
		return cmp.Or(e.checkConflict(got), got.fault)
	case "error":
		return cmp.Or(e.checkError(p, got), got.fault)
	case "cycle", "stuck":
		return cmp.Or(e.checkEndless(p, got), got.fault)
	}
	switch {
	case got.Outcome != "fixpoint":
		return "a conflict where OLM finds an answer"
	case got.fault != "":
		return got.fault
	case e.Nondeterministic:
		return e.checkAlternatives(p, got)
	}
	return e.asAnswer(p).differs(got)
}

// checkAlternatives checks an answer to a problem for which OLM has several possible answers. The bundles must
// be those of one of these answers. The subscriptions are known only for the answer in Installed, so they are
// compared only with this answer. It returns the error, or "".
func (e *expectation) checkAlternatives(p *problem, got answer) string {
	want := e.asAnswer(p)
	want.Rounds = got.Rounds
	if slices.Equal(csvs(want.Installed), csvs(got.Installed)) {
		return want.differs(got)
	}
	names := csvs(got.Installed)
	free := map[string]bool{}
	for _, i := range e.Installed {
		free[i.CSV] = len(i.Subscriptions) == 0
	}
	for _, alt := range e.Alternatives {
		want := slices.DeleteFunc(slices.Clone(alt.Installed), func(csv string) bool { return free[csv] })
		slices.Sort(want)
		if slices.Equal(want, names) {
			return ""
		}
	}
	return "none of the alternatives"
}
