package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// newPlan returns the valid plan of a cluster with three operators and OLM.
func newPlan(t *testing.T) *plan.Plan {
	t.Helper()
	live := []k8s.Object{k8s.With(k8s.New("v1", "Namespace", "", "kube-system"), any("system"), "metadata", "uid")}
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		o := k8s.Label(k8s.With(k8s.New("apps/v1", "Deployment", "olm", name), any(name), "metadata", "uid"), map[string]string{"app": name})
		live = append(live, k8s.With(o, any(int64(1)), "spec", "replicas"))
	}
	var tree []render.Rendered
	var pins []lockfile.Pin
	for _, at := range [][2]string{{"a", "x"}, {"a", "y"}, {"b", "z"}} {
		objects, rendered := newOperator(at[0], at[1])
		live, tree = append(live, objects...), append(tree, rendered...)
		live = append(live, k8s.With(k8s.New("v1", "Namespace", "", at[0]), any(at[0]), "metadata", "uid"))
		pins = append(pins, lockfile.Pin{Namespace: at[0], Package: at[1], Bundle: at[1] + ".v1", Version: "1.0.0"})
	}
	live = slices.CompactFunc(live, func(a, b k8s.Object) bool { return a.Key() == b.Key() })
	slices.SortFunc(live, func(a, b k8s.Object) int { return a.Key().Compare(b.Key()) })
	live = slices.CompactFunc(live, func(a, b k8s.Object) bool { return a.Key() == b.Key() })
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": live})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	lock := adopt.Begin(seen, lockfile.New(pins))
	lock, tree = adopt.Record(seen, lockfile.New(pins), lock, tree)
	rep := adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: tree, GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return nil, nil }})
	p, err := plan.Make(plan.Input{Snapshot: seen, Report: rep, Lock: lock, Rendered: tree, Mode: plan.Stopped, Manager: "quayside"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Operators) != 3 || len(p.Steps) < 8 {
		t.Fatalf("a plan of %d operators and %d steps is too small for the test: %+v", len(p.Operators), len(p.Steps), p.Skipped)
	}
	return p
}

// clonePlan returns a deep copy of a plan.
func clonePlan(t *testing.T, p *plan.Plan) *plan.Plan {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := &plan.Plan{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForgedActions adds a forbidden action to a plan, in the kind of step that allows the most similar
// actions. CheckLimits must reject the plan.
func TestForgedActions(t *testing.T) {
	p := newPlan(t)
	if err := p.CheckLimits(); err != nil {
		t.Fatal(err)
	}
	thing := func(apiVersion, kind string) k8s.Ref {
		return k8s.Ref{APIVersion: apiVersion, Kind: kind, Namespace: "a", Name: "x"}
	}
	crd := k8s.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.x.example"}
	controller := p.OLM[0]
	for name, c := range map[string]struct {
		step   plan.StepKind
		action plan.Action
	}{
		"a Namespace":            {plan.CleanUp, plan.Action{Do: plan.Delete, Object: k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: "a"}}},
		"a claim":                {plan.CleanUp, plan.Action{Do: plan.Delete, Object: thing("v1", "PersistentVolumeClaim")}},
		"a CRD":                  {plan.CleanUp, plan.Action{Do: plan.Delete, Object: crd}},
		"an operand":             {plan.CleanUp, plan.Action{Do: plan.Delete, Object: thing("x.example/v1", "Thing")}},
		"a Deployment":           {plan.CleanUp, plan.Action{Do: plan.Delete, Object: thing("apps/v1", "Deployment")}},
		"a Secret":               {plan.CleanUp, plan.Action{Do: plan.Delete, Object: thing("v1", "Secret")}},
		"a CSV with dependents":  {plan.CleanUp, plan.Action{Do: plan.Delete, Object: thing(olm+"/v1alpha1", "ClusterServiceVersion")}},
		"a role at the detach":   {plan.Detach, plan.Action{Do: plan.Delete, Object: thing(rbacV1, "Role")}},
		"a deletion of the tree": {plan.Tree, plan.Action{Do: plan.Delete, Object: thing(olm+"/v1alpha1", "InstallPlan")}},
		"a claim withdrawn":      {plan.Withdraw, plan.Action{Do: plan.Delete, Object: thing("v1", "PersistentVolumeClaim")}},
		"an orphaned Deployment": {plan.Detach, plan.Action{Do: plan.Orphan, Object: thing("apps/v1", "Deployment")}},
		"another workload":       {plan.Stop, plan.Action{Do: plan.Scale, Object: thing("apps/v1", "Deployment"), From: 1}},
		"OLM in another step":    {plan.Detach, plan.Action{Do: plan.Scale, Object: controller.Object, UID: controller.UID, From: 1}},
		"more of OLM":            {plan.Start, plan.Action{Do: plan.Scale, Object: controller.Object, UID: controller.UID, To: 100}},
		"a CRD's labels":         {plan.CleanUp, plan.Action{Do: plan.Unlabel, Object: crd, Unset: []string{"app"}}},
		"a CRD's annotations":    {plan.Guard, plan.Action{Do: plan.Annotate, Object: crd, Set: map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}}},
		"a CRD's fields":         {plan.Fields, plan.Action{Do: plan.TransferFields, Object: crd}},
		"a CRD's finalizer":      {plan.Detach, plan.Action{Do: plan.Unfinalize, Object: crd, Finalizer: "customresourcecleanup.apiextensions.k8s.io"}},
		"another finalizer":      {plan.Detach, plan.Action{Do: plan.Unfinalize, Object: thing(olm+"/v1alpha1", "ClusterServiceVersion"), Finalizer: "mine"}},
		"another annotation":     {plan.Guard, plan.Action{Do: plan.Annotate, Object: k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: "a"}, Set: map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "x"}}},
		"one less":               {plan.Unguard, plan.Action{Do: plan.Annotate, Object: k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: "a"}, Unset: []string{"owner"}}},
		"an applied annotation":  {plan.Tree, plan.Action{Do: plan.Apply, Object: thing("apps/v1", "Deployment"), Set: map[string]string{"owner": "x"}}},
		"a created pod":          {plan.Subscribe, plan.Action{Do: plan.Create, Object: thing("v1", "Pod")}},
		"a restored Deployment":  {plan.Tree, plan.Action{Do: plan.Restore, Object: thing("apps/v1", "Deployment")}},
		"one in a manual step":   {plan.Suspend, plan.Action{Do: plan.Apply, Object: thing("apps/v1", "Deployment")}},
	} {
		forged := clonePlan(t, p)
		forged.Steps = append(forged.Steps, plan.Step{Number: len(p.Steps) + 1, Name: c.step, Namespace: "a", Actions: []plan.Action{c.action}})
		if err := forged.CheckLimits(); err == nil || !strings.Contains(err.Error(), c.action.Object.String()+" is refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyDerived changes an action, check, text or field of a plan. CheckDerived must reject every plan that
// differs from the plan made from the cluster.
func TestOnlyDerived(t *testing.T) {
	p := newPlan(t)
	if err := clonePlan(t, p).CheckDerived(p); err != nil {
		t.Fatal(err)
	}
	left := clonePlan(t, p)
	left.Skipped = append(left.Skipped, plan.SkippedOperator{Namespace: "other", Reasons: []string{"its namespace was not selected"}})
	if err := left.CheckDerived(p); err != nil {
		t.Errorf("another list of skipped operators is rejected: %v", err)
	}
	refused := func(name, want string, edit func(f *plan.Plan)) {
		f := clonePlan(t, p)
		edit(f)
		if err := f.CheckDerived(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n, s := range p.Steps {
		for i, a := range s.Actions {
			at := func(f *plan.Plan) *plan.Action { return &f.Steps[n].Actions[i] }
			refused("another object", "is not in the plan that quayside would make now", func(f *plan.Plan) { at(f).Object.Name += "-other" })
			refused("another UID", "is not in the plan", func(f *plan.Plan) { at(f).UID += "-other" })
			refused("removed", "the plan differs from", func(f *plan.Plan) { f.Steps[n].Actions = slices.Delete(f.Steps[n].Actions, i, i+1) })
			refused("twice", "the plan differs from", func(f *plan.Plan) { f.Steps[n].Actions = append(f.Steps[n].Actions, a) })
			if a.Do == plan.Apply {
				refused("force", "is not in the plan", func(f *plan.Plan) { at(f).Force = !a.Force })
			}
			if n > 0 && p.Steps[n-1].Name != s.Name {
				refused("in another step", "is not in the plan", func(f *plan.Plan) { f.Steps[n-1].Actions = append(f.Steps[n-1].Actions, a) })
			}
		}
		for i := range s.Before {
			refused("a precondition", "the plan differs from", func(f *plan.Plan) { f.Steps[n].Before = slices.Delete(f.Steps[n].Before, i, i+1) })
		}
		for i := range s.After {
			refused("a postcondition", "the plan differs from", func(f *plan.Plan) { f.Steps[n].After = slices.Delete(f.Steps[n].After, i, i+1) })
		}
		refused("a text", "the plan differs from", func(f *plan.Plan) { f.Steps[n].Title = "x" })
		if s.Manual != "" {
			refused("a manual action", "the plan differs from", func(f *plan.Plan) { f.Steps[n].Manual = "Run this." })
		}
	}
	refused("the last step", "first at", func(f *plan.Plan) { f.Steps = f.Steps[:len(f.Steps)-1] })
	refused("the lock", "the plan differs from", func(f *plan.Plan) { f.Lock = "" })
	refused("the tree", "the plan differs from", func(f *plan.Plan) { f.Tree = "" })
	refused("the mode", "the plan differs from", func(f *plan.Plan) { f.Mode = plan.Live })
	refused("the manager", "the plan differs from", func(f *plan.Plan) { f.Manager = "kubectl" })
	refused("OLM", "the plan differs from", func(f *plan.Plan) { f.OLM[0].Replicas = 9 })
}

// TestReturnOnlyNames replaces the object of each action in a plan for reverting. CheckRevert must reject
// objects that the executed plan does not contain.
func TestReturnOnlyNames(t *testing.T) {
	p := newPlan(t)
	var executed []plan.ExecutedAction
	before := map[k8s.Ref]k8s.Object{}
	for _, s := range p.Steps {
		if s.Name == plan.CleanUp {
			continue
		}
		for i, a := range s.Actions {
			executed = append(executed, plan.ExecutedAction{Step: s.Number, Action: i + 1, CreatedUID: "made"})
			if a.Do == plan.Save {
				before[a.Object] = k8s.New(a.Object.APIVersion, a.Object.Kind, a.Object.Namespace, a.Object.Name)
			}
		}
	}
	way := plan.MakeRevert(plan.RevertInput{Plan: p, Executed: executed, Before: before}).Plan
	if err := way.CheckLimits(); err != nil {
		t.Error(err)
	}
	if err := p.CheckRevert(way); err != nil {
		t.Error(err)
	}
	verbs := map[plan.Verb]bool{}
	for n, s := range way.Steps {
		for i, a := range s.Actions {
			verbs[a.Do] = true
			forged := clonePlan(t, way)
			forged.Steps[n].Actions[i].Object.Name += "-other"
			if err := p.CheckRevert(forged); err == nil || !strings.Contains(err.Error(), "the plan has no action") {
				t.Errorf("%s %s of another name: %v", a.Do, a.Object, err)
			}
		}
	}
	for _, do := range []plan.Verb{plan.Restore, plan.Create, plan.Scale, plan.Annotate, plan.Orphan} {
		if !verbs[do] {
			t.Errorf("the revert plan has no %s: the test is incomplete", do)
		}
	}
}
