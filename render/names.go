package render

import (
	"github.com/quayside/quayside/internal/k8s"
)

// localName returns the name of a generated object in the install namespace, such as
// "etcd.etcd-operator".
func (in *install) localName(of string) string {
	return k8s.Fit(in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// globalName returns the name of a generated object outside of the install namespace, such as
// "my-etcd.etcd.etcd-operator". It starts with the install namespace, so that the names differ if
// the package is installed twice.
func (in *install) globalName(of string) string {
	return k8s.Fit(in.pin.Namespace+"."+in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// nameIn returns localName for the install namespace, and globalName for any other.
func (in *install) nameIn(namespace, of string) string {
	if namespace == in.pin.Namespace {
		return in.localName(of)
	}
	return in.globalName(of)
}

// serviceName returns the name of the generated Service of a Deployment.
func serviceName(deployment string) string {
	const suffix = "service"
	base := dashName(deployment)
	return k8s.Suffixed(base[:min(len(base), k8s.MaxLabel-len(suffix)-1)], suffix)
}
