package plan

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"time"

	"github.com/quayside/quayside/internal/k8s"
)

// untrustedObjects returns the objects of the tree whose CA is missing or is not OLM's. With such an object,
// the API server would reject the certificates of the operator.
func (m *facts) untrustedObjects(op *operator) []k8s.Ref {
	authorities := map[[2]string]map[string]bool{} // CA certificates by namespace and name of the Service
	for _, o := range op.Objects {
		if live := m.Snapshot.Get(o.Key); live != nil {
			for _, c := range k8s.ClientConfigs(live.Body()) {
				authorities[serviceOf(c)] = mergeSets(authorities[serviceOf(c)], certificatesIn(k8s.Text(c, "caBundle")))
			}
		}
	}
	var out []k8s.Ref
	for _, o := range op.Objects {
		ours := m.tree[o.Key]
		for _, c := range k8s.ClientConfigs(ours) {
			if !isTrusted(c, authorities[serviceOf(c)], ours.Key().IsWebhookConfig()) {
				out = append(out, k8s.RefTo(ours))
				break
			}
		}
	}
	return out
}

// isTrusted reports whether the API server accepts the certificates of a Service with this client
// configuration. The configuration must contain all CA certificates in authorities. If needsCA is false, it may
// also contain none, because the cluster then keeps OLM's certificates. A configuration without a Service is
// always trusted.
func isTrusted(client map[string]any, authorities map[string]bool, needsCA bool) bool {
	have := certificatesIn(k8s.Text(client, "caBundle"))
	switch {
	case k8s.Text(client, "service", "name") == "":
		return true
	case len(have) == 0:
		return !needsCA
	}
	for one := range authorities {
		if !have[one] {
			return false
		}
	}
	return true
}

func serviceOf(client map[string]any) [2]string {
	return [2]string{k8s.Text(client, "service", "namespace"), k8s.Text(client, "service", "name")}
}

// certificatesIn returns the certificates in a base64-encoded PEM text, as a set of DER encodings.
func certificatesIn(text string) map[string]bool {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		out[string(block.Bytes)] = true
	}
	return out
}

func mergeSets(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// certificateExpiry returns the earliest expiry date of the certificates that OLM issued for an
// operator, or "" if there are none.
func (m *facts) certificateExpiry(op *operator) string {
	pin, _ := m.Lock.Pin(op.Namespace, op.Package)
	if pin.Adopted == nil || len(pin.Adopted.Certificates) == 0 {
		return ""
	}
	certificates := map[string]bool{} // set of DER encodings
	for _, text := range pin.Adopted.Certificates {
		if der, err := base64.StdEncoding.DecodeString(text); err == nil {
			certificates[string(der)] = true
		}
	}
	for _, o := range op.Objects {
		if live := m.Snapshot.Get(o.Key); live != nil && o.Is("Secret") {
			maps.Copy(certificates, certificatesIn(k8s.Text(live.Body(), "data", "tls.crt")))
		}
	}
	day := ""
	for der := range certificates {
		c, err := x509.ParseCertificate([]byte(der))
		if err != nil {
			continue
		}
		if ends := c.NotAfter.UTC().Format(time.DateOnly); day == "" || ends < day {
			day = ends
		}
	}
	return day
}
