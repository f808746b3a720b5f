package plan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// TestSharedCRD runs one plan for two namespaces with the same operator. The CRD has the labels of both
// operators. No object of kind Operator may remain or be recreated by OLM.
func TestSharedCRD(t *testing.T) {
	crd := k8s.New(crdV1, "CustomResourceDefinition", "", "xs.example.com")
	crd["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"kind": "X", "plural": "xs"}, "scope": "Namespaced", "versions": []any{}}
	labelled := k8s.With(crd, any(map[string]any{"olm.managed": "true", olm + "/x.a": "", olm + "/x.b": ""}), "metadata", "labels")
	live := slices.Concat(newInstallation("a"), newInstallation("b"), newOLM(), []k8s.Object{labelled, k8s.New("v1", "Namespace", "", "olm")})
	p := makePlan(t, plan.Stopped, live, []k8s.Object{crd}, "a", "b")
	c := runtest.New(withUIDs(live)...)
	c.OLM = true
	c.Settle()
	journal, err := run.OpenJournal(&runtest.Files{}, p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Run(context.Background(), run.Input{
		Plan: p, Rendered: append(accounts([]string{"a", "b"}), crd), Cluster: c, Journal: journal, Clock: &runtest.Clock{Cluster: c}, Prompter: yes{}, CleanUp: true, SyncDelay: 15 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.AdvanceTime(time.Hour)
	for _, name := range []string{"x.a", "x.b"} {
		if c.Object(k8s.Ref{APIVersion: olm + "/v1", Kind: "Operator", Name: name}) != nil {
			t.Errorf("the Operator %s still exists", name)
		}
	}
	if o := c.Object(k8s.RefTo(crd)); k8s.Text(o, "metadata", "uid") == "" || k8s.Text(o, "metadata", "labels", "olm.managed") != "true" || len(k8s.Map(o, "metadata", "labels")) != 1 {
		t.Errorf("the CRD is %v", o)
	}
}

// yes confirms everything.
type yes struct{}

func (yes) ConfirmStep(context.Context, plan.Step) (bool, error)       { return true, nil }
func (yes) ConfirmManualStep(context.Context, plan.Step) (bool, error) { return true, nil }
func (yes) ReportAction(plan.Step, run.ActionResult)                   {}
func (yes) ReportWaiting(plan.Step, []verify.Finding)                  {}
func (yes) ReportOLM(plan.Step, bool)                                  {}
func (yes) ReportProbing(time.Duration)                                {}
