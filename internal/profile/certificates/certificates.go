// Package certificates provides serving certificates for webhooks and API services, and distributes
// the CA to their clients.
//
// A new provider needs one file and one entry in providerTable. A provider with settings also needs a field
// in [ProviderSettings]. No other code depends on the name of a provider. No provider writes a private
// key to the tree.
//
// Start from [NewProvider] and [Provider].
package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// Name is the name of a provider in quayside.yaml.
type Name string

// Provider requests certificates for the Services in bundles. Implementations embed base and
// override some of its methods.
type Provider interface {
	// Check returns an error if the settings are not sufficient for certificates.
	Check() error

	// Secret returns the name of the Secret that contains the certificate of a Service.
	Secret(service string) string

	// Serve returns a Service with the annotations that request a certificate for this Service.
	Serve(service k8s.Object) k8s.Object

	// Issue returns the objects that request a certificate for a Service.
	Issue(namespace, service string) []k8s.Object

	// Trust returns a webhook configuration, CRD or APIService with the CA of a Service's
	// certificate, or with an annotation that requests this CA.
	Trust(o k8s.Object, namespace, service string) k8s.Object

	// InjectAnnotations returns the names of the annotations by which an object requests a CA from
	// the provider's controller.
	InjectAnnotations() []string

	// CanRun reports whether the provider's controller can run in the clusters. openshift means
	// that they are OpenShift clusters.
	CanRun(openshift bool) bool

	// Issues reports whether a kind is one of the provider's kinds for certificates and their
	// issuers.
	Issues(group, kind string) bool

	// Files returns the file names in the settings, relative to quayside.yaml, by field below spec.
	// The file name of a field that is not set is "".
	Files() map[string]string

	// Faults returns the faults in the provider's settings. chosen means that the workspace uses
	// this provider.
	Faults(chosen bool) []Fault
}

// Fault is an invalid setting of a provider.
type Fault struct {
	Field   string // field path below spec in quayside.yaml: "certificateSecret.name"
	Message string
}

// base implements Provider without settings and without objects.
type base struct{}

func (base) Check() error                        { return nil }
func (base) Secret(service string) string        { return certificateName(service) }
func (base) Serve(service k8s.Object) k8s.Object { return service }
func (base) Issue(_, _ string) []k8s.Object      { return nil }
func (base) CanRun(bool) bool                    { return true }
func (base) Issues(_, _ string) bool             { return false }
func (base) Files() map[string]string            { return nil }
func (base) Faults(bool) []Fault                 { return nil }

// ProviderSettings are the fields of all providers below spec in quayside.yaml.
type ProviderSettings struct {
	CertificateSecret SecretSettings `json:"certificateSecret" doc:"The user's own certificates, for spec.certificates: secret."`

	Contents map[string][]byte `json:"-"` // contents of Files by field, in PEM format
}

// Files returns the file names in the settings of all providers, relative to quayside.yaml, by
// field below spec. The file name of a field that is not set is "".
func (s ProviderSettings) Files() map[string]string {
	out := map[string]string{}
	for _, l := range providerTable() {
		maps.Copy(out, l.provider(s).Files())
	}
	return out
}

// Faults returns the faults in the settings of all providers. chosen is the provider that the
// workspace uses.
func (s ProviderSettings) Faults(chosen Name) []Fault {
	var out []Fault
	for _, l := range providerTable() {
		out = append(out, l.provider(s).Faults(l.name == chosen)...)
	}
	return out
}

// entry is one row of providerTable.
type entry struct {
	name     Name
	provider func(ProviderSettings) Provider
}

func providerTable() []entry {
	return []entry{
		{CertManager, func(ProviderSettings) Provider { return certManager{} }},
		{OpenShiftServiceCA, func(ProviderSettings) Provider { return serviceCA{} }},
		{Secret, func(s ProviderSettings) Provider { return secretOf(s) }},
	}
}

// Names returns the names of all providers.
func Names() []string {
	var out []string
	for _, l := range providerTable() {
		out = append(out, string(l.name))
	}
	return out
}

// Default returns the default provider: the first in providerTable or, on OpenShift, the first that runs only
// on OpenShift.
func Default(openshift bool) Name {
	all := providerTable()
	i := slices.IndexFunc(all, func(l entry) bool {
		p := l.provider(ProviderSettings{})
		return openshift && p.CanRun(true) && !p.CanRun(false)
	})
	return all[max(0, i)].name
}

// NewProvider returns the provider with this name. An empty name means the default.
func NewProvider(name Name, s ProviderSettings) (Provider, error) {
	for _, l := range providerTable() {
		if l.name == name || name == "" {
			return l.provider(s), nil
		}
	}
	return nil, fmt.Errorf("certificates: %q: must be one of %s", name, strings.Join(Names(), ", "))
}

// Enum returns the valid values of Name, for JSON schemas.
func (Name) Enum() []string { return Names() }

// PEM converts certificates, each in base64-encoded DER, to one PEM file. The error contains the
// index of an invalid certificate.
func PEM(der []string) ([]byte, error) {
	var out []byte
	for i, text := range der {
		data, err := base64.StdEncoding.DecodeString(text)
		if err == nil {
			_, err = x509.ParseCertificate(data)
		}
		if err != nil {
			return nil, fmt.Errorf("certificates[%d]: %w", i, err)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})...)
	}
	return out, nil
}

// Injector returns the provider whose controller injects a CA into o, according to the annotations
// of o. It returns "" if there is none.
func Injector(o k8s.Object) Name {
	annotations := k8s.Map(o, "metadata", "annotations")
	for _, l := range providerTable() {
		for _, key := range l.provider(ProviderSettings{}).InjectAnnotations() {
			if value := k8s.Text(annotations, key); value != "" && value != "false" {
				return l.name
			}
		}
	}
	return ""
}

// IsInjected reports whether a controller in the clusters injects a CA into o. The controller must
// belong to the chosen provider, or to another provider that can run in the clusters.
func IsInjected(o k8s.Object, chosen Name, openshift bool) bool {
	by := Injector(o)
	for _, l := range providerTable() {
		if l.name == by {
			return by == chosen || l.provider(ProviderSettings{}).CanRun(openshift)
		}
	}
	return false
}

// Issues reports whether a kind is for certificates or their issuers. The operator that provides such
// a kind is applied early, so that operators that need certificates come after it. It is applied early
// even if no installed operator needs a certificate.
func Issues(group, kind string) bool {
	return slices.ContainsFunc(providerTable(), func(l entry) bool { return l.provider(ProviderSettings{}).Issues(group, kind) })
}

// WithoutCA returns o without the CA bundles by which the API server verifies webhooks and API
// services.
func WithoutCA(o k8s.Object) k8s.Object {
	return withoutCA(o, func(any) bool { return true })
}

// WithoutEmptyCA returns o without CA bundles that contain no certificate, such as a line break. Code
// generators write it as a placeholder that a controller replaces.
func WithoutEmptyCA(o k8s.Object) k8s.Object {
	return withoutCA(o, func(ca any) bool {
		text, ok := ca.(string)
		data, err := base64.StdEncoding.DecodeString(text)
		return ok && err == nil && len(bytes.TrimSpace(data)) == 0
	})
}

// withoutCA returns o without the CA bundles for which drop returns true.
func withoutCA(o k8s.Object, drop func(ca any) bool) k8s.Object {
	for _, at := range [][]string{{"spec"}, {"spec", "conversion", "webhook", "clientConfig"}} {
		if ca, set := k8s.Map(o, at...)["caBundle"]; set && drop(ca) {
			o = k8s.Without(o, append(at, "caBundle")...)
		}
	}
	out := slices.Clone(k8s.List(o, "webhooks"))
	changed := false
	for i, hook := range out {
		fields, _ := hook.(map[string]any)
		if ca, set := k8s.Map(fields, "clientConfig")["caBundle"]; set && drop(ca) {
			out[i], changed = k8s.Without(fields, "clientConfig", "caBundle"), true
		}
	}
	if !changed {
		return o
	}
	return k8s.With(o, out, "webhooks")
}

// InjectAnnotations returns the annotations by which controllers inject a CA, each with a certificate
// ("namespace/name") or Service as its value.
func InjectAnnotations() []string {
	var out []string
	for _, l := range providerTable() {
		out = append(out, l.provider(ProviderSettings{}).InjectAnnotations()...)
	}
	return out
}

// certificateName returns the name of the certificate of a Service, and of the Secret that contains
// it.
func certificateName(service string) string { return k8s.Suffixed(service, "cert") }

// withAnnotation returns a copy of o with an annotation. Unlike k8s.Annotate, it replaces an existing
// value.
func withAnnotation(o k8s.Object, key, value string) k8s.Object {
	return k8s.With(o, value, "metadata", "annotations", key)
}
