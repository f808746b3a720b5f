package bundle

import (
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// checkReferences warns about Secrets and ConfigMaps that the operator's pods need, but that are
// not in the bundle.
func checkReferences(c *checker) {
	known := c.providedNames()
	serving := map[string]bool{}
	for _, w := range c.csv.Webhooks {
		serving[w.DeploymentName] = true
	}
	for _, a := range c.csv.OwnedAPIs {
		serving[a.DeploymentName] = true
	}
	for _, d := range c.csv.Deployments {
		pod := k8s.Map(d.Spec, "template", "spec")
		replaced := map[string]bool{"volumes[webhook-cert]": serving[d.Name], "volumes[apiservice-cert]": serving[d.Name]}
		for _, container := range k8s.Items(pod, "containers") {
			for _, m := range k8s.Items(container, "volumeMounts") {
				path := strings.TrimRight(k8s.Text(m, "mountPath"), "/")
				if serving[d.Name] && (path == "/tmp/k8s-webhook-server/serving-certs" || path == "/apiserver.local.config/certificates") {
					replaced["volumes["+k8s.Text(m, "name")+"]"] = true
				}
			}
		}
		k8s.PodReferences(pod, func(field, kind, name string) {
			if !replaced[field] && !known[kind+" "+name] {
				c.warnf("expected-from-outside", "%s: %s %q is not in the bundle and must already exist", d.Field, kind, name)
			}
		})
	}
}

// providedNames returns the set of Secrets and ConfigMaps that installing the bundle provides, as "Kind name".
// These are the Secrets and ConfigMaps in the bundle, and the serving certificates that OpenShift or
// cert-manager creates for Services and Certificates of the bundle.
func (c *checker) providedNames() map[string]bool {
	out := map[string]bool{}
	for _, o := range c.b.Objects {
		switch kind := o.Kind(); {
		case o.Group() == "" && (kind == "Secret" || kind == "ConfigMap"):
			out[kind+" "+o.Name()] = true
		case o.Is("", "Service"):
			annotations := k8s.Map(o.Object, "metadata", "annotations")
			for _, key := range []string{"service.beta.openshift.io/serving-cert-secret-name", "service.alpha.openshift.io/serving-cert-secret-name"} {
				out["Secret "+k8s.Text(annotations, key)] = true
			}
		case o.Is("cert-manager.io", "Certificate"):
			out["Secret "+k8s.Text(o.Object, "spec", "secretName")] = true
		}
	}
	return out
}
