package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// customResourceDefinitions returns the CRDs of the bundle as v1. Their conversion webhooks refer
// to the generated Services.
func customResourceDefinitions(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, file := range in.b.Objects {
		if !k8s.IsCRD(file.Object) {
			continue
		}
		o, err := in.atServedVersion(file)
		if err != nil {
			errs.Add(file.Pos(), err)
			continue
		}
		o = plainMetadata(o)
		o, err = in.checkTypes(file.Pos(), o)
		errs.Add(file.Pos(), err)
		if o = k8s.Without(o, "metadata", "namespace"); !in.b.Complete {
			o = in.withConversionWebhook(o)
		}
		out = append(out, o)
	}
	return out, errs.Err()
}

// withConversionWebhook returns a CRD with the conversion webhook of the CSV. If the CSV has none, it changes a
// webhook in the CRD file so that the webhook refers to the bundle's Service.
func (in *install) withConversionWebhook(crd Object) Object {
	for _, w := range in.b.CSV.Webhooks {
		if w.Type == bundle.Conversion && slices.Contains(w.ConversionCRDs, crd.Name()) {
			return in.withCSVWebhook(crd, w)
		}
	}
	service := k8s.Map(crd, "spec", "conversion", "webhook", "clientConfig", "service")
	if service == nil {
		return crd
	}
	name := in.ownService(k8s.Text(service, "name"))
	if name == "" {
		in.warn(in.csvPos(), "conversion-webhook-outside", "CRD %q has a conversion webhook at Service %q in namespace %q, which is not in the bundle",
			crd.Name(), k8s.Text(service, "name"), k8s.Text(service, "namespace"))
		return crd
	}
	service = maps.Clone(service)
	service["name"], service["namespace"] = name, in.pin.Namespace
	if port := in.onlyPort(name); port != nil {
		service["port"] = port
	}
	crd = k8s.With(crd, service, "spec", "conversion", "webhook", "clientConfig", "service")
	if in.isGeneratedService(name) {
		// A caBundle in the file belongs to a certificate that quayside does not use.
		crd = in.injectCA(k8s.Without(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"), name)
	}
	return crd
}

// withCSVWebhook returns a CRD with the conversion webhook from the CSV.
func (in *install) withCSVWebhook(crd Object, w bundle.Webhook) Object {
	service := in.services[w.DeploymentName]
	webhook := k8s.With(k8s.Map(crd, "spec", "conversion", "webhook"), map[string]any{"service": map[string]any{
		"name": service, "namespace": in.pin.Namespace, "path": cmp.Or(w.Path, "/"), "port": w.ContainerPort,
	}}, "clientConfig")
	if versions, ok := w.Fields["admissionReviewVersions"]; ok {
		webhook["conversionReviewVersions"] = versions
	}
	crd = k8s.With(crd, map[string]any{"strategy": "Webhook", "webhook": webhook}, "spec", "conversion")
	return in.injectCA(crd, service)
}

// onlyPort returns the port of a generated Service. It returns nil if the Service has several ports. It also
// returns nil for the default port, which need not be set.
func (in *install) onlyPort(service string) any {
	for deployment, name := range in.services {
		ports := in.servicePorts(deployment)
		if port := ports[0].(map[string]any)["port"]; name == service && len(ports) == 1 && port != int64(defaultAPIServicePort) {
			return port
		}
	}
	return nil
}

// isGeneratedService reports whether a Service with this name is generated for the CSV.
func (in *install) isGeneratedService(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(in.services)), name)
}

// ownService returns the name of the bundle's Service to which a file refers by name. This is the generated or
// shipped Service with this name. If there is none, the name may be from the author's own tools: the result is
// the only generated Service. If no or several Services are generated, it is "".
func (in *install) ownService(name string) string {
	if in.isGeneratedService(name) {
		return name
	}
	for _, o := range in.b.Objects {
		if o.Is("", "Service") && o.Name() == name {
			return name
		}
	}
	names := slices.Compact(slices.Sorted(maps.Values(in.services)))
	if len(names) == 1 {
		return names[0]
	}
	return ""
}
