package k8s_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
)

// anyValue draws a value that a file can contain.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 7
		if depth == 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			return json.Number("1e400")
		case 4:
			return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text")
		case 5:
			return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		default:
			return mapping(depth-1).Draw(t, "map")
		}
	})
}

func mapping(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), anyValue(max(0, depth)), 0, 3)
}

func path() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4)
}

// TestGettersAgree compares every getter with At, and compares At with a loop over the path.
func TestGettersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := mapping(3).Draw(t, "m"), path().Draw(t, "path")
		var want any = m
		for _, key := range p {
			step, _ := want.(map[string]any)
			want = step[key]
		}
		if got := k8s.At(m, p...); !k8s.Equal(got, want) {
			t.Fatalf("At: got %v, want %v", got, want)
		}
		text, _ := want.(string)
		list, _ := want.([]any)
		child, _ := want.(map[string]any)
		if k8s.Text(m, p...) != text || k8s.True(m, p...) != (want == true) || !k8s.Equal(k8s.List(m, p...), list) || !k8s.Equal(k8s.Map(m, p...), child) {
			t.Fatalf("the getters differ for %v", want)
		}
		for _, item := range k8s.Items(m, p...) {
			if !slices.ContainsFunc(list, func(v any) bool { return k8s.Equal(v, item) }) {
				t.Fatalf("%v is not in %v", item, list)
			}
		}
		strings, mappings := 0, 0
		for _, v := range list {
			switch v.(type) {
			case string:
				strings++
			case map[string]any:
				mappings++
			}
		}
		if len(k8s.Texts(m, p...)) != strings || len(k8s.Items(m, p...)) != mappings || len(k8s.TextMap(m, p...)) != len(child) {
			t.Fatalf("Texts, Items or TextMap of %v have missing or additional elements", want)
		}
	})
}

// TestChangesAreCopies checks that With and Without return modified copies, and that Copy shares nothing.
func TestChangesAreCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := mapping(3).Draw(t, "m"), path().Draw(t, "path")
		before := k8s.Copy(m)
		with := k8s.With(m, "new", p...)
		if k8s.Text(with, p...) != "new" {
			t.Fatalf("With: got %v", k8s.At(with, p...))
		}
		gone := k8s.Without(with, p...)
		if _, there := k8s.Map(gone, p[:len(p)-1]...)[p[len(p)-1]]; there {
			t.Fatal("Without did not remove the value")
		}
		for key := range maps.Keys(m) {
			if key != p[0] && !k8s.Equal(m[key], gone[key]) {
				t.Fatalf("another field, %s, was changed", key)
			}
		}
		if !k8s.Equal(k8s.Without(m, "d"), m) || !k8s.Equal(m, before) {
			t.Fatalf("the argument was modified: %s", cmp.Diff(before, m))
		}
		deep := k8s.Copy(m)
		k8s.Ensure(deep, p...)["x"] = "y"
		if k8s.Text(deep, append(slices.Clone(p), "x")...) != "y" || !k8s.Equal(m, before) {
			t.Fatal("Ensure returns a copy of the mapping, or Copy shares it")
		}
	})
}

func TestEqual(t *testing.T) {
	same := k8s.Object{"a": []any{map[string]any{"b": nil}}}
	if !k8s.Equal(same, map[string]any{"a": []any{map[string]any{"b": nil}}}) || !k8s.Equal(map[string]any(same), same) {
		t.Error("an Object is not equal to its mapping")
	}
	for _, other := range []any{nil, "a", []any{}, map[string]any{"a": []any{}}, map[string]any{"a": []any{map[string]any{"c": nil}}}} {
		if k8s.Equal(same, other) || k8s.Equal(other, same) {
			t.Errorf("%v is equal to %v", same, other)
		}
	}
	if k8s.Equal(int64(1), json.Number("1")) {
		t.Error("numbers of two types are equal")
	}
}

func TestObject(t *testing.T) {
	o := k8s.New("apps/v1", "Deployment", "ns", "d")
	if got := o.Key(); got != (k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}) || got.String() != "Deployment.apps ns/d" {
		t.Errorf("got %v", got)
	}
	core := k8s.New("v1", "Namespace", "", "n")
	if _, set := k8s.Map(core, "metadata")["namespace"]; set || core.Key().String() != "Namespace n" || !core.Is("", "Namespace") || core.Is("apps", "Namespace") {
		t.Errorf("got %v", core)
	}
	if core.Key().Compare(o.Key()) <= 0 || o.Key().Compare(o.Key()) != 0 {
		t.Error("keys are not in the order of kinds")
	}
}
