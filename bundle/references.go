package bundle

import (
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// checkReferences says which Secrets and ConfigMaps the operator's pods need
// that the bundle does not bring.
func checkReferences(c *checker) {
	known := c.brought()
	serving := map[string]bool{}
	for _, w := range c.csv.Webhooks {
		serving[w.DeploymentName] = true
	}
	for _, a := range c.csv.OwnedAPIs {
		serving[a.DeploymentName] = true
	}
	for _, d := range c.csv.Deployments {
		pod := kobj.Map(d.Spec, "template", "spec")
		replaced := map[string]bool{"webhook-cert": serving[d.Name], "apiservice-cert": serving[d.Name]}
		for _, container := range kobj.Items(pod, "containers") {
			for _, m := range kobj.Items(container, "volumeMounts") {
				path := strings.TrimRight(kobj.Text(m, "mountPath"), "/")
				if serving[d.Name] && (path == "/tmp/k8s-webhook-server/serving-certs" || path == "/apiserver.local.config/certificates") {
					replaced[kobj.Text(m, "name")] = true
				}
			}
		}
		expect := func(kind string, ref map[string]any, key string) {
			if name := kobj.Text(ref, key); name != "" && ref["optional"] != true && !known[kind+" "+name] {
				c.warnf("expected-from-outside", "%s: %s %q is not in the bundle and is expected to exist", d.Field, kind, name)
			}
		}
		podReferences(pod, replaced, expect)
	}
}

// podReferences calls expect for each Secret and ConfigMap that a pod names,
// but for the volumes that are replaced.
func podReferences(pod map[string]any, replaced map[string]bool, expect func(kind string, ref map[string]any, key string)) {
	for _, v := range kobj.Items(pod, "volumes") {
		if replaced[kobj.Text(v, "name")] {
			continue
		}
		expect("Secret", kobj.Map(v, "secret"), "secretName")
		expect("ConfigMap", kobj.Map(v, "configMap"), "name")
		for _, source := range kobj.Items(v, "projected", "sources") {
			expect("Secret", kobj.Map(source, "secret"), "name")
			expect("ConfigMap", kobj.Map(source, "configMap"), "name")
		}
	}
	for _, container := range kobj.Containers(pod) {
		for _, env := range kobj.Items(container, "env") {
			from := kobj.Map(env, "valueFrom")
			expect("Secret", kobj.Map(from, "secretKeyRef"), "name")
			expect("ConfigMap", kobj.Map(from, "configMapKeyRef"), "name")
		}
		for _, from := range kobj.Items(container, "envFrom") {
			expect("Secret", kobj.Map(from, "secretRef"), "name")
			expect("ConfigMap", kobj.Map(from, "configMapRef"), "name")
		}
	}
	for _, ref := range kobj.Items(pod, "imagePullSecrets") {
		expect("Secret", ref, "name")
	}
}

// brought returns the Secrets and ConfigMaps that the bundle ships, or that
// something it ships makes.
func (c *checker) brought() map[string]bool {
	out := map[string]bool{}
	for _, o := range c.b.Objects {
		switch kind := o.Kind(); {
		case o.Group() == "" && (kind == "Secret" || kind == "ConfigMap"):
			out[kind+" "+o.Name()] = true
		case o.Is("", "Service"):
			annotations := kobj.Map(o.Object, "metadata", "annotations")
			for _, key := range []string{"service.beta.openshift.io/serving-cert-secret-name", "service.alpha.openshift.io/serving-cert-secret-name"} {
				out["Secret "+kobj.Text(annotations, key)] = true
			}
		case o.Is("cert-manager.io", "Certificate"):
			out["Secret "+kobj.Text(o.Object, "spec", "secretName")] = true
		}
	}
	return out
}
