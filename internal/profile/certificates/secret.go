package certificates

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Secret is the provider for certificates in Secrets that the user creates.
const Secret Name = "secret"

// SecretSettings names the Secrets with the serving certificates of webhooks, and the CA that
// signed the certificates. If an operator has webhooks, either CAFile or CASecret is required.
type SecretSettings struct {
	Name     string `json:"name" default:"\"%s-cert\"" doc:"Name of the Secret with tls.crt and tls.key, in the operator's namespace. %s is replaced by the name of the Service."`
	CAFile   string `json:"caFile" doc:"File with the certificates of the CA in PEM, relative to this file."`
	CASecret string `json:"caSecret" doc:"Secret (namespace/name) with the CA for cert-manager's injector."`
}

type secret struct {
	base
	SecretSettings
	ca []byte // certificates of the CA, in PEM format
}

const (
	fieldSecret = "certificateSecret"
	fieldCAFile = fieldSecret + ".caFile"
)

func secretOf(s ProviderSettings) secret {
	return secret{SecretSettings: s.CertificateSecret, ca: s.Contents[fieldCAFile]}
}

// FromCA returns a provider for certificates in existing Secrets that were signed by a CA. pem is
// the certificate of the CA.
func FromCA(pem []byte) Provider { return secret{ca: pem} }

func (s secret) Check() error {
	if len(s.ca) == 0 && s.CASecret == "" {
		return errors.New("certificates from a Secret need their CA: set spec.certificateSecret.caFile or .caSecret in quayside.yaml")
	}
	return nil
}

func (s secret) Secret(service string) string {
	return strings.Replace(cmp.Or(s.Name, "%s-cert"), "%s", service, 1)
}

func (secret) InjectAnnotations() []string { return []string{injectFromSecret} }

// Files returns the file name of the CA.
func (s secret) Files() map[string]string {
	return map[string]string{fieldCAFile: s.CAFile}
}

func (s secret) Faults(chosen bool) []Fault {
	if s.SecretSettings == (SecretSettings{}) {
		return nil
	}
	var out []Fault
	add := func(field, format string, args ...any) { out = append(out, Fault{field, fmt.Sprintf(format, args...)}) }
	if !chosen {
		add(fieldSecret, "needs spec.certificates: %s", Secret)
	}
	if name := strings.Replace(s.Name, "%s", "x", 1); s.Name != "" && !yamlnode.IsDNS1123Subdomain(name) {
		add(fieldSecret+".name", "%q is not a Kubernetes name with at most one %%s", s.Name)
	}
	if s.CASecret == "" {
		return out
	}
	if s.CAFile != "" {
		add(fieldSecret+".caSecret", "conflicts with spec.certificateSecret.caFile: set only one CA")
	}
	ns, name, _ := strings.Cut(s.CASecret, "/")
	if !yamlnode.IsDNS1123Label(ns) || !yamlnode.IsDNS1123Subdomain(name) {
		add(fieldSecret+".caSecret", "%q is not namespace/name", s.CASecret)
	}
	return out
}

func (s secret) Trust(o k8s.Object, _, _ string) k8s.Object {
	if len(s.ca) == 0 {
		return withAnnotation(o, injectFromSecret, s.CASecret)
	}
	text := base64.StdEncoding.EncodeToString(s.ca)
	switch o.Kind() {
	case "APIService":
		return k8s.With(o, text, "spec", "caBundle")
	case "CustomResourceDefinition":
		return k8s.With(o, text, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	var hooks []any
	for _, h := range k8s.Items(o, "webhooks") {
		hooks = append(hooks, k8s.With(h, text, "clientConfig", "caBundle"))
	}
	return k8s.With(o, hooks, "webhooks")
}
