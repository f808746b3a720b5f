package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// mapping generates the content of objects: values, lists and mappings.
func mapping(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		out := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			switch n := rapid.IntRange(0, 3).Draw(t, "what"); {
			case n == 0:
				out[key] = []any{rapid.Int64Range(0, 2).Draw(t, "item")}
			case n == 1 && depth > 0:
				out[key] = mapping(depth-1).Draw(t, "below")
			default:
				out[key] = rapid.Int64Range(0, 2).Draw(t, "value")
			}
		}
		return out
	})
}

// writtenBack returns the fields of a mapping in the format of managedFields.
func writtenBack(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		below := map[string]any{}
		if m, ok := v.(map[string]any); ok {
			below = writtenBack(m)
		}
		out["f:"+key] = below
	}
	return out
}

// overlay returns a copy of under with the values of over.
func overlay(under, over map[string]any) map[string]any {
	out := k8s.Copy(under)
	for key, v := range over {
		above, ok := v.(map[string]any)
		below, there := out[key].(map[string]any)
		if ok && there {
			v = overlay(below, above)
		}
		out[key] = k8s.Copy(v)
	}
	return out
}

// withoutFields returns a copy of m without the fields in fields.
func withoutFields(m, fields map[string]any) map[string]any {
	out := k8s.Copy(m)
	for key, v := range fields {
		above, isMap := v.(map[string]any)
		below, there := out[key].(map[string]any)
		if isMap && there {
			out[key] = withoutFields(below, above)
		} else {
			delete(out, key)
		}
	}
	return out
}

// TestRestored applies fields to an object and removes other fields. RestoreValues must return the earlier
// object with the current owners and status, and with the later changes by others.
func TestRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := func(name string) map[string]any { return mapping(3).Draw(t, name) }
		before := k8s.New("example.com/v1", "Thing", "ns", "x")
		before["spec"] = map[string]any{"kept": int64(1), "deep": spec("before")}
		before = k8s.With(k8s.Annotate(before, map[string]string{"olm": "was", "both": "was"}), any([]any{"olm"}), "metadata", "ownerReferences")

		applied := map[string]any{"deep": spec("applied"), "new": "x", "mixed": map[string]any{"ours": "x"}}
		live := k8s.Copy(before)
		live["spec"] = overlay(withoutFields(k8s.Map(before, "spec"), map[string]any{"deep": spec("removed")}), applied)
		live["spec"].(map[string]any)["kept"] = int64(5)
		live["status"] = map[string]any{"ready": true}
		live = k8s.With(live, any(true), "spec", "mixed", "theirs")
		live = k8s.Without(live, "metadata", "ownerReferences")
		live = k8s.With(live, any(map[string]any{"both": "ours", "ours": "x", "theirs": "y"}), "metadata", "annotations")
		live = k8s.With(live, any([]any{
			map[string]any{"manager": "tool", "operation": "Apply", "fieldsV1": map[string]any{
				"f:spec": writtenBack(applied), "f:metadata": map[string]any{"f:annotations": map[string]any{"f:both": map[string]any{}, "f:ours": map[string]any{}}},
			}},
			map[string]any{"manager": "other", "operation": "Update", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:kept": map[string]any{}}}},
		}), "metadata", "managedFields")
		copied := k8s.Copy(live)

		got := plan.RestoreValues(live, before, "tool")
		want := k8s.Copy(live)
		want["spec"] = k8s.With(k8s.Map(before, "spec"), int64(5), "kept")
		want = k8s.With(want, any(true), "spec", "mixed", "theirs")
		want = k8s.With(want, any(map[string]any{"olm": "was", "both": "was", "theirs": "y"}), "metadata", "annotations")
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-want +got)\n%s", d)
		}
		if !k8s.Equal(live, copied) {
			t.Fatal("the live object was changed")
		}
		if again := plan.RestoreValues(got, before, "tool"); !k8s.Equal(again, got) {
			t.Fatalf("restored twice:\n%s", cmp.Diff(got, again))
		}
	})
}

// TestManaged checks that the earlier managers own their fields again, and that the given managers lose their
// fields.
func TestManaged(t *testing.T) {
	entry := func(manager, operation, subresource, field string) any {
		e := map[string]any{"manager": manager, "operation": operation, "fieldsV1": map[string]any{"f:" + field: map[string]any{}}}
		if subresource != "" {
			e["subresource"] = subresource
		}
		return e
	}
	object := func(entries ...any) k8s.Object {
		return k8s.With(k8s.New("v1", "Service", "ns", "x"), any(entries), "metadata", "managedFields")
	}
	before := object(entry("olm", "Update", "", "a"), entry("tool", "Update", "", "b"), entry("controller", "Update", "status", "old"))
	live := object(entry("tool", "Apply", "", "a"), entry("tool", "Update", "", "c"), entry("controller", "Update", "status", "new"), entry("person", "Update", "", "d"))
	want := []any{entry("olm", "Update", "", "a"), entry("tool", "Update", "", "b"), entry("controller", "Update", "status", "new"), entry("person", "Update", "", "d")}
	got := plan.RestoreManagedFields(live, before, "tool")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if !plan.HasNewManager(live, before, "tool") || plan.HasNewManager(object(got...), before, "tool") {
		t.Error("wrong managers of the object")
	}
}
