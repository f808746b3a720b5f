package render

import (
	"github.com/quayside/quayside/internal/k8s"
)

// localName returns the name of a generated object in the install namespace:
// "etcd.etcd-operator".
func (in *install) localName(of string) string {
	return k8s.Fit(in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// globalName returns the name of a generated object outside the install namespace. It starts with
// that namespace, so that a second install of the package gets other names:
// "my-etcd.etcd.etcd-operator".
func (in *install) globalName(of string) string {
	return k8s.Fit(in.pin.Namespace+"."+in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// nameIn returns localName in the install namespace and globalName elsewhere.
func (in *install) nameIn(namespace, of string) string {
	if namespace == in.pin.Namespace {
		return in.localName(of)
	}
	return in.globalName(of)
}

// serviceName returns the name of the Service for a deployment's webhooks and APIs.
func serviceName(deployment string) string {
	const suffix = "service"
	base := dashName(deployment)
	return k8s.Suffixed(base[:min(len(base), k8s.MaxLabel-len(suffix)-1)], suffix)
}
