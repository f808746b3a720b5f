package plan

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
)

// untrustedObjects returns the objects of the tree that would make the API server reject an operator's
// certificates: webhooks without a CA, and objects with another CA than OLM's.
func (m *planBuilder) untrustedObjects(op *operator) []k8s.Ref {
	authorities := map[[2]string]map[string]bool{} // by the namespace and name of a Service
	for _, o := range op.Objects {
		if live := m.Snapshot.Get(o.Key); live != nil {
			for _, c := range adopt.ClientConfigs(live.Body()) {
				authorities[serviceOf(c)] = mergeSets(authorities[serviceOf(c)], certificatesIn(k8s.Text(c, "caBundle")))
			}
		}
	}
	var out []k8s.Ref
	for _, o := range op.Objects {
		ours := m.tree[o.Key]
		for _, c := range adopt.ClientConfigs(ours) {
			if !isTrusted(c, authorities[serviceOf(c)], ours.Key().IsWebhookConfig()) {
				out = append(out, k8s.RefTo(ours))
				break
			}
		}
	}
	return out
}

// isTrusted reports whether a client configuration of the tree accepts a Service's certificates:
// it contains all CA certificates of OLM, or, unless a CA is needed, it has none and OLM's is kept. A
// configuration without a Service is always trusted.
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

// certificatesIn returns the certificates in a base64-encoded PEM text, in DER.
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
// operator; empty if there are none.
func (m *planBuilder) certificateExpiry(op *operator) string {
	pin, _ := m.Lock.Pin(op.Namespace, op.Package)
	if pin.Adopted == nil || len(pin.Adopted.Certificates) == 0 {
		return ""
	}
	certificates := map[string]bool{} // in DER
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
