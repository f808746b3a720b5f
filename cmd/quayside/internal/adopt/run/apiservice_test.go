package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// withoutSteps returns a plan without steps of some kinds.
func withoutSteps(p *plan.Plan, names ...plan.StepKind) *plan.Plan {
	out := *p
	out.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return slices.Contains(names, s.Name) })
	for i := range out.Steps {
		out.Steps[i].Number = i + 1
	}
	return &out
}

// TestAPIServices runs plans in both modes for an APIService with labels that name its ClusterServiceVersion.
// If the plan keeps the labels, OLM deletes the APIService at its next start, and the run must stop at this
// step. If the plan removes the labels, the APIService must survive every later restart of OLM.
func TestAPIServices(t *testing.T) {
	api := newRef("apiregistration.k8s.io/v1", "APIService", "", "v1.etcd.example.com")
	for _, mode := range []plan.Mode{plan.Stopped, plan.Live} {
		for _, disowned := range []bool{false, true} {
			s := newScene(t)
			if s.plan.Mode = mode; mode == plan.Live {
				s.plan = withoutSteps(s.plan, plan.Stop, plan.Start)
			}
			for i, step := range s.plan.Steps {
				s.plan.Steps[i].Before = slices.DeleteFunc(slices.Clone(step.Before), func(c plan.Check) bool { return mode == plan.Live && c.Check == plan.IsStopped })
				s.plan.Steps[i].Actions = slices.DeleteFunc(slices.Clone(step.Actions), func(a plan.Action) bool { return !disowned && a.Object == api })
				if step.Name == plan.Tree {
					s.rendered = append(s.rendered, k8s.New(api.APIVersion, api.Kind, "", api.Name))
					s.plan.Steps[i].Actions = append(s.plan.Steps[i].Actions, plan.Action{Do: plan.Apply, Object: api, UID: "u-api", Force: true})
				}
			}
			_, err := s.run(t, nil)
			if disowned != (err == nil) || err != nil && (!strings.Contains(err.Error(), "("+map[plan.Mode]string{plan.Stopped: "start", plan.Live: "restart"}[mode]+"): step done, but its postcondition failed") || !strings.Contains(err.Error(), "v1.etcd.example.com")) {
				t.Errorf("%s, disowned %v: %v", mode, disowned, err)
			}
			s.cluster.Edit(s.plan.OLM[0].Object, func(o k8s.Object) { o["spec"].(map[string]any)["replicas"] = int64(0) })
			s.cluster.Settle()
			s.cluster.Edit(s.plan.OLM[0].Object, func(o k8s.Object) { o["spec"].(map[string]any)["replicas"] = int64(1) })
			s.cluster.AdvanceTime(time.Minute)
			if there := s.cluster.Object(api) != nil; there != disowned {
				t.Errorf("%s, disowned %v: the APIService exists: %v", mode, disowned, there)
			}
		}
	}
}
