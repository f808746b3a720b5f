package verify_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// TestChangedOrder changes the order of list items, or the value of the first of two items with the same name.
// FindChanges must report both changes.
func TestChangedOrder(t *testing.T) {
	env := func(values ...string) []any {
		var out []any
		for _, v := range values {
			name, value, _ := strings.Cut(v, "=")
			out = append(out, map[string]any{"name": name, "value": value})
		}
		return out
	}
	deployment := k8s.With(k8s.New("apps/v1", "Deployment", "ops", "etcd"), "d", "metadata", "uid")
	set := k8s.With(k8s.New("apps/v1", "ReplicaSet", "ops", "etcd-1"), []any{map[string]any{"uid": "d"}}, "metadata", "ownerReferences")
	template := func(o k8s.Object, values ...string) k8s.Object {
		return k8s.With(o, []any{map[string]any{"name": "main", "env": env(values...)}}, "spec", "template", "spec", "containers")
	}
	sub := func(values ...string) k8s.Object {
		return k8s.With(k8s.New("operators.coreos.com/v1alpha1", "Subscription", "ops", "etcd"), env(values...), "spec", "config", "env")
	}
	was := []string{"A=1", "B=2", "C=3", "C=4"}
	for name, is := range map[string][]string{"order": {"B=2", "A=1", "C=3", "C=4"}, "twice": {"A=1", "B=2", "C=0", "C=4"}, "distinct": {"B=2", "A=1"}} {
		was := was[:len(is)]
		before := template(deployment, was...)
		p := &plan.Plan{State: []plan.State{
			{Object: k8s.RefTo(before), Pods: plan.TemplateDigest(before)},
			{Object: k8s.RefTo(sub()), Spec: plan.SpecText(sub(was...))},
		}}
		c := newCluster(template(deployment, is...), template(set, was...), sub(is...))
		found, err := verify.FindChanges(t.Context(), c, p, "ops")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "spec.template.spec.containers[main].env") || !strings.Contains(string(text), "spec.config.env") {
			t.Errorf("%s: %s", name, text)
		}
		c = newCluster(before, template(set, was...), sub(was...))
		if found, err := verify.FindChanges(t.Context(), c, p, "ops"); err != nil || len(found) > 0 {
			t.Errorf("%s, unchanged: %v, %v", name, found, err)
		}
	}
}
