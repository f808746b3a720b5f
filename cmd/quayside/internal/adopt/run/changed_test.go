package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// meddler confirms everything, and changes the cluster before a step.
type meddler struct {
	quiet
	at plan.StepKind
	do func()
}

func (m *meddler) ConfirmStep(ctx context.Context, s plan.Step) (bool, error) {
	if s.Name == m.at {
		m.do()
	}
	return m.quiet.ConfirmStep(ctx, s)
}

// TestChangedByOthers changes the cluster before a step. The run must stop at this step and delete nothing
// else. The error must contain the problem and its solution.
func TestChangedByOthers(t *testing.T) {
	sub, csv := newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName)
	operator := newRef("apps/v1", "Deployment", "olm", "olm-operator")
	scale := func(c *runtest.Cluster, n int64) {
		c.Edit(operator, func(o k8s.Object) { o["spec"].(map[string]any)["replicas"] = n })
		c.Settle()
	}
	again := func(c *runtest.Cluster, at k8s.Ref) {
		o := k8s.Copy(c.Object(at))
		c.Remove(at)
		c.Put(k8s.With(o, any("another"), "metadata", "uid"))
	}
	for _, tc := range []struct {
		name    string
		at      plan.StepKind
		do      func(c *runtest.Cluster)
		want    string
		stopped bool // whether OLM is stopped afterwards: it is started again unless a detach is unfinished
	}{
		{"recreated", plan.Guard, func(c *runtest.Cluster) { again(c, sub) }, "ops/etcd was deleted and recreated: UID u-sub, now another", false},
		{"gone", plan.Guard, func(c *runtest.Cluster) { c.Remove(sub) }, "Subscription.operators.coreos.com ops/etcd no longer exists\n\thint: undo the change in the cluster", false},
		{"another role of that name", plan.Prepare, func(c *runtest.Cluster) {
			c.Put(k8s.New(rbacV1, "Role", "team-a", "etcd"))
		}, "Role team-a/etcd was created after the plan was made, and not by kustomize-controller", false},
		{"not healthy", plan.Stop, func(c *runtest.Cluster) {
			c.Edit(csv, func(o k8s.Object) { o["status"] = map[string]any{"phase": "Failed"} })
		}, "is Failed, not Succeeded", false},
		{"an upgrade", plan.Stop, func(c *runtest.Cluster) {
			o := k8s.New(olmV1alpha1, "InstallPlan", "ops", "install-1")
			o["status"] = map[string]any{"phase": "Installing"}
			c.Put(o)
		}, "InstallPlan.operators.coreos.com ops/install-1 is Installing", false},
		{"more replicas", plan.Stop, func(c *runtest.Cluster) { scale(c, 2) }, "has 2 replicas, but had 1 when the plan was made", false},
		{"OLM runs again", plan.Detach, func(c *runtest.Cluster) { scale(c, 1) }, "olm-operator has 1 replicas", false},
		{"recreated, late", plan.Detach, func(c *runtest.Cluster) { again(c, csv) }, "was deleted and recreated", false},
		{"being deleted", plan.Detach, func(c *runtest.Cluster) {
			c.Edit(csv, func(o k8s.Object) {
				o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			})
		}, "is being deleted, but not by this plan: find the cause ('kubectl get -o yaml' shows its finalizers)", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t)
			res, err := s.run(t, func(in *run.Input) { in.Prompter = &meddler{at: tc.at, do: func() { tc.do(s.cluster) }} })
			var step *run.StepError
			if !errors.As(err, &step) || !step.Differs() || step.Step.Name != tc.at || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v", err)
			}
			if (len(res.Stopped) > 0) != tc.stopped || res.Error == "" {
				t.Errorf("stopped: %v, %q", res.Stopped, res.Error)
			}
			for _, e := range s.cluster.Events() {
				if e.What == "deleted" && e.By != "test" && e.Key != sub.Key() {
					t.Errorf("%s was deleted by %s", e.Key, e.By)
				}
			}
		})
	}
}

// TestChangedSincePlan changes a declaration of OLM or a pod template before the first step, or after OLM has
// stopped. The run must stop before it writes anything else, and OLM must run again. The error must contain the
// field, its previous and current values, and the remedy.
func TestChangedSincePlan(t *testing.T) {
	sub, deploy := newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef("apps/v1", "Deployment", "ops", "etcd")
	for _, at := range []plan.StepKind{plan.Guard, plan.Backup} {
		for want, change := range map[string]func(c *runtest.Cluster){
			`Subscription.operators.coreos.com ops/etcd was changed: spec.config: nothing, now {"resources":{}}`: func(c *runtest.Cluster) {
				c.Edit(sub, func(o k8s.Object) { k8s.Map(o, "spec")["config"] = map[string]any{"resources": map[string]any{}} })
			},
			`Subscription.operators.coreos.com ops/etcd was changed: spec.channel: "stable", now "beta"`: func(c *runtest.Cluster) {
				c.Edit(sub, func(o k8s.Object) { k8s.Map(o, "spec")["channel"] = "beta" })
			},
			`Deployment.apps ops/etcd was changed: spec.template.spec.containers[main].image: "example.com/ops/etcd:v1", now "other"`: func(c *runtest.Cluster) {
				c.Edit(deploy, func(o k8s.Object) { k8s.Items(o, "spec", "template", "spec", "containers")[0]["image"] = "other" })
			},
			"Deployment.apps ops/etcd no longer exists": func(c *runtest.Cluster) { c.Remove(deploy) },
		} {
			s := newScene(t)
			_, err := s.run(t, func(in *run.Input) {
				in.Prompter = &meddler{at: at, do: func() { change(s.cluster); s.cluster.Settle(); s.cluster.Events() }}
			})
			var step *run.StepError
			if !errors.As(err, &step) || !step.Differs() || step.Step.Name != at || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hint: undo the change in the cluster; or keep it: run 'quayside import --update'") {
				t.Errorf("%s: want %s, got %v", at, want, err)
			}
			for _, e := range s.cluster.Events() {
				if e.Key.Namespace != "olm" {
					t.Errorf("%s: %s was %s by %s", at, e.Key, e.What, e.By)
				}
			}
			if n := plan.Replicas(s.cluster.Object(s.plan.OLM[0].Object)); n != 1 {
				t.Errorf("%s: OLM has %d replicas", at, n)
			}
		}
	}
}

// TestChangeUndone changes a declaration after OLM has stopped, and undoes the change. The object then has its
// earlier content, but a higher generation. The run must continue.
func TestChangeUndone(t *testing.T) {
	s := newScene(t)
	set := func(channel string) {
		s.cluster.Edit(newRef(olmV1alpha1, "Subscription", "ops", "etcd"), func(o k8s.Object) { k8s.Map(o, "spec")["channel"] = channel })
		s.cluster.Settle()
	}
	set("beta")
	set("stable") // it has a generation
	if _, err := s.run(t, func(in *run.Input) { in.Prompter = &meddler{at: plan.Backup, do: func() { set("beta") }} }); err == nil {
		t.Fatal("the change was not noticed")
	}
	set("stable")
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
}

// TestOLMStartedMeanwhile scales OLM up between two deletions. The run must stop before the next deletion. A
// second run must stop OLM again and continue without losses.
func TestOLMStartedMeanwhile(t *testing.T) {
	s := newScene(t)
	operator := newRef("apps/v1", "Deployment", "olm", "olm-operator")
	s.cluster.After = func(c runtest.Call) error {
		if c.Verb == "delete" && c.Object.Kind == "Subscription" {
			s.cluster.Edit(operator, func(o k8s.Object) { o["spec"].(map[string]any)["replicas"] = int64(1) })
			s.cluster.Settle()
		}
		return nil
	}
	_, err := s.run(t, nil)
	if err == nil || !strings.Contains(err.Error(), "was started again: find the program that scales it, then repeat the command to stop it again") {
		t.Fatal(err)
	}
	if csv := s.cluster.Object(newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName)); !strings.Contains(strings.Join(k8s.Texts(csv, "metadata", "finalizers"), ""), cleanup) {
		t.Errorf("%v", csv)
	}
	s.cluster.After = nil
	if _, err = s.run(t, nil); err != nil {
		t.Fatal(err)
	}
}

// TestFinalizerComesBack restores OLM's finalizer as soon as it is removed, like a running OLM. The
// ClusterServiceVersion must still be deleted without OLM's clean-up.
func TestFinalizerComesBack(t *testing.T) {
	s := newScene(t)
	csv, left := newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName), 3
	s.cluster.After = func(c runtest.Call) error {
		if c.Verb == "patch" && c.Object.Key() == csv.Key() && left > 0 {
			left--
			s.cluster.Edit(csv, func(o k8s.Object) { o["metadata"].(map[string]any)["finalizers"] = []any{cleanup} })
		}
		return nil
	}
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if s.cluster.Object(newRef(rbacV1, "Role", "team-a", "etcd")) == nil || left > 0 {
		t.Error("the finalizer was not restored")
	}
}

// TestAnotherCluster checks the errors if the cluster, the journal or the steps do not belong to the plan.
func TestAnotherCluster(t *testing.T) {
	s := newScene(t)
	if _, err := s.run(t, func(in *run.Input) { in.Done = []int{77} }); err == nil || !strings.Contains(err.Error(), "no step 77") {
		t.Error(err)
	}
	if _, err := s.run(t, func(in *run.Input) { in.Only = 4 }); err == nil || !strings.Contains(err.Error(), "needs step 1 (guard)") {
		t.Error(err)
	}
	s.plan.ClusterUID = "elsewhere"
	if _, err := s.run(t, nil); err == nil || !strings.Contains(err.Error(), "the plan is for another cluster") {
		t.Error(err)
	}
	s = newScene(t)
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
	s.plan.Steps[0].Title = "another"
	if _, err := run.OpenJournal(s.files, s.plan); err == nil || !strings.Contains(err.Error(), "another plan") {
		t.Error(err)
	}
}

// TestFieldsOfOthers checks that a run stops if another manager owns a field, unless the plan forces the apply.
func TestFieldsOfOthers(t *testing.T) {
	s := newScene(t)
	for i := range s.plan.Steps {
		for j := range s.plan.Steps[i].Actions {
			s.plan.Steps[i].Actions[j].Force = false
		}
	}
	s.rendered[3] = k8s.With(s.rendered[3], any(int64(3)), "spec", "replicas")
	s.cluster.Before = func(c runtest.Call) error {
		if c.Verb == "apply" && c.Object.Kind == "Deployment" {
			cause := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "hpa"`, Field: ".spec.replicas"}
			return &cluster.RequestError{Verb: "apply", Object: c.Object, Err: apierrors.NewApplyConflict([]metav1.StatusCause{cause}, "conflict")}
		}
		return nil
	}
	if _, err := s.run(t, nil); err == nil || !strings.Contains(err.Error(), "conflict with other field managers: .spec.replicas is managed by hpa") {
		t.Error(err)
	}
}

// TestManual checks that a run stops at a blocking manual step until the user confirms that the step is done.
func TestManual(t *testing.T) {
	s := newScene(t)
	s.plan.Steps[0] = plan.Step{Number: 1, Name: plan.Suspend, Namespace: "ops", Title: "suspend", Manual: "Suspend it."}
	res, err := s.run(t, nil)
	var step *run.StepError
	if !errors.As(err, &step) || !step.Differs() || res.Steps[0].State != run.Waiting || res.Steps[1].State != run.Pending {
		t.Fatal(err)
	}
	if res, err = s.run(t, func(in *run.Input) { in.Done = []int{1} }); err != nil || res.Steps[0].State != run.Done {
		t.Fatal(err)
	}
}

// TestDeclined declines a step. The run must stop and start OLM again, because no detach is unfinished. A
// second run must stop OLM again and continue.
func TestDeclined(t *testing.T) {
	s := newScene(t)
	res, err := s.run(t, func(in *run.Input) { in.Prompter = &quiet{no: 4} })
	var step *run.StepError
	if !errors.As(err, &step) || !step.Differs() || len(res.Stopped) != 0 || res.Steps[3].State != run.Waiting {
		t.Fatalf("%v %v", err, res)
	}
	if n := plan.Replicas(s.cluster.Object(s.plan.OLM[0].Object)); n != 1 {
		t.Fatalf("OLM has %d replicas", n)
	}
	if _, err = s.run(t, nil); err != nil {
		t.Fatal(err)
	}
}

// TestInterrupted checks that an interrupted run ends after the current action.
func TestInterrupted(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.cluster.Before = func(c runtest.Call) error {
		if c.Verb == "patch" && c.Object.Kind == "ClusterServiceVersion" {
			cancel()
		}
		return nil
	}
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Run(ctx, run.Input{CleanUp: true, Plan: s.plan, Rendered: s.rendered, Cluster: s.cluster, Journal: j, Clock: s.clock, Prompter: &quiet{}})
	if err == nil || !strings.Contains(err.Error(), "step 5 (detach, ops): interrupted") || len(res.Stopped) != 2 {
		t.Fatal(err)
	}
	entries := s.journal(t)
	last := entries[len(entries)-2]
	if last.Event != run.Did || last.Do != plan.Unfinalize {
		t.Errorf("%+v", last)
	}
	s.cluster.Before = nil
	if _, err = s.run(t, nil); err != nil {
		t.Error(err)
	}
}

// TestDryRun checks that a dry run sends only dry-run requests, and changes neither cluster nor journal.
func TestDryRun(t *testing.T) {
	s := newScene(t)
	before := s.cluster.Objects()
	res, err := s.run(t, func(in *run.Input) { in.DryRun = true })
	if err != nil {
		t.Fatal(err)
	}
	if !k8s.Equal(asValues(before), asValues(s.cluster.Objects())) || len(s.cluster.Events()) > 0 {
		t.Error("the cluster was changed")
	}
	if data, err := s.files.Read("log.jsonl"); data != nil || err != nil {
		t.Errorf("a journal was written: %s", data)
	}
	outcomes := map[plan.Outcome]int{}
	for _, step := range res.Steps {
		for _, a := range step.Actions {
			outcomes[a.Outcome]++
		}
	}
	if outcomes[plan.DidCreate] != 2 || outcomes[plan.DidDelete] != 6 {
		t.Errorf("%v", outcomes)
	}
	if changes := res.Steps[0].Actions[0].Changes; len(changes) != 1 || !strings.Contains(changes[0].Path, "kustomize.toolkit.fluxcd.io/prune") {
		t.Errorf("%v", changes)
	}
}

func asValues(objects []k8s.Object) []any {
	var out []any
	for _, o := range objects {
		out = append(out, map[string]any(o))
	}
	return out
}
