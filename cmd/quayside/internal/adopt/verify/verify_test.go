package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

func captureCluster(t fataler, c *fakeCluster, p *plan.Plan) *verify.Evidence {
	t.Helper()
	c.updatePermissions()
	e, err := verify.Capture(context.Background(), c, p, "op")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// changesSince returns the findings of all conditions that compare the cluster with before, its earlier state.
func changesSince(t fataler, c *fakeCluster, p *plan.Plan, step plan.Step, before *verify.Evidence) []verify.Finding {
	t.Helper()
	c.updatePermissions()
	var out []verify.Finding
	for _, condition := range []plan.Condition{plan.SameUID, plan.NoOwner, plan.Conversion, plan.Available, plan.NoRestart, plan.Permissions} {
		found, err := verify.Check(context.Background(), c, p, step, before, plan.Check{Check: condition})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

// findingCodes returns findings as "code object". For findings about permissions, it returns "code namespace".
func findingCodes(found []verify.Finding) []string {
	out := []string{}
	for _, f := range found {
		about := f.Namespace
		if f.Account == "" {
			about = f.Object.Key().String()
		}
		out = append(out, fmt.Sprint(string(f.Code), " ", about))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestChecksPassDuringPlan executes a plan step by step. All checks must pass, one by one and all together.
func TestChecksPassDuringPlan(t *testing.T) {
	w := newWorld()
	before := captureCluster(t, w.fakeCluster, w.plan)
	text, err := before.Format()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := captureCluster(t, w.fakeCluster, w.plan).Format(); string(again) != string(text) {
		t.Error("two captures of the same cluster differ")
	}
	if before, err = verify.Parse("evidence.json", text); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.plan.Steps {
		w.do(s)
		if found := changesSince(t, w.fakeCluster, w.plan, s, before); len(found) > 0 {
			t.Errorf("after step %d (%s): %v", s.Number, s.Name, found)
		}
		conditions := []plan.Condition{plan.SameUID, plan.Conversion, plan.Available, plan.Permissions, plan.Prepared, plan.NoRestart, plan.NoOwner, plan.NoPlan}
		if s.Name == plan.Guard {
			conditions = append(conditions[:4], plan.Succeeded, plan.IsReady)
		}
		for _, c := range conditions {
			if found, err := verify.Check(context.Background(), w, w.plan, s, before, plan.Check{Check: c}); err != nil || len(found) > 0 {
				t.Errorf("after step %d (%s), %s: %v %v", s.Number, s.Name, c, found, err)
			}
		}
	}
}

// change is a change to a cluster that is not planned.
type change struct {
	name string
	do   func(*fakeCluster)
	want []string // codes of the expected findings
}

func unplannedChanges() []change {
	d := k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "op", Name: "d"}
	crd := k8s.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "xs.example"}
	unreached := k8s.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "ys.example"}
	api := k8s.Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.x.example"}
	sub := k8s.Key{Group: olm, Kind: "Subscription", Namespace: "op", Name: "x"}
	secret := k8s.Key{Kind: "Secret", Namespace: "op", Name: "d-service-cert"}
	inA := k8s.Key{Group: rights, Kind: "RoleBinding", Namespace: "a", Name: "x.v1-hash"}
	inB := k8s.Key{Group: rights, Kind: "Role", Namespace: "b", Name: "x.v1-hash"}
	everywhere := k8s.Key{Group: rights, Kind: "ClusterRole", Name: "x.v1-hash"}
	pod := k8s.Key{Kind: "Pod", Namespace: "op", Name: "d-1-x"}
	field := func(key k8s.Key, v any, path ...string) func(*fakeCluster) {
		return func(c *fakeCluster) { c.set(key, v, path...) }
	}
	return []change{
		{"a label", field(d, "v", "metadata", "labels", "l"), nil},
		{"a status", field(d, int64(0), "status", "readyReplicas"), nil},
		{"a generation", field(d, int64(9), "metadata", "generation"), nil},
		{"unrelated object", func(c *fakeCluster) { c.put(newFakeObject("v1", "ConfigMap", "op", "other", nil)) }, nil},
		{"permission of another account", func(c *fakeCluster) {
			for _, o := range newRole("c", "other", newVerbsRule("", "pods", "get")) {
				if o.Kind() == "RoleBinding" {
					o["subjects"] = []any{map[string]any{"kind": "User", "name": "jo"}}
				}
				c.put(o)
			}
		}, nil},
		{"another certificate beside it", field(crd, newConversion(newCA("olm", "more"))["conversion"], "spec", "conversion"), nil},
		{"another converter, of which nobody knew the certificate", field(unreached, "other", "spec", "conversion", "webhook", "clientConfig", "service", "name"), nil},
		{"a template", field(d, "i:2", "spec", "template", "spec", "image"), []string{"template Deployment.apps op/d"}},
		{"a rollout", func(c *fakeCluster) {
			c.put(withOwner(newFakeObject("apps/v1", "ReplicaSet", "op", "d-2", nil), c.objects[d]))
		}, []string{"replica-set Deployment.apps op/d"}},
		{"a deleted Secret", func(c *fakeCluster) { delete(c.objects, secret) }, []string{"missing Secret op/d-service-cert"}},
		{"another Subscription", field(sub, "other", "metadata", "uid"), []string{"uid Subscription.operators.coreos.com op/x"}},
		{"a deletion", field(api, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp"), []string{"deleting APIService.apiregistration.k8s.io v1.x.example"}},
		{"an API that is down", field(api, map[string]any{}, "status"), []string{"unavailable APIService.apiregistration.k8s.io v1.x.example"}},
		{"no conversion", field(crd, map[string]any{"strategy": "None"}, "spec", "conversion"), []string{"conversion CustomResourceDefinition.apiextensions.k8s.io xs.example"}},
		{"no certificate", field(crd, newConversion("")["conversion"], "spec", "conversion"), []string{"conversion CustomResourceDefinition.apiextensions.k8s.io xs.example"}},
		{"another converter", field(crd, "other", "spec", "conversion", "webhook", "clientConfig", "service", "name"), []string{"conversion CustomResourceDefinition.apiextensions.k8s.io xs.example"}},
		{"a binding less", func(c *fakeCluster) { delete(c.objects, inA) }, []string{"missing RoleBinding.rbac.authorization.k8s.io a/x.v1-hash", "permission-lost a"}},
		{"a verb less", field(inB, []any{newVerbsRule("", "configmaps", "get")}, "rules"), []string{"permission-lost b"}},
		{"a right more", func(c *fakeCluster) {
			for _, o := range newRole("op", "more", newVerbsRule("", "secrets", "list")) {
				c.put(o)
			}
		}, []string{"permission-gained op"}},
		{"the right to all", field(everywhere, []any{newVerbsRule("*", "*", "*"), map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}}, "rules"), []string{"permission-gained "}},
		{"a restart", field(pod, []any{map[string]any{"restartCount": int64(2)}}, "status", "containerStatuses"), nil},
	}
}

// TestCompare makes random changes to a cluster. The findings must be exactly the relevant changes.
func TestCompare(t *testing.T) {
	w := newWorld()
	before := captureCluster(t, w.fakeCluster, w.plan)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.IntRange(0, len(unplannedChanges())-1), 1, 4, rapid.ID).Draw(t, "changes")
		slices.Sort(all) // relevant changes come last, and are not undone by others
		now, want := w.copy(), []string{}
		for _, i := range all {
			c := unplannedChanges()[i]
			t.Log(c.name)
			c.do(now)
			want = append(want, c.want...)
		}
		slices.Sort(want)
		want = withoutImplied(slices.Compact(want))
		got := withoutImplied(findingCodes(changesSince(t, now, w.plan, plan.Step{}, before)))
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// withoutImplied returns codes without those that another code in the list implies or hides.
func withoutImplied(codes []string) []string {
	return slices.DeleteFunc(codes, func(code string) bool {
		switch code {
		case "permission-gained op", "permission-lost a", "permission-lost b": // a permission for everything covers these
			return slices.Contains(codes, "permission-gained ")
		}
		return false
	})
}

// TestConditions checks each condition in a cluster that violates it.
func TestConditions(t *testing.T) {
	const prepare, stop, detach, tree, start, clean = 1, 2, 4, 5, 6, 7
	csv := k8s.Key{Group: olm, Kind: "ClusterServiceVersion", Namespace: "op", Name: "x.v1"}
	controller := k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "olm", Name: "olm-operator"}
	by := func(name string) func(*fakeCluster) {
		for _, c := range unplannedChanges() {
			if c.name == name {
				return c.do
			}
		}
		panic(name)
	}
	binding := k8s.Key{Group: rights, Kind: "ClusterRoleBinding", Name: "op.x.sa"}
	for name, c := range map[string]struct {
		check plan.Condition
		step  int // the steps up to this one are executed
		do    func(*fakeCluster)
		want  string
	}{
		"failed":     {plan.Succeeded, prepare, func(c *fakeCluster) { c.set(csv, "Failed", "status", "phase") }, "phase ClusterServiceVersion.operators.coreos.com op/x.v1"},
		"no version": {plan.Succeeded, prepare, func(c *fakeCluster) { delete(c.objects, csv) }, "not-found ClusterServiceVersion.operators.coreos.com op/x.v1"},
		"in flight": {plan.NoPlan, prepare, func(c *fakeCluster) {
			c.put(newFakeObject(olm+"/v1alpha1", "InstallPlan", "op", "i", map[string]any{"status": map[string]any{"phase": "Installing"}}))
		}, "in-flight InstallPlan.operators.coreos.com op/i"},
		"in flight after one without a phase": {plan.NoPlan, prepare, func(c *fakeCluster) { // OLM never processes i
			for name, generation := range map[string]int64{"i": 1, "j": 2} {
				c.put(newFakeObject(olm+"/v1alpha1", "InstallPlan", "op", name, map[string]any{"spec": map[string]any{"generation": generation}}))
			}
		}, "in-flight InstallPlan.operators.coreos.com op/j"},
		"started again": {plan.IsStopped, stop, func(c *fakeCluster) { c.set(controller, int64(1), "spec", "replicas") }, "running Deployment.apps olm/olm-operator"},
		"not yet":       {plan.IsStopped, stop, func(c *fakeCluster) { c.set(controller, int64(1), "status", "replicas") }, "running Deployment.apps olm/olm-operator"},
		"not seen yet":  {plan.IsStopped, stop, func(c *fakeCluster) { c.set(controller, int64(2), "metadata", "generation") }, "running Deployment.apps olm/olm-operator"},
		"ending":        {plan.IsStopped, stop, func(c *fakeCluster) { c.put(newWorkload("olm", "olm-operator")[2]) }, "running Deployment.apps olm/olm-operator"},
		"not ready":     {plan.IsReady, start, func(c *fakeCluster) { c.set(controller, int64(0), "status", "readyReplicas") }, "not-ready Deployment.apps olm/olm-operator"},
		"still stopped": {plan.IsReady, start, func(c *fakeCluster) { c.set(controller, int64(0), "spec", "replicas") }, "not-ready Deployment.apps olm/olm-operator"},
		"no controller": {plan.IsReady, start, func(c *fakeCluster) { delete(c.objects, controller) }, "not-found Deployment.apps olm/olm-operator"},
		"hangs": {plan.Deleted, detach, func(c *fakeCluster) {
			o := newFakeObject(olm+"/v1alpha1", "ClusterServiceVersion", "op", "x.v1", nil)
			c.put(k8s.With(o, any([]any{"f"}), "metadata", "finalizers"))
		}, "exists ClusterServiceVersion.operators.coreos.com op/x.v1"},
		"lost": {plan.SameUID, detach, by("a deleted Secret"), "missing Secret op/d-service-cert"},
		"owned": {plan.NoOwner, detach, func(c *fakeCluster) {
			d := k8s.Key{Kind: "ServiceAccount", Namespace: "op", Name: "sa"}
			c.put(withOwner(c.objects[d], newWorld().objects[csv]))
		}, "owner ServiceAccount op/sa"},
		"converts":    {plan.Conversion, tree, by("no conversion"), "conversion CustomResourceDefinition.apiextensions.k8s.io xs.example"},
		"unavailable": {plan.Available, tree, by("an API that is down"), "unavailable APIService.apiregistration.k8s.io v1.x.example"},
		"rights":      {plan.Permissions, clean, func(c *fakeCluster) { delete(c.objects, binding) }, "permission-lost "},
		"refused": {plan.Permissions, tree, func(c *fakeCluster) {
			c.denies = func(r verify.Review) bool { return r.Namespace == "b" && r.Verb == "update" }
		}, "permission-lost b"},
		"permitted": {plan.Permissions, tree, func(c *fakeCluster) {
			c.grants = func(r verify.Review) bool { return r.Namespace == "kube-system" && r.Resource == "secrets" }
		}, "permission-gained kube-system"},
		"not prepared": {plan.Prepared, prepare, func(c *fakeCluster) { delete(c.objects, binding) }, "permission-missing "},
		"a user's": {plan.Prepared, prepare, func(c *fakeCluster) {
			o := newRole("a", "jo", newVerbsRule("", "x", "y"))[1]
			o["roleRef"], o["subjects"] = map[string]any{"kind": "Role", "name": "x.v1-hash"}, []any{map[string]any{"kind": "User", "name": "jo"}}
			c.put(o)
		}, "permission-missing a"},
		"template": {plan.NoRestart, tree, by("a template"), "template Deployment.apps op/d"},
		"rollout":  {plan.NoRestart, tree, by("a rollout"), "replica-set Deployment.apps op/d"},
		"restart":  {plan.NoRestart, tree, by("a restart"), ""},
		"changed":  {plan.SameVersion, 0, by("another Subscription"), "changed Subscription.operators.coreos.com op/x"},
		"upgraded": {plan.SameVersion, stop, func(c *fakeCluster) { c.set(controller, "other", "metadata", "uid") }, "changed Deployment.apps olm/olm-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			before := captureCluster(t, w.fakeCluster, w.plan)
			for _, s := range w.plan.Steps[:c.step+1] {
				w.do(s)
			}
			found := func() []string {
				w.updatePermissions()
				found, err := verify.Check(context.Background(), w, w.plan, w.plan.Steps[c.step], before, plan.Check{Check: c.check})
				if err != nil {
					t.Fatal(err)
				}
				return findingCodes(found)
			}
			if was := found(); len(was) > 0 && c.check != plan.SameVersion {
				t.Errorf("without the violation: %q", was)
			}
			c.do(w.fakeCluster)
			got := found()
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := verify.Check(context.Background(), newWorld(), newWorld().plan, plan.Step{Number: 3}, nil, plan.Check{Check: "odd"}); err == nil {
		t.Error("an unknown condition is accepted")
	}
}
