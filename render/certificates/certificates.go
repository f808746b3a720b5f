// Package certificates is who makes the serving certificates of webhooks and
// API services, and how what calls these learns of the CA.
//
// A provider is a file here and a line in the table. None of them puts a private
// key into the tree.
//
// Start from [Of] and [Provider].
package certificates

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Name is the name of a provider, as in quayside.yaml.
type Name string

// Provider makes the certificates of the Services that bundles need.
type Provider interface {
	// Check refuses settings with which no certificate can be had.
	Check() error

	// Secret returns the name of the Secret with a Service's certificate.
	Secret(service string) string

	// Serve returns a Service with what has a certificate made for it.
	Serve(service kobj.Object) kobj.Object

	// Issue returns the objects that make the certificate of a Service.
	Issue(namespace, service string) []kobj.Object

	// Trust says on a webhook configuration, CRD or APIService where the CA of
	// a Service's certificate comes from.
	Trust(o kobj.Object, namespace, service string) kobj.Object

	// Injects returns the annotations by which a controller is asked to fill
	// in a CA.
	Injects() []string
}

// Settings are what the providers may be told. Those who need none read none.
type Settings struct {
	Secret   string // name of the Secret with tls.crt and tls.key; %s stands for the Service's name; "": "%s-cert"
	CABundle []byte // the CA's certificates in PEM …
	CASecret string // … or "namespace/name" of a Secret that cert-manager's injector reads
}

// line is one line of the table.
type line struct {
	name     Name
	provider func(Settings) Provider
}

// table lists the providers; the first one is the default.
func table() []line {
	return []line{
		{CertManager, func(Settings) Provider { return certManager{} }},
		{OpenShiftServiceCA, func(Settings) Provider { return serviceCA{} }},
		{Secret, func(s Settings) Provider { return secret{s} }},
	}
}

// Names returns the names of all providers.
func Names() []string {
	var out []string
	for _, l := range table() {
		out = append(out, string(l.name))
	}
	return out
}

// Of returns the provider of a name. An empty one is the first of the table.
func Of(name Name, s Settings) (Provider, error) {
	for _, l := range table() {
		if l.name == name || name == "" {
			return l.provider(s), nil
		}
	}
	return nil, fmt.Errorf("certificates: %q is none of %s", name, strings.Join(Names(), ", "))
}

// Enum returns the names that a Name may be, for the schema.
func (Name) Enum() []string { return Names() }

// PEM returns certificates in DER and base64 as one file in PEM. The error says
// which is none.
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

// Injector returns the provider whose controller an object asks to fill in a CA; "" where
// it asks none.
func Injector(o kobj.Object) Name {
	annotations := kobj.Map(o, "metadata", "annotations")
	for _, l := range table() {
		for _, key := range l.provider(Settings{}).Injects() {
			if value := kobj.Text(annotations, key); value != "" && value != "false" {
				return l.name
			}
		}
	}
	return ""
}

// WithoutCA returns an object without the CA by which the API server calls a Service.
func WithoutCA(o kobj.Object) kobj.Object {
	o = kobj.Without(kobj.Without(o, "spec", "caBundle"), "spec", "conversion", "webhook", "clientConfig", "caBundle")
	hooks := kobj.List(o, "webhooks")
	if len(hooks) == 0 {
		return o
	}
	out := slices.Clone(hooks)
	for i, hook := range hooks {
		if fields, is := hook.(map[string]any); is {
			out[i] = kobj.Without(fields, "clientConfig", "caBundle")
		}
	}
	return kobj.With(o, out, "webhooks")
}

// of returns the name of a Service's certificate, and of its Secret where the
// provider makes that.
func of(service string) string { return kobj.Suffixed(service, "cert") }

func annotated(o kobj.Object, key, value string) kobj.Object {
	return kobj.With(o, value, "metadata", "annotations", key)
}
