package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxLabel     = 63  // of Services and label values
	maxSubdomain = 253 // of most other names
)

// fit returns name if it has at most limit bytes, else its beginning and eight
// digits of the digest of the whole name. It never depends on content.
func fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:limit-9], "-._:") + "-" + hex.EncodeToString(sum[:4])
}

// localName is the name of a generated object in the install namespace:
// "etcd.etcd-operator".
func (in *install) localName(of string) string {
	return fit(in.pin.Package+"."+of, maxSubdomain)
}

// globalName is the name of a generated object that lies outside the install
// namespace, which it begins with, so that a second install of the package
// has names of its own: "my-etcd.etcd.etcd-operator".
func (in *install) globalName(of string) string {
	return fit(in.pin.Namespace+"."+in.pin.Package+"."+of, maxSubdomain)
}

// nameIn is localName in the install namespace, globalName elsewhere.
func (in *install) nameIn(namespace, of string) string {
	if namespace == in.pin.Namespace {
		return in.localName(of)
	}
	return in.globalName(of)
}

// suffixed returns base-suffix, the base cut where the two are longer than 63
// bytes, as OLM v1 does. Where they have exactly 63 the name has 64.
func suffixed(base, suffix string) string {
	if len(base)+len(suffix) > maxLabel {
		base = base[:maxLabel-len(suffix)-1]
	}
	return base + "-" + suffix
}

// serviceName is the name of the Service in front of a deployment's webhooks.
func serviceName(deployment string) string {
	const suffix = "service"
	base := dashed(deployment)
	return suffixed(base[:min(len(base), maxLabel-len(suffix)-1)], suffix)
}

// certificateName is the name of a Service's certificate and of its Secret.
func certificateName(service string) string { return suffixed(service, "cert") }
