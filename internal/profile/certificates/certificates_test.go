package certificates_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// TestProviders checks all providers with the same cases.
func TestProviders(t *testing.T) {
	ca := map[string][]byte{"certificateSecret.caFile": []byte("pem")}
	settings := []certificates.ProviderSettings{
		{CertificateSecret: certificates.SecretSettings{CASecret: "pki/ca"}},
		{CertificateSecret: certificates.SecretSettings{Name: "one"}, Contents: ca},
		{CertificateSecret: certificates.SecretSettings{CASecret: "pki/ca", Name: "%s-tls"}, Contents: ca},
	}
	for _, name := range certificates.Names() {
		for _, s := range settings {
			p, err := certificates.NewProvider(certificates.Name(name), s)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			service := k8s.New("v1", "Service", "ns", "d-service")
			if got := p.Serve(service); got.Key() != service.Key() || k8s.Map(service, "metadata", "annotations") != nil {
				t.Errorf("%s: Serve modified its argument, or returned another object", name)
			}
			if p.Secret("d-service") == "" || strings.Contains(p.Secret("d-service"), "%") {
				t.Errorf("%s: Secret %q", name, p.Secret("d-service"))
			}
			for _, o := range p.Issue("ns", "d-service") {
				if o.Namespace() != "ns" || o.Is("", "Secret") {
					t.Errorf("%s: issues by %s", name, o.Key())
				}
				if o.Kind() == "Certificate" && k8s.Text(o, "spec", "secretName") != p.Secret("d-service") {
					t.Errorf("%s: the certificate is stored in another Secret than the pods mount", name)
				}
			}
			for _, o := range webhookClients() {
				before := k8s.Copy(o)
				got := p.Trust(o, "ns", "d-service")
				if !k8s.Equal(o, before) {
					t.Errorf("%s: Trust modified %s", name, o.Key())
				}
				// The CA is either part of the object or injected by a controller.
				if (certificates.Injector(got) != "") == strings.Contains(strings.Join(bundles(got), ""), "cGVt") {
					t.Errorf("%s: %s has %q and %v", name, o.Key(), bundles(got), k8s.Map(got, "metadata", "annotations"))
				}
			}
		}
	}
}

// webhookClients returns objects that call a Service and need its CA.
func webhookClients() []k8s.Object {
	hook := k8s.New("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "w")
	hook["webhooks"] = []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": "d-service"}}}}
	return []k8s.Object{hook, k8s.New("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com"), k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")}
}

// bundles returns the CA bundles in an object.
func bundles(o k8s.Object) []string {
	out := []string{k8s.Text(o, "spec", "caBundle"), k8s.Text(o, "spec", "conversion", "webhook", "clientConfig", "caBundle")}
	for _, h := range k8s.Items(o, "webhooks") {
		out = append(out, k8s.Text(h, "clientConfig", "caBundle"))
	}
	return out
}

// TestInjector checks that only annotation values that request an injection have an injector.
func TestInjector(t *testing.T) {
	for annotation, want := range map[string]certificates.Name{
		"cert-manager.io/inject-ca-from=ns/c": certificates.CertManager, "cert-manager.io/inject-ca-from-secret=ns/c": certificates.Secret,
		"service.beta.openshift.io/inject-cabundle=true": certificates.OpenShiftServiceCA, "service.beta.openshift.io/inject-cabundle=false": "",
		"cert-manager.io/inject-ca-from=": "", "other=true": "",
	} {
		key, value, _ := strings.Cut(annotation, "=")
		for _, o := range webhookClients() {
			if got := certificates.Injector(k8s.Annotate(o, map[string]string{key: value})); got != want {
				t.Errorf("%s with %s: %q, want %q", o.Key(), annotation, got, want)
			}
		}
	}
}

// TestWithoutCA checks that only the CA is removed, even from lists with invalid webhooks, and that the
// argument is not modified.
func TestWithoutCA(t *testing.T) {
	for _, want := range webhookClients() {
		if k8s.Items(want, "webhooks") != nil {
			want = k8s.With(want, append(k8s.List(want, "webhooks"), "no webhook"), "webhooks")
		}
		o := k8s.With(want, "a CA", "spec", "caBundle")
		o = k8s.With(o, map[string]any{"caBundle": "a CA", "url": "https://example.com"}, "spec", "conversion", "webhook", "clientConfig")
		want = k8s.With(want, map[string]any{"url": "https://example.com"}, "spec", "conversion", "webhook", "clientConfig")
		if hooks := k8s.Items(o, "webhooks"); len(hooks) > 0 {
			o = k8s.With(o, []any{k8s.With(hooks[0], "a CA", "clientConfig", "caBundle"), "no webhook"}, "webhooks")
		}
		before := k8s.Copy(o)
		if got := certificates.WithoutCA(o); !k8s.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", o.Key(), got, want)
		}
		if !k8s.Equal(o, before) {
			t.Errorf("%s: the argument was modified", o.Key())
		}
	}
}

// TestNewProvider checks unknown names, the default and settings without a CA.
func TestNewProvider(t *testing.T) {
	if _, err := certificates.NewProvider("vault", certificates.ProviderSettings{}); err == nil || err.Error() != `certificates: "vault": must be one of `+strings.Join(certificates.Names(), ", ") {
		t.Errorf("got %v", err)
	}
	p, err := certificates.NewProvider("", certificates.ProviderSettings{})
	if err != nil || len(p.Issue("ns", "s")) == 0 {
		t.Errorf("the default is not cert-manager: %v", err)
	}
	s, err := certificates.NewProvider(certificates.Secret, certificates.ProviderSettings{})
	if err != nil || s.Check() == nil || s.Secret("s") != "s-cert" {
		t.Errorf("a Secret without a CA is accepted, or has another name: %v", err)
	}
}

// TestCommonName checks the limit of 64 bytes for common names.
func TestCommonName(t *testing.T) {
	p, err := certificates.NewProvider(certificates.CertManager, certificates.ProviderSettings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{63, 64, 65} {
		service := strings.Repeat("s", length-len(".ns"))
		objects := p.Issue("ns", service)
		got := k8s.Text(objects[1], "spec", "commonName")
		if want := service + ".ns"; length <= 64 && got != want || length > 64 && got != "" {
			t.Errorf("a host of %d bytes: commonName %q", length, got)
		}
	}
}

// TestDefault checks that OpenShift's own provider is the default on OpenShift, and nowhere else.
func TestDefault(t *testing.T) {
	if got := certificates.Default(false); got != certificates.CertManager {
		t.Errorf("on Kubernetes: %s", got)
	}
	if got := certificates.Default(true); got != certificates.OpenShiftServiceCA {
		t.Errorf("on OpenShift: %s", got)
	}
}

// TestIsInjected checks which requested CAs are injected: the service CA only on OpenShift, unless it is
// the chosen provider.
func TestIsInjected(t *testing.T) {
	for _, c := range []struct {
		annotation string
		chosen     certificates.Name
		openshift  bool
		want       bool
	}{
		{"cert-manager.io/inject-ca-from=ns/c", certificates.CertManager, false, true},
		{"cert-manager.io/inject-ca-from=ns/c", certificates.OpenShiftServiceCA, true, true},
		{"service.beta.openshift.io/inject-cabundle=true", certificates.CertManager, false, false},
		{"service.beta.openshift.io/inject-cabundle=true", certificates.CertManager, true, true},
		{"service.beta.openshift.io/inject-cabundle=true", certificates.OpenShiftServiceCA, false, true},
		{"service.beta.openshift.io/inject-cabundle=false", certificates.OpenShiftServiceCA, true, false},
		{"other=true", certificates.CertManager, true, false},
	} {
		key, value, _ := strings.Cut(c.annotation, "=")
		o := k8s.Annotate(k8s.New("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com"), map[string]string{key: value})
		if got := certificates.IsInjected(o, c.chosen, c.openshift); got != c.want {
			t.Errorf("%s with %s, OpenShift %t: %t", c.annotation, c.chosen, c.openshift, got)
		}
	}
}

// TestFaults checks the faults in the settings of a Secret.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		set    certificates.SecretSettings
		chosen certificates.Name
		want   string
	}{
		{certificates.SecretSettings{}, certificates.CertManager, ""},
		{certificates.SecretSettings{Name: "%s-tls", CASecret: "pki/ca"}, certificates.Secret, ""},
		{certificates.SecretSettings{CAFile: "ca.pem"}, certificates.CertManager, "certificateSecret needs spec.certificates: secret"},
		{certificates.SecretSettings{Name: "%s-%s"}, certificates.Secret, `certificateSecret.name "%s-%s" is not a Kubernetes name with at most one %s`},
		{certificates.SecretSettings{CASecret: "ca"}, certificates.Secret, `certificateSecret.caSecret "ca" is not namespace/name`},
		{certificates.SecretSettings{CAFile: "ca.pem", CASecret: "pki/ca"}, certificates.Secret, "certificateSecret.caSecret conflicts with spec.certificateSecret.caFile: set only one CA"},
	} {
		var got []string
		for _, f := range (certificates.ProviderSettings{CertificateSecret: c.set}).Faults(c.chosen) {
			got = append(got, f.Field+" "+f.Message)
		}
		if d := cmp.Diff(c.want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%+v with %s (-want +got):\n%s", c.set, c.chosen, d)
		}
	}
}

// TestPEM checks that a fault names its certificate.
func TestPEM(t *testing.T) {
	for text, want := range map[string]string{"not base64": "certificates[0]: illegal base64 data at input byte 3", "bm8gREVS": "certificates[0]: x509: malformed certificate"} {
		if _, err := certificates.PEM([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
