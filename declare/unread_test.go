package declare

import "testing"

// TestMayGroup checks whether text that cannot be read may contain the OperatorGroup of namespace ns.
func TestMayGroup(t *testing.T) {
	group := func(namespace string) string {
		return "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata:\n  name: g\n" + namespace
	}
	subscription := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: s, namespace: ns}\n"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"in the namespace":             {group("  namespace: ns\n"), true},
		"quoted":                       {group("  namespace: \"ns\"\n"), true},
		"at the end":                   {group("  namespace: ns"), true},
		"in another namespace":         {group("  namespace: other\n") + "---\n" + subscription, false},
		"a longer name":                {group("  namespace: ns-other\n"), false},
		"without namespace":            {group("") + "---\n" + subscription, true},
		"without namespace, elsewhere": {group(""), false},
		"placeholder":                  {group("  namespace: ${NS}\n") + "---\n" + subscription, true},
		"kustomization":                {group("  namespace: other\n") + "---\nresources: [g.yaml]\nnamespace: ns\n", true},
		"another kustomization":        {group("  namespace: ns2\n") + "---\nresources: [g.yaml]\nnamespace: other\n---\n" + subscription, false},
		"no OperatorGroup":             {subscription, false},
	} {
		if got := (Unread{text: []byte(c.text)}).MayGroup("ns"); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	for namespace, want := range map[string]bool{"": true, "ns": true, "other": false} {
		if got := (Unread{Kind: "OperatorGroup", Namespace: namespace}).MayGroup("ns"); got != want {
			t.Errorf("an OperatorGroup in %q: got %t, want %t", namespace, got, want)
		}
	}
}
