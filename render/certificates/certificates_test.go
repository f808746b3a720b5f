package certificates_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/certificates"
)

// TestProviders takes every provider of the table through the same cases.
func TestProviders(t *testing.T) {
	settings := []certificates.Settings{
		{CASecret: "pki/ca"}, {CABundle: []byte("pem"), Secret: "one"}, {CABundle: []byte("pem"), CASecret: "pki/ca", Secret: "%s-tls"},
	}
	for _, name := range certificates.Names() {
		for _, s := range settings {
			p, err := certificates.Of(certificates.Name(name), s)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			service := kobj.New("v1", "Service", "ns", "d-service")
			if got := p.Serve(service); got.Key() != service.Key() || kobj.Map(service, "metadata", "annotations") != nil {
				t.Errorf("%s: the Service was changed in place, or is another", name)
			}
			if p.Secret("d-service") == "" || strings.Contains(p.Secret("d-service"), "%") {
				t.Errorf("%s: Secret %q", name, p.Secret("d-service"))
			}
			for _, o := range p.Issue("ns", "d-service") {
				if o.Namespace() != "ns" || o.Is("", "Secret") {
					t.Errorf("%s: makes %s", name, o.Key())
				}
				if o.Kind() == "Certificate" && kobj.Text(o, "spec", "secretName") != p.Secret("d-service") {
					t.Errorf("%s: the certificate goes into another Secret than the pods mount", name)
				}
			}
			for _, o := range callers() {
				before := kobj.Copy(o)
				got := p.Trust(o, "ns", "d-service")
				if !kobj.Equal(o, before) {
					t.Errorf("%s: %s was changed", name, o.Key())
				}
				// The CA comes either with the object or by a controller.
				if (certificates.Injector(got) != "") == strings.Contains(strings.Join(bundles(got), ""), "cGVt") {
					t.Errorf("%s: %s has %q and %v", name, o.Key(), bundles(got), kobj.Map(got, "metadata", "annotations"))
				}
			}
		}
	}
}

// callers returns what calls a Service and needs its CA.
func callers() []kobj.Object {
	hook := kobj.New("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "w")
	hook["webhooks"] = []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": "d-service"}}}}
	return []kobj.Object{hook, kobj.New("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com"), kobj.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")}
}

// bundles returns the CAs that an object holds itself.
func bundles(o kobj.Object) []string {
	out := []string{kobj.Text(o, "spec", "caBundle"), kobj.Text(o, "spec", "conversion", "webhook", "clientConfig", "caBundle")}
	for _, h := range kobj.Items(o, "webhooks") {
		out = append(out, kobj.Text(h, "clientConfig", "caBundle"))
	}
	return out
}

// TestInjector wants a controller only where an object asks one by a value that it heeds.
func TestInjector(t *testing.T) {
	for annotation, want := range map[string]certificates.Name{
		"cert-manager.io/inject-ca-from=ns/c": certificates.CertManager, "cert-manager.io/inject-ca-from-secret=ns/c": certificates.Secret,
		"service.beta.openshift.io/inject-cabundle=true": certificates.OpenShiftServiceCA, "service.beta.openshift.io/inject-cabundle=false": "",
		"cert-manager.io/inject-ca-from=": "", "other=true": "",
	} {
		key, value, _ := strings.Cut(annotation, "=")
		for _, o := range callers() {
			if got := certificates.Injector(kobj.Annotate(o, map[string]string{key: value})); got != want {
				t.Errorf("%s with %s: %q, want %q", o.Key(), annotation, got, want)
			}
		}
	}
}

// TestWithoutCA takes the CA away and nothing else, also beside what is no webhook, and
// does not change its argument.
func TestWithoutCA(t *testing.T) {
	for _, want := range callers() {
		if kobj.Items(want, "webhooks") != nil {
			want = kobj.With(want, append(kobj.List(want, "webhooks"), "no webhook"), "webhooks")
		}
		o := kobj.With(want, "a CA", "spec", "caBundle")
		o = kobj.With(o, map[string]any{"caBundle": "a CA", "url": "https://example.com"}, "spec", "conversion", "webhook", "clientConfig")
		want = kobj.With(want, map[string]any{"url": "https://example.com"}, "spec", "conversion", "webhook", "clientConfig")
		if hooks := kobj.Items(o, "webhooks"); len(hooks) > 0 {
			o = kobj.With(o, []any{kobj.With(hooks[0], "a CA", "clientConfig", "caBundle"), "no webhook"}, "webhooks")
		}
		before := kobj.Copy(o)
		if got := certificates.WithoutCA(o); !kobj.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", o.Key(), got, want)
		}
		if !kobj.Equal(o, before) {
			t.Errorf("%s: the argument was changed", o.Key())
		}
	}
}

func TestOf(t *testing.T) {
	if _, err := certificates.Of("vault", certificates.Settings{}); err == nil || err.Error() != `certificates: "vault" is none of cert-manager, openshift-service-ca, secret` {
		t.Errorf("got %v", err)
	}
	p, err := certificates.Of("", certificates.Settings{})
	if err != nil || len(p.Issue("ns", "s")) == 0 {
		t.Errorf("an empty name is not cert-manager: %v", err)
	}
	s, err := certificates.Of(certificates.Secret, certificates.Settings{})
	if err != nil || s.Check() == nil || s.Secret("s") != "s-cert" {
		t.Errorf("a Secret without a CA is taken, or has another name: %v", err)
	}
}

// TestCommonName stays within what X.509 allows, 64 bytes, and uses all of them.
func TestCommonName(t *testing.T) {
	p, err := certificates.Of(certificates.CertManager, certificates.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{63, 64, 65} {
		service := strings.Repeat("s", length-len(".ns"))
		objects := p.Issue("ns", service)
		got := kobj.Text(objects[1], "spec", "commonName")
		if want := service + ".ns"; length <= 64 && got != want || length > 64 && got != "" {
			t.Errorf("a host of %d bytes: commonName %q", length, got)
		}
	}
}
