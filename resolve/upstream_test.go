package resolve_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/resolve/explain"
)

// verdict compares quayside's result with the result of one of OLM's own tests.
type verdict struct {
	olm, here []string // after each round: bundles, "conflict" or "error"
	because   string   // the reason for a difference
	none      string   // the reason why the test cannot be compared
}

// TestGoldenUpstream runs the tests of OLM's resolver, transcribed to testdata/conformance/upstream.txt, and
// compares the results with upstream.tsv. Each difference must have a reason, and each reason a
// difference.
func TestGoldenUpstream(t *testing.T) {
	data, err := os.ReadFile("testdata/conformance/upstream.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := []string{"# test\tOLM\tquayside\tverdict\treason"}
	count := map[string]int{}
	seen := map[string]bool{}
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, script, _ := strings.Cut(part, "\n")
		if seen[name] {
			t.Errorf("duplicate test %s", name)
		}
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.run(script)
			outcome, fault := s.upstream.judge()
			if fault != "" {
				t.Errorf("OLM: %q, quayside: %q: %s", s.upstream.olm, s.upstream.here, fault)
			}
			count[outcome]++
			reason := s.upstream.because + s.upstream.none
			table = append(table, strings.Join([]string{name, strings.Join(s.upstream.olm, ", then "), strings.Join(s.upstream.here, ", then "), outcome, reason}, "\t"))
		})
	}
	goldentest.Compare(t, "testdata/conformance/upstream.tsv", []byte(strings.Join(table, "\n")+"\n"))
	requireText(t, "../docs/contributing/developing.md", fmt.Sprintf("| %d | %d | %d | `resolve/testdata/conformance/upstream.tsv` |", len(seen), count["agreed"], count["differs"]))
	t.Logf("%d tests of OLM's resolver: %d agreed, %d differ for a reason, %d have nothing to compare", len(seen), count["agreed"], count["differs"], count["none"])
}

// judge returns the outcome "agreed", "differs" or "none". The fault is the error in the test case, or "".
func (v verdict) judge() (outcome, fault string) {
	equal := slices.Equal(v.olm, v.here)
	switch {
	case len(v.olm) == 0 && v.none == "":
		return "none", "nothing is compared, and nothing says why"
	case len(v.olm) == 0:
		return "none", ""
	case v.none != "":
		return "none", "something is compared after all"
	case equal && v.because != "":
		return "agreed", "there is no difference to be argued"
	case equal:
		return "agreed", ""
	case v.because == "":
		return "differs", "nothing says why"
	}
	return "differs", ""
}

// round resolves another round with OLM's behavior, and records both answers.
func (s *scenario) round(olm string) {
	s.resolve([]string{"upgrade", "hops=1", "warn", "overlap"})
	here := strings.Join(s.pins(), " ")
	var conflicts explain.Conflicts
	switch {
	case errors.As(s.err, &conflicts):
		here = "conflict"
	case s.err != nil:
		here = "error"
	}
	s.upstream.olm, s.upstream.here = append(s.upstream.olm, olm), append(s.upstream.here, here)
}

// requireText checks that a file contains a text.
func requireText(t *testing.T, file, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), text) {
		t.Errorf("%s does not contain %q", file, text)
	}
}
