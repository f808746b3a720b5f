package render

import (
	"github.com/quayside/quayside/internal/kobj"
)

// localName is the name of a generated object in the install namespace:
// "etcd.etcd-operator".
func (in *install) localName(of string) string {
	return kobj.Fit(in.pin.Package+"."+of, kobj.MaxSubdomain)
}

// globalName is the name of a generated object that lies outside the install
// namespace, which it begins with, so that a second install of the package
// has names of its own: "my-etcd.etcd.etcd-operator".
func (in *install) globalName(of string) string {
	return kobj.Fit(in.pin.Namespace+"."+in.pin.Package+"."+of, kobj.MaxSubdomain)
}

// nameIn is localName in the install namespace, globalName elsewhere.
func (in *install) nameIn(namespace, of string) string {
	if namespace == in.pin.Namespace {
		return in.localName(of)
	}
	return in.globalName(of)
}

// serviceName is the name of the Service in front of a deployment's webhooks.
func serviceName(deployment string) string {
	const suffix = "service"
	base := dashed(deployment)
	return kobj.Suffixed(base[:min(len(base), kobj.MaxLabel-len(suffix)-1)], suffix)
}
