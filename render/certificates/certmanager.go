package certificates

import (
	"github.com/quayside/quayside/internal/kobj"
)

// CertManager has cert-manager issue a self-signed certificate for each Service.
const CertManager Name = "cert-manager"

const (
	injectFrom       = "cert-manager.io/inject-ca-from"
	injectFromSecret = "cert-manager.io/inject-ca-from-secret" //nolint:gosec // the name of an annotation
)

type certManager struct{}

func (certManager) Check() error                          { return nil }
func (certManager) Secret(service string) string          { return of(service) }
func (certManager) Serve(service kobj.Object) kobj.Object { return service }
func (certManager) Injects() []string                     { return []string{injectFrom} }

// Issue returns a self-signed issuer and the certificate of a Service.
func (certManager) Issue(namespace, service string) []kobj.Object {
	name := of(service)
	issuer := kobj.New("cert-manager.io/v1", "Issuer", namespace, kobj.Suffixed(name, "selfsigned-issuer"))
	issuer["spec"] = map[string]any{"selfSigned": map[string]any{}}
	host := service + "." + namespace
	spec := map[string]any{
		"dnsNames":    kobj.Values(host, host+".svc", host+".svc.cluster.local"),
		"duration":    "17520h0m0s",
		"renewBefore": "24h0m0s",
		"issuerRef":   map[string]any{"name": issuer.Name()},
		"secretName":  name,
		"usages":      kobj.Values("server auth"),
	}
	if len(host) <= 64 { // the limit of X.509
		spec["commonName"] = host
	}
	cert := kobj.New("cert-manager.io/v1", "Certificate", namespace, name)
	cert["spec"] = spec
	return []kobj.Object{issuer, cert}
}

func (certManager) Trust(o kobj.Object, namespace, service string) kobj.Object {
	return annotated(o, injectFrom, namespace+"/"+of(service))
}
