package bundle

import (
	"slices"
	"strings"
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
		pod := child(child(d.Spec, "template"), "spec")
		replaced := map[string]bool{"webhook-cert": serving[d.Name], "apiservice-cert": serving[d.Name]}
		for _, container := range each(pod, "containers") {
			for _, m := range each(container, "volumeMounts") {
				path := strings.TrimRight(text(m, "mountPath"), "/")
				if serving[d.Name] && (path == "/tmp/k8s-webhook-server/serving-certs" || path == "/apiserver.local.config/certificates") {
					replaced[text(m, "name")] = true
				}
			}
		}
		expect := func(kind string, ref map[string]any, key string) {
			if name := text(ref, key); name != "" && ref["optional"] != true && !known[kind+" "+name] {
				c.warnf("expected-from-outside", "%s: %s %q is not in the bundle and is expected to exist", d.Field, kind, name)
			}
		}
		podReferences(pod, replaced, expect)
	}
}

// podReferences calls expect for each Secret and ConfigMap that a pod names,
// but for the volumes that are replaced.
func podReferences(pod map[string]any, replaced map[string]bool, expect func(kind string, ref map[string]any, key string)) {
	for _, v := range each(pod, "volumes") {
		if replaced[text(v, "name")] {
			continue
		}
		expect("Secret", child(v, "secret"), "secretName")
		expect("ConfigMap", child(v, "configMap"), "name")
		for _, source := range each(child(v, "projected"), "sources") {
			expect("Secret", child(source, "secret"), "name")
			expect("ConfigMap", child(source, "configMap"), "name")
		}
	}
	for _, container := range slices.Concat(each(pod, "containers"), each(pod, "initContainers")) {
		for _, env := range each(container, "env") {
			from := child(env, "valueFrom")
			expect("Secret", child(from, "secretKeyRef"), "name")
			expect("ConfigMap", child(from, "configMapKeyRef"), "name")
		}
		for _, from := range each(container, "envFrom") {
			expect("Secret", child(from, "secretRef"), "name")
			expect("ConfigMap", child(from, "configMapRef"), "name")
		}
	}
	for _, ref := range each(pod, "imagePullSecrets") {
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
		case o.Group() == "" && kind == "Service":
			annotations := child(child(o.Fields, "metadata"), "annotations")
			for _, key := range []string{"service.beta.openshift.io/serving-cert-secret-name", "service.alpha.openshift.io/serving-cert-secret-name"} {
				out["Secret "+text(annotations, key)] = true
			}
		case o.Group() == "cert-manager.io" && kind == "Certificate":
			out["Secret "+text(child(o.Fields, "spec"), "secretName")] = true
		}
	}
	return out
}

// each returns the objects of the list at key.
func each(m map[string]any, key string) []map[string]any {
	list, _ := m[key].([]any)
	var out []map[string]any
	for _, v := range list {
		if item, ok := v.(map[string]any); ok {
			out = append(out, item)
		}
	}
	return out
}
