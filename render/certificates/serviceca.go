package certificates

import (
	"github.com/quayside/quayside/internal/kobj"
)

// OpenShiftServiceCA has OpenShift sign the certificate of every Service that
// asks for one.
const OpenShiftServiceCA Name = "openshift-service-ca"

const injectBundle = "service.beta.openshift.io/inject-cabundle"

type serviceCA struct{}

func (serviceCA) Check() error                    { return nil }
func (serviceCA) Secret(service string) string    { return of(service) }
func (serviceCA) Issue(_, _ string) []kobj.Object { return nil }
func (serviceCA) Injects() []string               { return []string{injectBundle} }

func (serviceCA) Serve(service kobj.Object) kobj.Object {
	return kobj.Annotate(service, map[string]string{"service.beta.openshift.io/serving-cert-secret-name": of(service.Name())})
}

func (serviceCA) Trust(o kobj.Object, _, _ string) kobj.Object {
	return annotated(o, injectBundle, "true")
}
