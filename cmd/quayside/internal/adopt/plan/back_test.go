package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// The objects of the test plan: OLM's objects, objects that OLM installed, and objects of the tree.
func sub() k8s.Ref {
	return k8s.Ref{APIVersion: olmV1alpha1, Kind: "Subscription", Namespace: "ops", Name: "etcd"}
}

func csv() k8s.Ref {
	return k8s.Ref{APIVersion: olmV1alpha1, Kind: "ClusterServiceVersion", Namespace: "ops", Name: "etcd.v1"}
}

func condition() k8s.Ref {
	return k8s.Ref{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition", Namespace: "ops", Name: "etcd.v1"}
}

func role() k8s.Ref {
	return k8s.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Namespace: "ops", Name: "ops.etcd"}
}

func webhook() k8s.Ref {
	return k8s.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "ops.etcd"}
}

func namespace(name string) k8s.Ref {
	return k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
}

// livePlan returns a plan in mode Live.
func livePlan() *plan.Plan {
	steps := []plan.Step{
		{Name: plan.Guard, Actions: []plan.Action{{Do: plan.Save, Object: namespace("ops"), UID: "n"}, {Do: plan.Annotate, Object: namespace("ops"), UID: "n", Set: map[string]string{"guard": "on", "both": "a,on"}}}},
		{Name: plan.Prepare, Actions: []plan.Action{{Do: plan.Apply, Object: namespace("fresh")}, {Do: plan.Apply, Object: role()}, {Do: plan.Apply, Object: webhook()}}},
		{Name: plan.Backup, Actions: []plan.Action{{Do: plan.Save, Object: condition(), UID: "c"}}},
		{Name: plan.Detach, Actions: []plan.Action{{Do: plan.Orphan, Object: sub(), UID: "s"}, {Do: plan.Unfinalize, Object: csv(), UID: "v"}, {Do: plan.Orphan, Object: csv(), UID: "v"}, {Do: plan.Delete, Object: condition(), UID: "c"}}},
		{Name: plan.Tree, Actions: []plan.Action{{Do: plan.Apply, Object: condition(), Force: true}}},
		{Name: plan.CleanUp, Actions: []plan.Action{{Do: plan.Delete, Object: csv(), UID: "v"}}},
	}
	for i := range steps {
		steps[i].Number, steps[i].Namespace = i+1, "ops"
	}
	return &plan.Plan{Mode: plan.Live, Operators: []plan.Operator{{Namespace: "ops", Package: "etcd", CSV: "etcd.v1"}}, Steps: steps}
}

// before returns the objects as they were before the plan.
func before() map[k8s.Ref]k8s.Object {
	s := k8s.With(k8s.New(olmV1alpha1, "Subscription", "ops", "etcd"), any("s"), "metadata", "uid")
	s["spec"] = map[string]any{"name": "etcd", "installPlanApproval": "Manual"}
	s["status"] = map[string]any{"installedCSV": "etcd.v1"}
	n := k8s.Annotate(k8s.New("v1", "Namespace", "", "ops"), map[string]string{"both": "a"})
	return map[k8s.Ref]k8s.Object{sub(): s, namespace("ops"): n, condition(): k8s.New("operators.coreos.com/v2", "OperatorCondition", "ops", "etcd.v1")}
}

// executedActions returns all actions of the steps up to last, in the form of executed actions.
func executedActions(p *plan.Plan, last int) []plan.ExecutedAction {
	var out []plan.ExecutedAction
	for _, s := range p.Steps[:last] {
		for i, a := range s.Actions {
			d := plan.ExecutedAction{Step: s.Number, Action: i + 1}
			if a.Do == plan.Apply && a.UID == "" {
				d.CreatedUID = "made-" + a.Object.Name + a.Object.Kind
			}
			out = append(out, d)
		}
	}
	return out
}

// summarizeSteps returns a summary of each step of a plan.
func summarizeSteps(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		line := string(s.Name)
		if s.Manual != "" {
			line += " (manual)"
		}
		for _, a := range s.Actions {
			line += "; " + string(a.Do) + " " + a.Object.Kind + " " + a.UID
		}
		out = append(out, line)
	}
	return out
}

func TestMake(t *testing.T) {
	p := livePlan()
	way := plan.MakeRevert(plan.RevertInput{Plan: p, Executed: executedActions(p, 5), Before: before()})
	want := []string{
		"suspend (manual)",
		"detach; orphan Subscription s; remove-finalizer ClusterServiceVersion v; orphan ClusterServiceVersion v",
		"hand-back; restore OperatorCondition made-etcd.v1OperatorCondition",
		"subscribe; create Subscription ",
		"approve (manual)",
		"withdraw; delete ValidatingWebhookConfiguration made-ops.etcdValidatingWebhookConfiguration; delete Role made-ops.etcdRole",
		"unguard; annotate Namespace n",
	}
	if d := cmp.Diff(want, summarizeSteps(way.Plan)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	undo := way.Plan.Steps[6].Actions[0]
	if d := cmp.Diff(plan.Action{Do: plan.Annotate, Object: namespace("ops"), UID: "n", Set: map[string]string{"both": "a"}, Unset: []string{"guard"}}, undo); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	created := way.Objects[sub()]
	if k8s.Text(created, "spec", "startingCSV") != "etcd.v1" || created["status"] != nil || k8s.Text(created, "metadata", "uid") != "" {
		t.Errorf("the Subscription is %v", created)
	}
}

// TestSubscribeInOrder checks that the Subscription of a required operator is created before the Subscription
// of its dependent, regardless of their names. Otherwise OLM would create another Subscription for the required
// operator.
func TestSubscribeInOrder(t *testing.T) {
	ref := func(kind, name string) k8s.Ref {
		return k8s.Ref{APIVersion: olmV1alpha1, Kind: kind, Namespace: "ops", Name: name}
	}
	for _, dependent := range []string{"app", "zoo"} { // requires "db"
		p := &plan.Plan{Mode: plan.Live, Operators: []plan.Operator{{Namespace: "ops", Package: "db"}, {Namespace: "ops", Package: dependent}}}
		detach := plan.Step{Number: 1, Name: plan.Detach, Namespace: "ops"}
		had := map[k8s.Ref]k8s.Object{}
		for _, name := range slices.Sorted(slices.Values([]string{"db", dependent})) {
			sub := ref("Subscription", name)
			detach.Actions = append(detach.Actions, plan.Action{Do: plan.Orphan, Object: sub})
			had[sub] = k8s.With(k8s.New(olmV1alpha1, "Subscription", "ops", name), any(name+".v1"), "status", "installedCSV")
		}
		for _, csv := range []string{dependent + ".v1", "db.v1"} {
			detach.Actions = append(detach.Actions, plan.Action{Do: plan.Orphan, Object: ref("ClusterServiceVersion", csv)})
		}
		p.Steps = []plan.Step{detach}
		var got []string
		for _, s := range plan.MakeRevert(plan.RevertInput{Plan: p, Executed: executedActions(p, 1), Before: had}).Plan.Steps {
			if s.Name == plan.Subscribe {
				for _, a := range s.Actions {
					got = append(got, a.Object.Name)
				}
			}
		}
		if d := cmp.Diff([]string{"db", dependent}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

// TestMakeBeforeDetach reverts a plan that stopped before the detach. OLM need not install the operator again.
func TestMakeBeforeDetach(t *testing.T) {
	p := livePlan()
	way := plan.MakeRevert(plan.RevertInput{Plan: p, Executed: executedActions(p, 3), Before: before()})
	want := []string{
		"suspend (manual)",
		"withdraw; delete ValidatingWebhookConfiguration made-ops.etcdValidatingWebhookConfiguration; delete Role made-ops.etcdRole",
		"unguard; annotate Namespace n",
	}
	if d := cmp.Diff(want, summarizeSteps(way.Plan)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if way := plan.MakeRevert(plan.RevertInput{Plan: p}); len(way.Plan.Steps) > 0 {
		t.Errorf("steps without executed actions: %q", summarizeSteps(way.Plan))
	}
}

// TestMakeAfterCleanUp checks the instructions for a namespace in which an object of OLM was already deleted.
func TestMakeAfterCleanUp(t *testing.T) {
	p := livePlan()
	way := plan.MakeRevert(plan.RevertInput{Plan: p, Executed: executedActions(p, 6), Before: before()})
	if len(way.Plan.Steps) > 0 || len(way.Plan.Skipped) != 1 || !strings.Contains(way.Plan.Skipped[0].Reasons[0], "startingCSV for each of etcd.v1") {
		t.Errorf("%q, skipped %v", summarizeSteps(way.Plan), way.Plan.Skipped)
	}
}
