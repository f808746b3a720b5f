package plan_test

import (
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

func TestActionIsDone(t *testing.T) {
	const held = "operators.coreos.com/csv-cleanup"
	object := func(meta map[string]any) k8s.Object { return k8s.Object{"metadata": meta} }
	writer := func(manager, operation string) []any {
		return []any{map[string]any{"manager": manager, "operation": operation}}
	}
	annotate := plan.Action{Do: plan.Annotate, Set: map[string]string{"a": "1"}, Unset: []string{"b"}}
	unfinalize := plan.Action{Do: plan.Unfinalize, Finalizer: held, Unset: []string{"b"}}
	for name, c := range map[string]struct {
		action plan.Action
		meta   map[string]any
		want   bool
	}{
		"set and removed":            {annotate, map[string]any{"annotations": map[string]any{"a": "1", "c": "2"}}, true},
		"set to another value":       {annotate, map[string]any{"annotations": map[string]any{"a": "2"}}, false},
		"not removed yet":            {annotate, map[string]any{"annotations": map[string]any{"a": "1", "b": ""}}, false},
		"a label of the name":        {annotate, map[string]any{"labels": map[string]any{"a": "1"}}, false},
		"label removed":              {plan.Action{Do: plan.Unlabel, Unset: []string{"b"}}, map[string]any{"annotations": map[string]any{"b": "1"}}, true},
		"label still set":            {plan.Action{Do: plan.Unlabel, Unset: []string{"b"}}, map[string]any{"labels": map[string]any{"b": "1"}}, false},
		"another finalizer":          {unfinalize, map[string]any{"finalizers": []any{"orphan"}}, true},
		"the finalizer":              {unfinalize, map[string]any{"finalizers": []any{"orphan", held}}, false},
		"the finalizer's annotation": {unfinalize, map[string]any{"annotations": map[string]any{"b": ""}}, false},
		"fields of others":           {plan.Action{Do: plan.TransferFields}, map[string]any{"managedFields": writer("kubectl", "Update")}, true},
		"fields of OLM":              {plan.Action{Do: plan.TransferFields}, map[string]any{"managedFields": writer("catalog", "Update")}, false},
		"nothing to set":             {plan.Action{Do: plan.Annotate}, nil, true},
	} {
		if got := c.action.IsDone(object(c.meta)); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	applied := object(map[string]any{"managedFields": writer("flux", "Apply")})
	if !plan.AppliedBy(applied, "flux") || plan.AppliedBy(applied, "kubectl") || plan.AppliedBy(object(map[string]any{"managedFields": writer("flux", "Update")}), "flux") {
		t.Error("an object counts as applied only with the manager of an Apply")
	}
}
