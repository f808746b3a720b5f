package k8s_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
)

type object = map[string]any

func TestMatches(t *testing.T) {
	labels := map[string]string{"a": "1", "b": ""}
	expr := func(key, op string, values ...string) *k8s.Selector {
		return &k8s.Selector{MatchExpressions: []k8s.SelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for i, c := range []struct {
		sel  *k8s.Selector
		want bool
	}{
		{nil, true},
		{&k8s.Selector{}, true},
		{&k8s.Selector{MatchLabels: map[string]string{"a": "1"}}, true},
		{&k8s.Selector{MatchLabels: map[string]string{"a": "2"}}, false},
		{&k8s.Selector{MatchLabels: map[string]string{"c": ""}}, false},
		{expr("a", "In", "1", "2"), true},
		{expr("c", "In", ""), false},
		{expr("a", "NotIn", "1"), false},
		{expr("c", "NotIn", "1"), true},
		{expr("b", "Exists"), true},
		{expr("c", "Exists"), false},
		{expr("c", "DoesNotExist"), true},
		{expr("a", "DoesNotExist"), false},
		{expr("a", "Unknown"), false},
	} {
		if got := c.sel.Matches(labels); got != c.want {
			t.Errorf("case %d: got %v", i, got)
		}
	}
}

// TestOfAgrees checks that a selector in a decoded object matches the same labels as an equal selector in Go types.
func TestOfAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c"})
		typed := k8s.Selector{MatchLabels: rapid.MapOf(word, word).Draw(t, "labels")}
		match, list := object{}, []any{}
		for k, v := range typed.MatchLabels {
			match[k] = v
		}
		for range rapid.IntRange(0, 3).Draw(t, "requirements") {
			r := k8s.SelectorRequirement{Key: word.Draw(t, "key"), Operator: rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt"}).Draw(t, "operator")}
			if r.Operator == "In" || r.Operator == "NotIn" {
				r.Values = rapid.SliceOfN(word, 0, 2).Draw(t, "values")
			}
			values := []any{}
			for _, v := range r.Values {
				values = append(values, v)
			}
			typed.MatchExpressions = append(typed.MatchExpressions, r)
			list = append(list, object{"key": r.Key, "operator": r.Operator, "values": values})
		}
		have := rapid.MapOf(word, word).Draw(t, "have")
		set, ok := k8s.SelectorOf(object{"matchLabels": match, "matchExpressions": list})
		if got, want := ok && set.Matches(labelSet(have)), typed.Matches(have); got != want {
			t.Fatalf("%+v for labels %v: selector of an object: %v, typed selector: %v", typed, have, got, want)
		}
		for _, r := range typed.MatchExpressions {
			refused := r.Operator == "Gt" || len(r.Values) == 0 && slices.Contains([]string{"In", "NotIn"}, r.Operator)
			if refused && (ok || typed.Matches(have)) {
				t.Fatalf("invalid %+v is accepted", r)
			}
		}
	})
}

type labelSet map[string]string

func (s labelSet) Has(label string) bool              { _, ok := s[label]; return ok }
func (s labelSet) Get(label string) string            { return s[label] }
func (s labelSet) Lookup(label string) (string, bool) { v, ok := s[label]; return v, ok }

func TestOf(t *testing.T) {
	if _, ok := k8s.SelectorOf(nil); ok {
		t.Error("a missing selector is accepted")
	}
	if s, ok := k8s.SelectorOf(object{}); !ok || !s.Empty() || !s.Matches(labelSet{"a": "b"}) {
		t.Error("an empty selector does not select everything")
	}
}

func TestOfPods(t *testing.T) {
	for _, c := range []struct {
		name     string
		selector object
		want     string
	}{
		{"ok/labels", object{"matchLabels": object{"b": "2", "a": "1"}}, "a=1,b=2"},
		{"ok/expressions", object{"matchLabels": object{"a": "1"}, "matchExpressions": []any{
			object{"key": "b", "operator": "In", "values": []any{"x", "y"}},
			object{"key": "c", "operator": "NotIn", "values": []any{"z"}},
			object{"key": "d", "operator": "Exists"},
			object{"key": "e", "operator": "DoesNotExist"},
		}}, "a=1,b in (x,y),c notin (z),d,!e"},
		{"error/none", object{}, ""},
		{"error/unknown operator", object{"matchExpressions": []any{object{"key": "b", "operator": "Near"}}}, ""},
		{"error/no text", object{"matchLabels": object{"a": int64(1)}}, ""},
	} {
		got, ok := k8s.PodSelectorOf(object{"spec": object{"selector": c.selector}})
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %q, %v", c.name, got, ok)
		}
	}
	for name, spec := range map[string]any{
		"none": object{}, "text": object{"selector": "app"}, "wrong type": object{"selector": object{"matchLabels": []any{"a"}}}, "no spec": nil,
	} {
		if s, ok := k8s.PodSelectorOf(object{"spec": spec}); ok {
			t.Errorf("%s: got %q", name, s)
		}
	}
}
