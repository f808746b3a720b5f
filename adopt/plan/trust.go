package plan

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/internal/kobj"
)

const (
	admissionGroup = "admissionregistration.k8s.io"
	apiGroup       = "apiregistration.k8s.io"
)

// webhook reports whether the API server asks a webhook because of an object
// before it lets anything in.
func webhook(o kobj.Object) bool {
	return o.Is(admissionGroup, "ValidatingWebhookConfiguration") || o.Is(admissionGroup, "MutatingWebhookConfiguration")
}

// clients returns by what the API server calls the Services that an object names.
func clients(o kobj.Object) []map[string]any {
	switch {
	case webhook(o):
		var out []map[string]any
		for _, w := range kobj.Items(o, "webhooks") {
			out = append(out, kobj.Map(w, "clientConfig"))
		}
		return out
	case kobj.IsCRD(o):
		return []map[string]any{kobj.Map(o, "spec", "conversion", "webhook", "clientConfig")}
	case o.Is(apiGroup, "APIService"):
		return []map[string]any{kobj.Map(o, "spec")}
	}
	return nil
}

// distrusted returns the objects of the tree by which the API server would refuse
// the certificates that an operator serves: its webhooks without a CA, and
// whatever has another CA than OLM's is.
func (m *maker) distrusted(op *adopt.Operator) []kobj.Ref {
	authorities := map[[2]string]map[string]bool{} // by the namespace and name of a Service, of OLM's certificates
	for _, o := range op.Objects {
		if live := m.Snapshot.Get(o.Key()); live != nil {
			for _, c := range clients(live.Body()) {
				authorities[serviceOf(c)] = union(authorities[serviceOf(c)], certificatesOf(c))
			}
		}
	}
	var out []kobj.Ref
	for _, o := range op.Objects {
		ours := m.tree[o.Key()]
		for _, c := range clients(ours) {
			if !trusts(c, authorities[serviceOf(c)], webhook(ours)) {
				out = append(out, kobj.RefTo(ours))
				break
			}
		}
	}
	return out
}

// trusts reports whether a client of the tree's accepts what a Service serves: one
// without a CA where none is needed, for then OLM's stays, and one with all that
// OLM's has.
func trusts(client map[string]any, authorities map[string]bool, needed bool) bool {
	have := certificatesOf(client)
	switch {
	case kobj.Text(client, "service", "name") == "":
		return true
	case len(have) == 0:
		return !needed
	}
	for one := range authorities {
		if !have[one] {
			return false
		}
	}
	return true
}

func serviceOf(client map[string]any) [2]string {
	return [2]string{kobj.Text(client, "service", "namespace"), kobj.Text(client, "service", "name")}
}

// certificatesOf returns the certificates of a client's CA, each as it is encoded.
func certificatesOf(client map[string]any) map[string]bool {
	data, err := base64.StdEncoding.DecodeString(kobj.Text(client, "caBundle"))
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		out[string(block.Bytes)] = true
	}
	return out
}

func union(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// certificatesEnd returns the day on which the first of the certificates that OLM
// issued for an operator ends; empty where it has none.
func (m *maker) certificatesEnd(op *adopt.Operator) string {
	pin, _ := m.Lock.Pin(op.Namespace, op.Package)
	if pin.Adopted == nil || len(pin.Adopted.Certificates) == 0 {
		return ""
	}
	encoded := slices.Clone(pin.Adopted.Certificates)
	for _, o := range op.Objects {
		if live := m.Snapshot.Get(o.Key()); live != nil && o.Kind == "Secret" && o.Group == "" {
			encoded = append(encoded, leaves(kobj.Text(live.Body(), "data", "tls.crt"))...)
		}
	}
	day := ""
	for _, text := range encoded {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			continue
		}
		if ends := c.NotAfter.UTC().Format(time.DateOnly); day == "" || ends < day {
			day = ends
		}
	}
	return day
}

// leaves returns the certificates of a Secret, in DER and base64.
func leaves(text string) []string {
	var out []string
	for der := range certificatesOf(map[string]any{"caBundle": text}) {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(der)))
	}
	return out
}
