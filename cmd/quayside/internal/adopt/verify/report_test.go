package verify_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// verifyWorld returns the result of Verify for the only namespace of a world.
func verifyWorld(t *testing.T, w *world, known verify.KnownProgress) verify.Namespace {
	t.Helper()
	rep, err := verify.Verify(context.Background(), w, w.plan, known)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Namespaces) != 1 {
		t.Fatalf("%d namespaces", len(rep.Namespaces))
	}
	return rep.Namespaces[0]
}

// TestProgress checks after each step and within each step that Verify reports the correct progress. All checks
// must pass.
func TestProgress(t *testing.T) {
	w := newWorld()
	before := map[string]*verify.Evidence{"op": captureCluster(t, w.fakeCluster, w.plan)}
	ended := 0
	known := verify.KnownProgress{Before: before, Ended: func(step int) bool { return step <= ended }}
	holds := func(ns verify.Namespace, when string) {
		for _, v := range ns.Verdicts {
			if v.State != verify.Passed {
				t.Errorf("%s: %s %s: %v", when, v.Check, v.State, v.Findings)
			}
		}
	}
	holds(verifyWorld(t, w, known), "before")
	for _, s := range w.plan.Steps {
		if visible := s.Name == plan.Prepare || s.Name == plan.Detach || s.Name == plan.Tree; visible {
			half := s
			half.Actions = s.Actions[:2]
			w.do(half)
			ns := verifyWorld(t, w, known)
			if !ns.Partly || ns.Step != s.Number-1 || ns.Next != s.Number {
				t.Errorf("in the middle of step %d (%s): %+v", s.Number, s.Name, ns)
			}
			holds(ns, "in the middle of "+string(s.Name))
		}
		w.do(s)
		ended = s.Number
		ns := verifyWorld(t, w, known)
		if ns.Partly || ns.Step != s.Number || ns.Name != s.Name {
			t.Errorf("after step %d (%s): %+v", s.Number, s.Name, ns)
		}
		holds(ns, "after "+string(s.Name))
	}
}

// TestWithoutEvidence checks that UIDs are compared even if there is no evidence. Checks that need evidence
// must be unknown.
func TestWithoutEvidence(t *testing.T) {
	w := newWorld()
	w.updatePermissions()
	w.set(k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "op", Name: "d"}, "other", "metadata", "uid")
	states := map[plan.Condition]verify.State{}
	for _, v := range verifyWorld(t, w, verify.KnownProgress{}).Verdicts {
		states[v.Check] = v.State
	}
	for check, want := range map[plan.Condition]verify.State{
		plan.SameUID: verify.Failed, plan.Succeeded: verify.Passed, plan.Permissions: verify.Unknown, plan.Conversion: verify.Unknown, plan.NoRestart: verify.Unknown, plan.Available: verify.Unknown,
	} {
		if states[check] != want {
			t.Errorf("%s: %s, want %s", check, states[check], want)
		}
	}
	w.plan.ClusterUID = "other"
	if _, err := verify.Verify(context.Background(), w, w.plan, verify.KnownProgress{}); err == nil {
		t.Error("a plan for another cluster is accepted")
	}
}

// TestReplacedPods checks that a restarted pod gives a note but fails no check.
func TestReplacedPods(t *testing.T) {
	w := newWorld()
	known := verify.KnownProgress{Before: map[string]*verify.Evidence{"op": captureCluster(t, w.fakeCluster, w.plan)}}
	w.set(k8s.Key{Kind: "Pod", Namespace: "op", Name: "d-1-x"}, []any{map[string]any{"restartCount": int64(2)}}, "status", "containerStatuses")
	for _, v := range verifyWorld(t, w, known).Verdicts {
		if v.Check == plan.NoRestart && v.State == verify.Passed && len(v.Findings) == 1 && v.Findings[0].Note && v.Findings[0].Code == verify.PodRestarted {
			return
		}
	}
	t.Error("no note about the restarted pod")
}

// TestPlannedChanges checks that planned changes are no findings: pods restart in the step that applies the
// tree, and if OLM keeps running, an OperatorCondition is lost in the detach step.
func TestPlannedChanges(t *testing.T) {
	const detach, tree = 5, 6
	w := newWorld()
	before := captureCluster(t, w.fakeCluster, w.plan)
	d := k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "op", Name: "d"}
	w.set(d, "i:2", "spec", "template", "spec", "image")
	w.remove(k8s.Key{Group: olm, Kind: "OperatorCondition", Namespace: "op", Name: "x.v1"}, false)
	w.plan.Mode, w.plan.Operators[0].Restarts = plan.Live, []string{"d"}
	for step, want := range map[int][]string{
		detach - 1: {"missing OperatorCondition.operators.coreos.com op/x.v1", "permission-lost op", "template Deployment.apps op/d"},
		detach:     {"template Deployment.apps op/d"},
		tree:       {},
	} {
		got := findingCodes(changesSince(t, w.fakeCluster, w.plan, w.plan.Steps[step-1], before))
		got = slices.DeleteFunc(got, func(code string) bool { return strings.HasPrefix(code, "owner ") }) // nothing was detached
		if !slices.Equal(got, want) {
			t.Errorf("step %d: %q, want %q", step, got, want)
		}
	}
}
