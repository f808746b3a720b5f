package resolve_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/goldentest"
)

const (
	agreed  = "agreed"
	differs = "differs"

	agreements = "testdata/conformance/problems.tsv"
)

// agreement is a line of testdata/conformance/problems.tsv. It contains the answers of OLM and quayside for one
// namespace of a problem, the verdict, and the reason for a difference.
type agreement struct{ problem, namespace, olm, quayside, verdict, reason string }

func (a agreement) key() string { return a.problem + " " + a.namespace }

func (a agreement) line() string {
	return strings.Join([]string{a.problem, a.namespace, a.olm, a.quayside, a.verdict, a.reason}, "\t")
}

// acceptedReasons returns the reasons why quayside's answer may differ from OLM's. The key is a result of
// demandingRule or an outcome of OLM.
func acceptedReasons() map[string]string {
	return map[string]string{
		"error": "rule 4: an accident does not spread: what cannot be read is not used, and OLM stops resolving the namespace",
		"cycle": "rule 5: downgrades are not allowed, and OLM goes up and down for ever",
		"stuck": "rule 8: what is installed is what status.installedCSV names; OLM plans it again and again",
		"3":     "rule 3: OLM's answer depends on chance; this one is sound, and follows the documented order",
		"5":     "rule 5: downgrades are not allowed",
		"8":     "rule 8: what status.installedCSV names is installed, and what it replaced is gone: phases play no part",
		"15":    "rule 15: a preference that OLM loses is kept",
	}
}

// compareAnswer returns the new table line for one namespace. If the answers differ, the line needs a reason
// from a rule or from the old table. Without a reason, compareAnswer also returns a fault.
func (p *problem) compareAnswer(t *testing.T, want expectation, got answer, table map[string]agreement) (row agreement, fault string) {
	row = agreement{problem: p.ID, namespace: want.Namespace, olm: want.summary(p), quayside: "=", verdict: agreed}
	fault = want.check(p, got)
	if fault == "" && want.terminates() {
		return row, ""
	}
	row.olm, row.quayside, row.verdict = want.fullSummary(p), got.summary(), differs
	rule := p.demandingRule(t, want, got)
	was := table[row.key()]
	switch {
	case fault == "":
		row.reason = acceptedReasons()[want.Outcome]
	case rule != 0 && was.reason == "":
		row.reason = acceptedReasons()[fmt.Sprint(rule)]
	case was.olm == row.olm && was.quayside == row.quayside && got.fault == "":
		row.reason = was.reason
	case rule != 0:
		row.reason = acceptedReasons()[fmt.Sprint(rule)]
	}
	if row.reason != "" {
		return row, ""
	}
	return row, cmp.Or(fault, "nothing says why")
}

// summary returns OLM's outcome in a few words.
func (e *expectation) summary(p *problem) string {
	switch {
	case e.Outcome != "fixpoint":
		return map[string]string{"unsat": "conflict", "error": "error", "cycle": "no end", "stuck": "no end"}[e.Outcome]
	case !e.Nondeterministic:
		return cmp.Or(strings.Join(csvs(e.asAnswer(p).Installed), " "), "nothing")
	}
	return fmt.Sprintf("by chance, %d seen", max(len(e.Alternatives), 1))
}

// fullSummary returns OLM's outcome with the rounds and the generated subscriptions.
func (e *expectation) fullSummary(p *problem) string {
	if e.Outcome != "fixpoint" {
		return e.summary(p)
	}
	whole := e.asAnswer(p)
	if e.Nondeterministic {
		return e.summary(p) + ", one of them: " + whole.summary()
	}
	return whole.summary()
}

// summary returns an answer in one line.
func (a answer) summary() string {
	if a.Outcome != "fixpoint" {
		return a.Outcome
	}
	out := cmp.Or(strings.Join(a.Installed, ", "), "nothing")
	rounds := make([]string, len(a.Rounds))
	for i, r := range a.Rounds {
		rounds[i] = strings.Join(r, " ")
	}
	if len(rounds) > 0 {
		out += "; by way of " + strings.Join(rounds, ", ")
	}
	if len(a.Generated) > 0 {
		out += "; generated " + strings.Join(a.Generated, ", ")
	}
	return out
}

func readAgreements(t *testing.T) map[string]agreement {
	t.Helper()
	data, err := os.ReadFile(agreements)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]agreement{}
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 6 {
			t.Fatalf("%s: want six columns: %q", agreements, line)
		}
		a := agreement{f[0], f[1], f[2], f[3], f[4], f[5]}
		if (a.verdict == differs) != (a.reason != "") && !strings.HasPrefix(line, "#") {
			t.Errorf("%s: %s is %s, and the reason is %q", agreements, a.key(), a.verdict, a.reason)
		}
		out[a.key()] = a
	}
	return out
}

// checkAgreements compares rows with the table, or writes the table if the flag -update is set. The directory
// QUAYSIDE_CONFORMANCE may contain other problems than the table. If so, checkAgreements ignores the problems
// without a line, and the lines without a problem.
func checkAgreements(t *testing.T, table map[string]agreement, rows []agreement, skipped int) {
	t.Helper()
	lines := []string{"# problem\tnamespace\tOLM\tquayside\tverdict\treason"}
	count := map[string]int{}
	others := false
	for _, row := range rows {
		lines = append(lines, row.line())
		count[row.verdict]++
		was, known := table[row.key()]
		others = others || !known
		if known && was != row && !goldentest.Update() {
			t.Errorf("%s: -want +got, -update writes it:\n- %s\n+ %s", agreements, was.line(), row.line())
		}
	}
	switch {
	case goldentest.Update() && skipped > 0:
		t.Fatalf("%s can only be updated with all problems: set QUAYSIDE_CORPUS", agreements)
	case goldentest.Update():
		if err := os.WriteFile(agreements, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	case skipped == 0 && !others:
		there := func(key string) bool {
			return slices.ContainsFunc(rows, func(r agreement) bool { return r.key() == key })
		}
		for key := range table {
			if !strings.HasPrefix(key, "#") && !there(key) {
				t.Errorf("%s: there is no problem %s", agreements, key)
			}
		}
		requireText(t, "../docs/contributing/developing.md", fmt.Sprintf("| %d | %d | %d | `resolve/%s` |", len(rows), count[agreed], count[differs], agreements))
	}
}
