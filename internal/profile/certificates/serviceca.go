package certificates

import (
	"github.com/quayside/quayside/internal/k8s"
)

// OpenShiftServiceCA makes OpenShift sign the certificate of every Service that requests one.
const OpenShiftServiceCA Name = "openshift-service-ca"

const injectBundle = "service.beta.openshift.io/inject-cabundle"

type serviceCA struct{ base }

func (serviceCA) Injects() []string { return []string{injectBundle} }

// Runs returns openshift: the controller is part of OpenShift.
func (serviceCA) Runs(openshift bool) bool { return openshift }

func (serviceCA) Serve(service k8s.Object) k8s.Object {
	return k8s.Annotate(service, map[string]string{"service.beta.openshift.io/serving-cert-secret-name": certificateName(service.Name())})
}

func (serviceCA) Trust(o k8s.Object, _, _ string) k8s.Object {
	return withAnnotation(o, injectBundle, "true")
}
