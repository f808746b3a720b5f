package catalog

import (
	"strings"
	"testing"
)

// TestManagedNamespace checks the cases of operator-controller's tests.
func TestManagedNamespace(t *testing.T) {
	for _, c := range []struct{ template, name, want, fault string }{
		{want: "lamp-system"},
		{name: "desk", want: "desk"},
		{template: `{"metadata":{"name":"home"}}`, want: "home"},
		{template: `{"metadata":{"name":"home"}}`, name: "desk", want: "home"},
		{template: `{"metadata":{"labels":{"a":"b"}}}`, name: "desk", want: "desk"},
		{template: `{"metadata":{"labels":{"a":"b"}}}`, want: "lamp-system"},
		{template: `{"metadata"`, name: "desk", fault: "is not a Namespace in JSON"},
		{template: `{"metadata":{"name":"Home"}}`, fault: `"Home", from ` + SuggestedNamespaceTemplate + ", is not a valid namespace name"},
		{name: "a.b", fault: `"a.b", from ` + SuggestedNamespace + ", is not"},
		{name: strings.Repeat("a", 64), fault: "is not a valid namespace name"},
	} {
		got, err := ManagedNamespace("lamp", map[string]string{SuggestedNamespaceTemplate: c.template, SuggestedNamespace: c.name})
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	if got, err := ManagedNamespace(strings.Repeat("a", 60), nil); err == nil {
		t.Errorf("a package whose namespace would be too long: got %q", got)
	}
}
