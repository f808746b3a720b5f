package run_test

import (
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/internal/k8s"
)

// TestRun adopts an operator step by step, and checks that only objects of OLM are lost.
func TestRun(t *testing.T) {
	s := newScene(t)
	res, err := s.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range res.Steps {
		want := run.Done
		if step.Name == plan.Certificates {
			want = run.Waiting
		}
		if step.State != want {
			t.Errorf("step %d: %s", step.Number, step.State)
		}
	}
	for _, gone := range []k8s.Ref{
		newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName),
		newRef(olmV1alpha1, "ClusterServiceVersion", "team-a", csvName), newRef(rbacV1, "Role", "team-a", "olm-etcd"), newRef(rbacV1, "ClusterRole", "", "olm-etcd-cluster"),
	} {
		if s.cluster.Object(gone) != nil {
			t.Errorf("%s still exists", gone)
		}
	}
	d := s.cluster.Object(newRef("apps/v1", "Deployment", "ops", "etcd"))
	if k8s.Text(d, "metadata", "uid") != "u-deploy" || len(k8s.List(d, "metadata", "ownerReferences")) > 0 || k8s.Text(d, "metadata", "labels", "olm.managed") != "" {
		t.Errorf("%v", d["metadata"])
	}
	if labels := k8s.Map(s.cluster.Object(newRef("v1", "ServiceAccount", "ops", "etcd")), "metadata", "labels"); labels["olm.managed"] != "true" || len(labels) != 1 {
		t.Errorf("leftover OLM labels: %v", labels)
	}
	if o := s.cluster.Object(newRef(rbacV1, "Role", "team-a", "etcd")); o == nil {
		t.Error("the role of the tree is missing")
	}
	if res, err = s.run(t, nil); err != nil || res.Steps[0].State != run.AlreadyDone {
		t.Errorf("again: %v %v", err, res.Steps[0])
	}
	for _, e := range s.cluster.Events() {
		if e.By == "gc" && e.What == "deleted" {
			t.Errorf("the garbage collector deleted %s", e.Key)
		}
	}
}

// TestGuardIsApplied checks that an object is applied with the content of the tree, except that the annotations
// of the plan replace those of the tree.
func TestGuardIsApplied(t *testing.T) {
	const prune = "argocd.argoproj.io/sync-options"
	s := newScene(t)
	for i, o := range s.rendered {
		if o.Kind() == "ServiceAccount" {
			s.rendered[i] = k8s.Annotate(o, map[string]string{prune: "Prune=confirm", "example.com/other": "tree"})
		}
	}
	for _, step := range s.plan.Steps {
		for i, a := range step.Actions {
			if a.Do == plan.Apply && a.Object.Kind == "ServiceAccount" {
				step.Actions[i].Set = map[string]string{prune: "Prune=false"}
			}
		}
	}
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
	got := k8s.TextMap(s.cluster.Object(newRef("v1", "ServiceAccount", "ops", "etcd")), "metadata", "annotations")
	if got[prune] != "Prune=false" || got["example.com/other"] != "tree" {
		t.Errorf("got %v", got)
	}
}

// TestCleanUpIsOptional checks that a run ends before the clean-up unless CleanUp is set.
func TestCleanUpIsOptional(t *testing.T) {
	s := newScene(t)
	for _, asked := range []bool{false, false, true} {
		res, err := s.run(t, func(in *run.Input) { in.CleanUp = asked })
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]run.State{false: run.Waiting, true: run.Done}[asked]
		if got := res.Steps[9].State; got != want || res.Steps[9].Name != plan.CleanUp {
			t.Errorf("CleanUp %v: %s is %s, want %s", asked, res.Steps[9].Name, got, want)
		}
		if there := s.cluster.Object(newRef(rbacV1, "ClusterRole", "", "olm-etcd-cluster")) != nil; there == asked {
			t.Errorf("CleanUp %v: the leftover object exists: %v", asked, there)
		}
	}
}
