package resolve_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	agreed  = "agreed"
	differs = "differs"

	agreements = "testdata/conformance/problems.tsv"
)

// agreement is a line of the table: what OLM does with one namespace of a
// problem, and what quayside does.
type agreement struct{ problem, namespace, olm, here, verdict, reason string }

func (a agreement) key() string { return a.problem + " " + a.namespace }

func (a agreement) line() string {
	return strings.Join([]string{a.problem, a.namespace, a.olm, a.here, a.verdict, a.reason}, "\t")
}

// arguments returns why quayside answers otherwise, by the rule that byRule finds
// or by how OLM ends.
func arguments() map[string]string {
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

// agree returns the line of one namespace, and what is wrong with it: an answer
// that is not OLM's and that neither a rule nor the table argues for.
func (p *problem) agree(t *testing.T, want expectation, got answer, table map[string]agreement) (row agreement, fault string) {
	row = agreement{problem: p.ID, namespace: want.Namespace, olm: want.tell(p), here: "=", verdict: agreed}
	fault = want.check(p, got)
	if fault == "" && want.ends() {
		return row, ""
	}
	row.olm, row.here, row.verdict = want.tellWhole(p), got.tell(), differs
	rule := p.byRule(t, want, got)
	was := table[row.key()]
	switch {
	case fault == "":
		row.reason = arguments()[want.Outcome]
	case rule != 0 && was.reason == "":
		row.reason = arguments()[fmt.Sprint(rule)]
	case was.olm == row.olm && was.here == row.here && got.fault == "":
		row.reason = was.reason
	case rule != 0:
		row.reason = arguments()[fmt.Sprint(rule)]
	}
	if row.reason != "" {
		return row, ""
	}
	return row, cmp.Or(fault, "nothing says why")
}

// tell says in a few words what OLM ends with.
func (e *expectation) tell(p *problem) string {
	switch {
	case e.Outcome != "fixpoint":
		return map[string]string{"unsat": "conflict", "error": "error", "cycle": "no end", "stuck": "no end"}[e.Outcome]
	case !e.Nondeterministic:
		return cmp.Or(strings.Join(csvs(e.brief(p).Installed), " "), "nothing")
	}
	return fmt.Sprintf("by chance, %d seen", max(len(e.Alternatives), 1))
}

// tellWhole says it with the rounds, and with what was generated.
func (e *expectation) tellWhole(p *problem) string {
	if e.Outcome != "fixpoint" {
		return e.tell(p)
	}
	whole := e.brief(p)
	if e.Nondeterministic {
		return e.tell(p) + ", one of them: " + whole.tell()
	}
	return whole.tell()
}

// tell spells an answer in one line.
func (a answer) tell() string {
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

// checkAgreements holds the lines against the table, or writes it. Of problems
// that are not in it nothing is asked, and where there are such, none has to be
// there for each of its lines: then the problems are others.
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
		if known && was != row && !*update {
			t.Errorf("%s: -want +got, -update writes it:\n- %s\n+ %s", agreements, was.line(), row.line())
		}
	}
	switch {
	case *update && skipped > 0:
		t.Fatalf("%s is written of all problems: QUAYSIDE_CORPUS is needed", agreements)
	case *update:
		if err := os.WriteFile(agreements, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	case skipped == 0 && !others:
		there := func(key string) bool {
			return slices.ContainsFunc(rows, func(r agreement) bool { return r.key() == key })
		}
		for key := range table {
			if !strings.HasPrefix(key, "#") && !there(key) {
				t.Errorf("%s: %s is no problem", agreements, key)
			}
		}
		standsIn(t, "../docs/contributing/developing.md", fmt.Sprintf("| %d | %d | %d | `resolve/%s` |", len(rows), count[agreed], count[differs], agreements))
	}
}
