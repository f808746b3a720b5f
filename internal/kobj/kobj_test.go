package kobj_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/kobj"
)

// anyValue draws what a file can hold.
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

// TestReadersAgree holds every reader against At, and At against a walk.
func TestReadersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := mapping(3).Draw(t, "m"), path().Draw(t, "path")
		var want any = m
		for _, key := range p {
			step, _ := want.(map[string]any)
			want = step[key]
		}
		if got := kobj.At(m, p...); !kobj.Equal(got, want) {
			t.Fatalf("At: got %v, want %v", got, want)
		}
		text, _ := want.(string)
		list, _ := want.([]any)
		child, _ := want.(map[string]any)
		if kobj.Text(m, p...) != text || kobj.True(m, p...) != (want == true) || !kobj.Equal(kobj.List(m, p...), list) || !kobj.Equal(kobj.Map(m, p...), child) {
			t.Fatalf("the readers do not agree about %v", want)
		}
		for _, item := range kobj.Items(m, p...) {
			if !slices.ContainsFunc(list, func(v any) bool { return kobj.Equal(v, item) }) {
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
		if len(kobj.Texts(m, p...)) != strings || len(kobj.Items(m, p...)) != mappings || len(kobj.TextMap(m, p...)) != len(child) {
			t.Fatalf("Texts, Items and TextMap of %v lose or add something", want)
		}
	})
}

// TestChangesAreCopies changes an object in every way and wants it to be as it
// was, and the change to be there.
func TestChangesAreCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := mapping(3).Draw(t, "m"), path().Draw(t, "path")
		before := kobj.Copy(m)
		with := kobj.With(m, "new", p...)
		if kobj.Text(with, p...) != "new" {
			t.Fatalf("With: got %v", kobj.At(with, p...))
		}
		gone := kobj.Without(with, p...)
		if _, there := kobj.Map(gone, p[:len(p)-1]...)[p[len(p)-1]]; there {
			t.Fatal("Without leaves the value")
		}
		for key := range maps.Keys(m) {
			if key != p[0] && !kobj.Equal(m[key], gone[key]) {
				t.Fatalf("%s was changed too", key)
			}
		}
		if !kobj.Equal(kobj.Without(m, "d"), m) || !kobj.Equal(m, before) {
			t.Fatalf("the argument was changed: %s", cmp.Diff(before, m))
		}
		deep := kobj.Copy(m)
		kobj.Ensure(deep, p...)["x"] = "y"
		if kobj.Text(deep, append(slices.Clone(p), "x")...) != "y" || !kobj.Equal(m, before) {
			t.Fatal("Ensure does not give the object's own mapping, or Copy shares it")
		}
	})
}

func TestEqual(t *testing.T) {
	same := kobj.Object{"a": []any{map[string]any{"b": nil}}}
	if !kobj.Equal(same, map[string]any{"a": []any{map[string]any{"b": nil}}}) || !kobj.Equal(map[string]any(same), same) {
		t.Error("an Object is not equal to its mapping")
	}
	for _, other := range []any{nil, "a", []any{}, map[string]any{"a": []any{}}, map[string]any{"a": []any{map[string]any{"c": nil}}}} {
		if kobj.Equal(same, other) || kobj.Equal(other, same) {
			t.Errorf("%v is equal to %v", same, other)
		}
	}
	if kobj.Equal(int64(1), json.Number("1")) {
		t.Error("numbers of two types are equal")
	}
}

func TestObject(t *testing.T) {
	o := kobj.New("apps/v1", "Deployment", "ns", "d")
	if got := o.Key(); got != (kobj.Key{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}) || got.String() != "Deployment.apps ns/d" {
		t.Errorf("got %v", got)
	}
	core := kobj.New("v1", "Namespace", "", "n")
	if _, set := kobj.Map(core, "metadata")["namespace"]; set || core.Key().String() != "Namespace n" || !core.Is("", "Namespace") || core.Is("apps", "Namespace") {
		t.Errorf("got %v", core)
	}
	if core.Key().Compare(o.Key()) <= 0 || o.Key().Compare(o.Key()) != 0 {
		t.Error("keys are not in the order of kinds")
	}
}
