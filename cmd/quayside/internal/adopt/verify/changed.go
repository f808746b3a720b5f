package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// ChangedHint is the hint for changes that were made since the plan was made.
const ChangedHint = "\thint: undo the change in the cluster; or keep it: run 'quayside import --update' for a Subscription, or edit the declaration, spec.config or an overlay; then run 'quayside resolve', and 'quayside adopt start NAMESPACE --file NEW-PLAN'"

// DescribeChanges formats the findings of FindChanges, with a hint.
func DescribeChanges(found []Finding) string {
	text := "the cluster has changed since the plan was made:"
	for _, f := range found {
		text += "\n\t" + sanitize.Line(f.Message)
	}
	return text + "\n" + ChangedHint
}

// FindChanges compares OLM's declarations and the pod templates in namespaces with the plan. For each differing
// field, it returns a finding with the previous and the current value. It also compares the catalogs, which may
// be in other namespaces.
func FindChanges(ctx context.Context, r Reader, p *plan.Plan, namespaces ...string) ([]Finding, error) {
	states := slices.DeleteFunc(slices.Clone(p.State), func(s plan.State) bool {
		return s.Object.Kind != "CatalogSource" && !slices.Contains(namespaces, s.Object.Namespace)
	})
	out := make([][]Finding, len(states))
	err := runParallel(ctx, len(states), func(ctx context.Context, i int) error {
		s := states[i]
		o, err := r.Get(ctx, s.Object)
		switch {
		case err != nil:
			return err
		case o == nil:
			out[i] = newFindings(NotFound, s.Object, "no longer exists")
		case s.Pods != "":
			out[i], err = findChangedPods(ctx, r, s, o)
		default:
			var was map[string]any
			if err := utiljson.Unmarshal([]byte(s.Spec), &was); err != nil {
				return fmt.Errorf("the plan's spec of %s: %w", s.Object, err)
			}
			out[i] = findChangedFields(s.Object, "spec", was, k8s.Map(o, "spec"))
		}
		return err
	})
	return slices.Concat(out...), err
}

// findChangedPods returns the changes to a Deployment's pod template since the plan. If the previous ReplicaSet
// still exists, the findings contain the previous values.
func findChangedPods(ctx context.Context, r Reader, s plan.State, o k8s.Object) ([]Finding, error) {
	if plan.TemplateDigest(o) == s.Pods {
		return nil, nil
	}
	sets, err := r.List(ctx, "apps/v1", "ReplicaSet", s.Object.Namespace, "")
	for _, set := range sets {
		if isOwnedBy(set, k8s.Text(o, "metadata", "uid")) && plan.TemplateDigest(set) == s.Pods {
			was := k8s.Without(k8s.Map(set, "spec", "template"), "metadata", "labels", "pod-template-hash")
			return findChangedFields(s.Object, "spec.template", was, k8s.Map(o, "spec", "template")), err
		}
	}
	return newFindings(NotAsPlanned, s.Object, "was changed: spec.template, whose previous value is unknown, because its ReplicaSet was deleted"), err
}

func findChangedFields(ref k8s.Ref, at string, was, is map[string]any) []Finding {
	var out []Finding
	adopt.CompareValues(at, was, is, func(f adopt.Field, was, is any) {
		out = append(out, newFindings(NotAsPlanned, ref, "was changed: %s: %s, now %s", f.Path, jsonOf(was), jsonOf(is))...)
	})
	return out
}

// maxValue is the maximum length of a value in a finding, in bytes.
const maxValue = 200

// jsonOf returns a value as shortened JSON, or "nothing" for nil.
func jsonOf(v any) string {
	if v == nil {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("verify: not JSON: " + err.Error())
	}
	return sanitize.Truncate(string(text), maxValue)
}
