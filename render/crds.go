package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// customResourceDefinitions passes the bundle's CRDs on, at the served version
// of their API, and points conversion webhooks at the right Service.
func customResourceDefinitions(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, file := range in.b.Objects {
		if !kobj.IsCRD(file.Object) {
			continue
		}
		o, err := in.versioned(file)
		if err != nil {
			errs.Add(file.Pos(), err)
			continue
		}
		o = plainMetadata(o)
		errs.Add(file.Pos(), in.typed(file.Pos(), o))
		out = append(out, in.conversion(kobj.Without(o, "metadata", "namespace")))
	}
	return out, errs.Err()
}

// conversion returns the CRD with the conversion webhook that the CSV lists
// for it. One that only the CRD file knows is pointed at the bundle's Service
// where it names one of them.
func (in *install) conversion(crd Object) Object {
	for _, w := range in.b.CSV.Webhooks {
		if w.Type == bundle.Conversion && slices.Contains(w.ConversionCRDs, crd.Name()) {
			return in.listedConversion(crd, w)
		}
	}
	service := kobj.Map(crd, "spec", "conversion", "webhook", "clientConfig", "service")
	if service == nil {
		return crd
	}
	name := in.ownService(kobj.Text(service, "name"))
	if name == "" {
		in.warn(in.csvPos(), "conversion-webhook-outside", "CRD %q is converted by Service %q in namespace %q, which the bundle does not bring",
			crd.Name(), kobj.Text(service, "name"), kobj.Text(service, "namespace"))
		return crd
	}
	service = maps.Clone(service)
	service["name"], service["namespace"] = name, in.pin.Namespace
	if port := in.onlyPort(name); port != nil {
		service["port"] = port
	}
	crd = kobj.With(crd, service, "spec", "conversion", "webhook", "clientConfig", "service")
	if in.generated(name) {
		// a caBundle belongs to another certificate
		crd = in.injectCA(kobj.Without(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"), name)
	}
	return crd
}

// listedConversion sets what the CSV says of a CRD's conversion.
func (in *install) listedConversion(crd Object, w bundle.Webhook) Object {
	service := in.services[w.DeploymentName]
	webhook := kobj.With(kobj.Map(crd, "spec", "conversion", "webhook"), map[string]any{"service": map[string]any{
		"name": service, "namespace": in.pin.Namespace, "path": cmp.Or(w.Path, "/"), "port": w.ContainerPort,
	}}, "clientConfig")
	if versions, ok := w.Fields["admissionReviewVersions"]; ok {
		webhook["conversionReviewVersions"] = versions
	}
	crd = kobj.With(crd, map[string]any{"strategy": "Webhook", "webhook": webhook}, "spec", "conversion")
	return in.injectCA(crd, service)
}

// onlyPort returns the port of a generated Service that has one, where that is
// not the one meant by default.
func (in *install) onlyPort(service string) any {
	for deployment, name := range in.services {
		ports := in.servicePorts(deployment)
		if port := ports[0].(map[string]any)["port"]; name == service && len(ports) == 1 && port != int64(defaultAPIServicePort) {
			return port
		}
	}
	return nil
}

// generated reports whether name is that of a Service that the CSV asks for.
func (in *install) generated(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(in.services)), name)
}

// ownService returns the bundle's Service that name means: one that is
// generated or shipped; the one generated Service, where the file still has
// the name that the author's own tooling gives it. Else "".
func (in *install) ownService(name string) string {
	if in.generated(name) {
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
