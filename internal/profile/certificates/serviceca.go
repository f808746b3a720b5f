package certificates

import (
	"github.com/quayside/quayside/internal/k8s"
)

// OpenShiftServiceCA is the provider that requests certificates from the service CA operator of
// OpenShift.
const OpenShiftServiceCA Name = "openshift-service-ca"

const injectBundle = "service.beta.openshift.io/inject-cabundle"

type serviceCA struct{ base }

func (serviceCA) InjectAnnotations() []string { return []string{injectBundle} }

// CanRun returns openshift, because the controller is part of OpenShift.
func (serviceCA) CanRun(openshift bool) bool { return openshift }

func (serviceCA) Serve(service k8s.Object) k8s.Object {
	return k8s.Annotate(service, map[string]string{"service.beta.openshift.io/serving-cert-secret-name": certificateName(service.Name())})
}

func (serviceCA) Trust(o k8s.Object, _, _ string) k8s.Object {
	return withAnnotation(o, injectBundle, "true")
}
