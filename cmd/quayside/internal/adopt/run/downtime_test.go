package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/k8s"
)

// newFleetScene returns a scene with the operator in two namespaces, ops and db. The plan stops OLM only once
// for both namespaces.
func newFleetScene(t testing.TB) *scene {
	t.Helper()
	s := newScene(t)
	sub, csv := newRef(olmV1alpha1, "Subscription", "db", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "db", csvName)
	deploy := newRef("apps/v1", "Deployment", "db", "etcd")
	fields := deployment("db", "etcd", 1, map[string]any{"app": "etcd"}, csvName)
	owned := deployment("db", "etcd", 1, map[string]any{"app": "etcd"}, csvName)
	owned["metadata"].(map[string]any)["ownerReferences"] = ownerReferences(csvName, "u-csv-db")
	for _, o := range []k8s.Object{
		newUIDObject("v1", "Namespace", "", "db", "u-db", nil),
		newUIDObject(olmV1alpha1, "Subscription", "db", "etcd", "u-sub-db", nil),
		newUIDObject(olmV1alpha1, "ClusterServiceVersion", "db", csvName, "u-csv-db", map[string]any{
			"metadata": map[string]any{"finalizers": []any{cleanup}}, "status": map[string]any{"phase": "Succeeded"},
		}),
		newUIDObject("apps/v1", "Deployment", "db", "etcd", "u-deploy-db", owned),
	} {
		s.cluster.Put(o)
	}
	s.cluster.Settle()
	s.cluster.Events()
	s.rendered = append(s.rendered, k8s.Without(newUIDObject("apps/v1", "Deployment", "db", "etcd", "", fields), "metadata", "uid"))
	s.plan.Operators = append(s.plan.Operators, plan.Operator{Namespace: "db", Package: "etcd", CSV: csvName})
	var steps []plan.Step
	for _, step := range s.plan.Steps {
		steps = append(steps, step)
		switch step.Name {
		case plan.Backup:
			steps = append(steps, plan.Step{Name: plan.Backup, Namespace: "db", Title: "back up", Actions: []plan.Action{
				{Do: plan.Save, Object: sub, UID: "u-sub-db"}, {Do: plan.Save, Object: csv, UID: "u-csv-db"}, {Do: plan.Save, Object: deploy, UID: "u-deploy-db"},
			}})
		case plan.Tree:
			steps = append(steps, plan.Step{Name: plan.Detach, Namespace: "db", Title: "detach", Before: []plan.Check{{Check: plan.Succeeded}, {Check: plan.IsStopped}}, Actions: []plan.Action{
				{Do: plan.Orphan, Object: sub, UID: "u-sub-db"},
				{Do: plan.Unfinalize, Object: csv, UID: "u-csv-db", Finalizer: cleanup},
				{Do: plan.Orphan, Object: csv, UID: "u-csv-db"},
			}, After: []plan.Check{{Check: plan.Deleted}, {Check: plan.NoOwner}, {Check: plan.SameUID}}}, plan.Step{Name: plan.Tree, Namespace: "db", Title: "tree", Actions: []plan.Action{
				{Do: plan.Apply, Object: deploy, UID: "u-deploy-db", Force: true},
			}, After: []plan.Check{{Check: plan.IsReady, Objects: []k8s.Ref{deploy}}, {Check: plan.SameUID}, {Check: plan.NoRestart}}})
		default:
		}
	}
	for i := range steps {
		steps[i].Number = i + 1
	}
	s.plan.Steps = steps
	return s
}

// countStarts returns a counter that counts the starts of OLM from now on.
func countStarts(s *scene) *int {
	n := 0
	s.cluster.Before = func(c runtest.Call) error {
		if c.Verb == "patch" && c.Object.Name == "olm-operator" && plan.Replicas(s.cluster.Object(c.Object)) == 0 {
			n++
		}
		return nil
	}
	return &n
}

// TestOneStop checks that OLM is stopped once for two namespaces, and that the downtime of OLM is measured.
func TestOneStop(t *testing.T) {
	s := newFleetScene(t)
	n := countStarts(s)
	res, err := s.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *n != 1 || res.Downtime <= 0 || res.Downtime > 30_000 {
		t.Errorf("OLM was started %d times, after %d ms", *n, res.Downtime)
	}
}

// TestDowntimeIsLimited keeps the pods of one namespace from becoming ready for minutes. Meanwhile OLM must be
// started again. For the other namespace, it must be stopped again. Nothing may be lost.
func TestDowntimeIsLimited(t *testing.T) {
	s := newFleetScene(t)
	deploy := newRef("apps/v1", "Deployment", "ops", "etcd")
	for i, step := range s.plan.Steps {
		if step.Name == plan.Tree && step.Namespace == "ops" {
			s.plan.Steps[i].After = append([]plan.Check{{Check: plan.IsReady, Objects: []k8s.Ref{deploy}}}, step.After...)
		}
	}
	n, slow := countStarts(s), &slowPods{s.cluster, s.clock, s.clock.Now().Add(5 * time.Minute)}
	res, err := s.run(t, func(in *run.Input) { in.Cluster = slow })
	if err != nil {
		t.Fatal(err)
	}
	if *n != 2 || res.Downtime > 75_000 {
		t.Errorf("OLM was started %d times, after %d ms", *n, res.Downtime)
	}
	for _, at := range []k8s.Ref{deploy, newRef("apps/v1", "Deployment", "db", "etcd")} {
		if s.cluster.Object(at) == nil {
			t.Errorf("%s was deleted", at)
		}
	}
}

// TestStopIsRefused checks that OLM stays stopped while a detach is unfinished, and that the run reports the
// detach step.
func TestStopIsRefused(t *testing.T) {
	s := newFleetScene(t)
	s.cluster.Before = func(c runtest.Call) error {
		if c.Verb == "delete" && c.Object.Kind == "ClusterServiceVersion" {
			return context.Canceled
		}
		return nil
	}
	asked := &quiet{}
	res, err := s.run(t, func(in *run.Input) { in.Prompter = asked })
	if err == nil || len(res.Stopped) != 2 || len(asked.held) != 1 || asked.held[0] != plan.Detach {
		t.Fatalf("%v, stopped %v, held by %v", err, res.Stopped, asked.held)
	}
	s.cluster.Before = nil
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
}

// slowPods is a cluster in which no Deployment in the namespace ops has ready pods until a given time.
type slowPods struct {
	*runtest.Cluster
	clock *runtest.Clock
	until time.Time
}

func (s *slowPods) Get(ctx context.Context, at k8s.Ref) (k8s.Object, error) {
	o, err := s.Cluster.Get(ctx, at)
	if at.Kind == "Deployment" && at.Namespace == "ops" && s.clock.Now().Before(s.until) {
		o = k8s.Without(o, "status", "readyReplicas")
	}
	return o, err
}

// TestDowntimeOfSingleSteps executes each step in a run of its own, with pauses. OLM must be stopped again for
// the second namespace.
func TestDowntimeOfSingleSteps(t *testing.T) {
	s := newFleetScene(t)
	n := countStarts(s)
	for _, step := range s.plan.Steps {
		if _, err := s.run(t, func(in *run.Input) { in.Only, in.MaxDowntime, in.Done = step.Number, time.Minute, manualSteps(s.plan) }); err != nil {
			t.Fatal(err)
		}
		if err := s.clock.Sleep(t.Context(), 2*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if *n < 2 {
		t.Errorf("OLM was started %d times", *n)
	}
}

// manualSteps returns the numbers of the manual steps.
func manualSteps(p *plan.Plan) []int {
	var out []int
	for _, s := range p.Steps {
		if s.Manual != "" {
			out = append(out, s.Number)
		}
	}
	return out
}
