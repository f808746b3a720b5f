package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

func TestJournalOf(t *testing.T) {
	for file, want := range map[string]string{
		"adopt-plan.yaml": "adopt-plan.journal", "dir/vault.yml": "dir/vault.journal", "a.b.yaml": "a.b.journal",
		".yaml": "", "": "",
	} {
		got, err := journalOf(file)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", file, got, err)
		}
	}
}

// TestFailedProbes checks the exit code of runs whose steps are done: failed probes count as differences.
func TestFailedProbes(t *testing.T) {
	o := &adoptRunOptions{}
	if err := o.resultError(&run.Progress{Probes: []verify.ProbeResult{{Probes: 9}}}, nil); err != nil {
		t.Error(err)
	}
	var differs *workspace.DiffersError
	err := o.resultError(&run.Progress{Probes: []verify.ProbeResult{{Probes: 9, Failures: 2}, {Probes: 9, Failures: 1}}}, nil)
	if !errors.As(err, &differs) || !strings.Contains(err.Error(), "3 probes failed") {
		t.Errorf("got error %v", err)
	}
}

func TestNotesOn(t *testing.T) {
	for _, c := range []struct {
		op   plan.Operator
		want []string
	}{
		{plan.Operator{Namespace: "a", Package: "x", CSV: "x.v1"}, nil},
		{plan.Operator{Restarts: []string{"d", "e"}}, []string{"the pods of d, e restart"}},
		{plan.Operator{Detached: true, Losses: []string{"OperatorCondition x"}, Certificates: "2028-07-01"}, []string{"no longer managed by OLM", "deleted and recreated: OperatorCondition x", "expire on 2028-07-01"}},
	} {
		got := operatorNotes(c.op)
		for i := range min(len(got), len(c.want)) {
			if strings.Contains(got[i], c.want[i]) {
				got[i] = c.want[i]
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got)\n%s", c.op, d)
		}
	}
}
