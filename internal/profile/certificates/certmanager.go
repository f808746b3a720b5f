package certificates

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// CertManager is the provider that requests a self-signed certificate from cert-manager for each
// Service.
const CertManager Name = "cert-manager"

const (
	injectFrom       = "cert-manager.io/inject-ca-from"
	injectFromSecret = "cert-manager.io/inject-ca-from-secret" //nolint:gosec // the name of an annotation
)

type certManager struct{ base }

func (certManager) InjectAnnotations() []string { return []string{injectFrom} }

func (certManager) Issues(group, kind string) bool {
	return group == "cert-manager.io" && slices.Contains([]string{"Certificate", "Issuer", "ClusterIssuer"}, kind)
}

// Issue returns a self-signed issuer and the certificate of a Service.
func (certManager) Issue(namespace, service string) []k8s.Object {
	name := certificateName(service)
	issuer := k8s.New("cert-manager.io/v1", "Issuer", namespace, k8s.Suffixed(name, "selfsigned-issuer"))
	issuer["spec"] = map[string]any{"selfSigned": map[string]any{}}
	host := service + "." + namespace
	spec := map[string]any{
		"dnsNames":    k8s.Values(host, host+".svc", host+".svc.cluster.local"),
		"duration":    "17520h0m0s",
		"renewBefore": "24h0m0s",
		"issuerRef":   map[string]any{"name": issuer.Name()},
		"secretName":  name,
		"usages":      k8s.Values("server auth"),
	}
	if len(host) <= 64 { // longer names are not valid as X.509 common names
		spec["commonName"] = host
	}
	cert := k8s.New("cert-manager.io/v1", "Certificate", namespace, name)
	cert["spec"] = spec
	return []k8s.Object{issuer, cert}
}

func (certManager) Trust(o k8s.Object, namespace, service string) k8s.Object {
	return withAnnotation(o, injectFrom, namespace+"/"+certificateName(service))
}
