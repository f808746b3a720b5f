package live_test

import (
	"testing"

	"github.com/quayside/quayside/report/live"
)

func TestPodSelector(t *testing.T) {
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
		{"error/no text", object{"matchLabels": object{"a": 1}}, ""},
	} {
		got, ok := live.PodSelector(object{"spec": object{"selector": c.selector}})
		if got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, got, ok)
		}
	}
}
