package source

import "testing"

func TestFindKnown(t *testing.T) {
	for _, c := range []struct {
		text, openshift string
		ref             Ref
		known, fails    bool
	}{
		{"operatorhubio", "", "image:quay.io/operatorhubio/catalog:latest", true, false},
		{"operatorhubio@4.20", "", "", true, true},
		{"redhat", "4.20", "image:registry.redhat.io/redhat/redhat-operator-index:v4.20", true, false},
		{"redhat", "4.20.3", "image:registry.redhat.io/redhat/redhat-operator-index:v4.20", true, false},
		{"certified@v4.19", "4.20", "image:registry.redhat.io/redhat/certified-operator-index:v4.19", true, false},
		{"community", "", "", true, true},
		{"community@latest", "", "", true, true},
		{"mine", "4.20", "", false, false},
	} {
		k, ref, known, err := FindKnown(c.text, c.openshift)
		if ref != c.ref || known != c.known || (err != nil) != c.fails {
			t.Errorf("%s on %q: %q, %v, %v", c.text, c.openshift, ref, known, err)
		}
		if known && k.ID.Name == "" {
			t.Errorf("%s has no catalog name on a cluster", c.text)
		}
	}
}

func TestSuggested(t *testing.T) {
	for ref, want := range map[Ref]string{
		"image:quay.io:443/org/Other:v1": "other", "image:quay.io/org/x@sha256:0": "x", "oci:cat/prod/": "prod", "dir:.": ".",
	} {
		if got := ref.SuggestedName(); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}
