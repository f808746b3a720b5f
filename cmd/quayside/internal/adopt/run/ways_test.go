package run_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// disturbance changes the cluster before a step.
type disturbance struct {
	do   func(c *runtest.Cluster)
	undo func(c *runtest.Cluster) // nil: it cannot be undone
}

func disturbances() map[string]disturbance {
	deploy, account := newRef("apps/v1", "Deployment", "ops", "etcd"), newRef("v1", "ServiceAccount", "ops", "etcd")
	sub, csv, operator := newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName), newRef("apps/v1", "Deployment", "olm", "olm-operator")
	edit := func(at k8s.Ref, change func(k8s.Object)) func(c *runtest.Cluster) {
		return func(c *runtest.Cluster) {
			if c.Object(at) != nil {
				c.Edit(at, change)
			}
		}
	}
	scale := func(n int64) func(c *runtest.Cluster) {
		return edit(operator, func(o k8s.Object) { k8s.Map(o, "spec")["replicas"] = n })
	}
	phase := func(phase string) func(c *runtest.Cluster) {
		return edit(csv, func(o k8s.Object) { k8s.Map(o, "status")["phase"] = phase })
	}
	channel := func(channel string) func(c *runtest.Cluster) {
		return edit(sub, func(o k8s.Object) { k8s.Map(o, "spec")["channel"] = channel })
	}
	more := k8s.With(k8s.New(rbacV1, "ClusterRoleBinding", "", "more"), map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "olm-etcd-cluster"}, "roleRef")
	more["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "etcd", "namespace": "ops"}}
	forbid := func(c *runtest.Cluster) {
		c.Before = func(call runtest.Call) error {
			if !call.Writes() {
				return nil
			}
			status := apierrors.NewForbidden(schema.GroupResource{}, call.Object.Name, errors.New("no"))
			return &cluster.RequestError{Verb: call.Verb, Object: call.Object, Err: status}
		}
	}
	return map[string]disturbance{
		"writes are forbidden":       {forbid, func(c *runtest.Cluster) { c.Before = nil }},
		"none":                       {func(*runtest.Cluster) {}, func(*runtest.Cluster) {}},
		"more permissions":           {func(c *runtest.Cluster) { c.Put(more) }, func(c *runtest.Cluster) { c.Remove(k8s.RefTo(more)) }},
		"permissions for ever":       {func(c *runtest.Cluster) { c.Put(more) }, nil},
		"not healthy":                {phase("Failed"), phase("Succeeded")},
		"another channel":            {channel("beta"), channel("stable")},
		"OLM was started":            {scale(1), nil},
		"an account was deleted":     {func(c *runtest.Cluster) { c.Remove(account) }, nil},
		"the Deployment was deleted": {func(c *runtest.Cluster) { c.Remove(deploy) }, nil},
		"the Deployment was recreated": {func(c *runtest.Cluster) {
			o := k8s.Copy(c.Object(deploy))
			c.Remove(deploy)
			c.Put(k8s.With(o, any("another"), "metadata", "uid"))
		}, nil},
	}
}

// TestNoDeadEnd disturbs the cluster before each step, or declines the step. If the run stops, it must list the
// ways to continue. Each of them must work: undoing the disturbance, skipping, and reverting.
func TestNoDeadEnd(t *testing.T) {
	stops := 0
	for name, d := range disturbances() {
		for number := range thePlan().Steps {
			if testing.Short() && number%2 == 1 || number == 0 || thePlan().Steps[number-1].Manual != "" || number == 1 && strings.Contains(name, "permissions") { // granted before the first observation
				continue
			}
			stop := func() (*scene, []run.Way, error) {
				s := newBackScene(t)
				asked := &quiet{}
				if name == "none" {
					asked.no = number
				}
				res, err := s.run(t, func(in *run.Input) {
					in.Prompter = &meddler{quiet: *asked, at: s.plan.Steps[number-1].Name, do: func() { d.do(s.cluster); s.cluster.Settle() }}
				})
				return s, res.Ways, err
			}
			_, ways, err := stop()
			if err == nil {
				continue
			}
			stops++
			where := fmt.Sprintf("%s before step %d", name, number)
			if d.undo == nil {
				ways = slices.DeleteFunc(ways, func(w run.Way) bool { return w == run.Continue && name != "OLM was started" })
			}
			if len(ways) == 0 {
				t.Errorf("%s: no way to continue: %v", where, err)
			}
			for _, way := range ways {
				s, _, first := stop()
				var err error
				switch way {
				case run.Continue:
					if d.undo != nil {
						d.undo(s.cluster)
					}
					_, err = s.run(t, nil)
				case run.Skip:
					for range len(s.plan.Steps) {
						if _, err = s.run(t, func(in *run.Input) { in.Skip = "intended" }); err == nil {
							break
						}
					}
				case run.Revert:
					s.cluster.Before = nil
					_, err = s.back(t)
				case run.NewPlan:
					if j, _ := run.OpenJournal(s.files, s.plan); j.HasStarted() {
						t.Errorf("%s: a step has begun", where)
					}
				}
				if err != nil {
					t.Errorf("%s, stopped by %v: %s: %v", where, first, way, err)
				}
			}
		}
	}
	if stops < 30 {
		t.Errorf("only %d stops", stops)
	}
}

// TestSkipIsRecorded checks that a skipped finding stops neither this run nor later runs. The reason must be in
// the journal. Findings of the next step must still stop the run.
func TestSkipIsRecorded(t *testing.T) {
	account, deploy := newRef("v1", "ServiceAccount", "ops", "etcd"), newRef("apps/v1", "Deployment", "ops", "etcd")
	s := newBackScene(t)
	if _, err := s.run(t, func(in *run.Input) {
		in.Prompter = &meddler{at: plan.Restart, do: func() { s.cluster.Remove(account) }}
	}); err == nil || !strings.Contains(err.Error(), "ServiceAccount ops/etcd no longer exists") {
		t.Fatalf("the missing account was not detected: %v", err)
	}
	res, err := s.run(t, func(in *run.Input) {
		in.Skip = "not used"
		in.Prompter = &meddler{at: plan.Fields, do: func() { s.cluster.Remove(deploy) }}
	})
	if err == nil || !strings.Contains(err.Error(), "Deployment ops/etcd was deleted") || strings.Contains(err.Error(), "ServiceAccount") || res.Steps[7].State != run.Done {
		t.Fatalf("%v: %v", err, res.Steps)
	}
	entries := s.journal(t)
	if !slices.ContainsFunc(entries, func(e run.Entry) bool {
		return e.Event == run.Skipped && e.Message == "not used" && e.Finding.Object == account
	}) {
		t.Errorf("the journal has %+v", entries)
	}
}

// TestSkipIsOfOnePermission skips the finding about a gained permission. A permission that the same account
// gains later must still stop the run.
func TestSkipIsOfOnePermission(t *testing.T) {
	s := newBackScene(t)
	grant := func(verb string) func() {
		return func() {
			role, binding := k8s.New(rbacV1, "ClusterRole", "", verb), k8s.New(rbacV1, "ClusterRoleBinding", "", verb)
			role["rules"] = []any{map[string]any{"apiGroups": k8s.Values(""), "resources": k8s.Values("configmaps"), "verbs": k8s.Values(verb)}}
			binding["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": verb}
			binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "etcd", "namespace": "ops"}}
			s.cluster.Put(role)
			s.cluster.Put(binding)
		}
	}
	if _, err := s.run(t, func(in *run.Input) { in.Prompter = &meddler{at: plan.Tree, do: grant("list")} }); err == nil || !strings.Contains(err.Error(), "list configmaps") {
		t.Fatal(err)
	}
	_, err := s.run(t, func(in *run.Input) { in.Skip, in.Prompter = "known", &meddler{at: plan.Fields, do: grant("delete")} })
	var step *run.StepError
	if !errors.As(err, &step) || step.Step.Name != plan.Fields || !strings.Contains(err.Error(), "delete configmaps") {
		t.Fatal(err)
	}
}
