package inspect_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/k8s"
)

// checkReverts executes the plan of every dump. It stops after a random number of requests, at the latest
// before the first clean-up step, and reverts the plan. All previous objects must exist unchanged, with their
// UIDs. No object of the tree may remain. OLM must manage every operator again.
func checkReverts(t *testing.T, all fstest.MapFS) dumpCheck {
	random := rand.New(rand.NewPCG(5, 6))
	ways := 0
	each := func(file string, d clusterDump, rep *adopt.Inspection) {
		p, err := plan.Make(plan.Input{
			Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "kustomize-controller", Namespaces: d.sampleNamespaces(random),
		})
		check(t, err)
		if len(p.Operators) == 0 {
			return
		}
		s := newPlanRun(t, all[file].Data, d, p)
		before := comparableObjects(s.cluster)
		last := 0
		for _, step := range p.Steps {
			if step.Name == plan.CleanUp {
				break
			}
			last = step.Number
		}
		err = s.runToStep(last, 1+random.IntN(400))
		if err != nil && err != errKilled { //nolint:errorlint // never wrapped
			t.Errorf("%s: %v", file, err)
			return
		}
		if err := s.revert(); err != nil {
			t.Errorf("%s: revert: %v", file, err)
			return
		}
		ways++
		s.cluster.Settle()
		if diff := cmp.Diff(before, comparableObjects(s.cluster)); diff != "" {
			t.Errorf("%s: after the revert (-before +after):\n%s", file, diff)
		}
		for _, op := range p.Operators {
			csv := k8s.Ref{APIVersion: k8s.OLMGroup + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: op.Namespace, Name: op.CSV}
			if k8s.Text(s.cluster.Object(csv), "status", "phase") != "Succeeded" {
				t.Errorf("%s: %s is missing, or not Succeeded", file, csv)
			}
		}
	}
	return dumpCheck{each, func() { t.Log(ways, "clusters reverted") }}
}

// runToStep executes the steps up to last, or until n writing requests are sent.
func (s *planRun) runToStep(last, n int) error {
	cut := *s.plan
	cut.Steps = cut.Steps[:last]
	s.plan = &cut
	return s.runRequests(n)
}

// manualOperator stops and starts OLM in place of the user, because OLM's Deployments are not in the dumps.
type manualOperator struct {
	sayYes
	cluster *runtest.Cluster
}

// ConfirmManualStep performs a manual step that stops or starts OLM.
func (o manualOperator) ConfirmManualStep(_ context.Context, s plan.Step) (bool, error) {
	switch s.Name {
	case plan.Stop:
		o.cluster.OLM = false
	case plan.Start:
		o.cluster.OLM = true
	case plan.Restart:
		o.cluster.OLM = false
		o.cluster.Settle()
		o.cluster.OLM = true
	default:
	}
	o.cluster.Settle()
	return true, nil
}

// revert reverts the executed part of the plan.
func (s *planRun) revert() error {
	s.cluster.Before, s.cluster.After = nil, nil
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		return err
	}
	rev, log, err := j.PlanRevert(context.Background(), s.cluster, s.plan)
	if err != nil {
		return err
	}
	if err := j.SaveRevert(rev); err != nil {
		return err
	}
	var objects []k8s.Object
	for _, o := range rev.Objects {
		objects = append(objects, o)
	}
	_, err = run.Run(context.Background(), run.Input{
		Plan: rev.Plan, Rendered: objects, Cluster: s.cluster, Journal: log, Clock: &runtest.Clock{Cluster: s.cluster}, Prompter: s.say,
	})
	return err
}

// comparableObjects returns the objects that must be equal before and after a run with a revert. It omits
// objects that OLM recreates, ownerReferences, and fields that the API server sets.
func comparableObjects(c *runtest.Cluster) map[k8s.Key]k8s.Object {
	out := map[k8s.Key]k8s.Object{}
	for _, o := range c.Objects() {
		if o.Group() == k8s.OLMGroup && (o.Kind() == "ClusterServiceVersion" || o.Kind() == "Subscription" || o.Kind() == "InstallPlan") {
			continue
		}
		for _, field := range []string{"resourceVersion", "managedFields", "creationTimestamp", "generation", "ownerReferences"} {
			o = k8s.Without(o, "metadata", field)
		}
		for _, field := range []string{"labels", "annotations"} {
			if len(k8s.Map(o, "metadata", field)) == 0 {
				o = k8s.Without(o, "metadata", field)
			}
		}
		out[o.Key()] = k8s.Without(o, "status")
	}
	return out
}
