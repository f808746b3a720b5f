package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// renderDeployments generates the Deployments of the CSV.
func renderDeployments(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, d := range in.b.CSV.Deployments {
		o := k8s.New("apps/v1", "Deployment", in.pin.Namespace, d.Name)
		if len(d.Labels) > 0 {
			o = k8s.Label(o, d.Labels)
		}
		spec := k8s.Copy(d.Spec)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["revisionHistoryLimit"] = int64(1)
		o["spec"] = spec
		defaultPorts(podOf(spec))
		o = in.distinct(in.csvPos(), o)
		spec = k8s.Map(o, "spec")
		pod := podOf(spec)
		annotations, err := in.templateAnnotations(spec)
		if err != nil {
			return nil, err
		}
		setAnnotations(spec, annotations)
		if service, ok := in.services[d.Name]; ok {
			in.mountCertificates(pod, in.opt.provider.Secret(service))
		}
		in.config.applyInPlace(o)
		in.addRecordedAnnotations(o)
		errs.Add(in.pin.Pos, in.config.checkMounts(in.pin.Pos, o))
		in.addEnvironment(pod)
		out = append(out, o)
	}
	return out, errs.Err()
}

// podOf returns the pod spec in the spec of a Deployment. If there is no pod spec, it adds an empty one.
func podOf(spec map[string]any) map[string]any { return k8s.Ensure(spec, "template", "spec") }

// defaultPorts sets a missing protocol of container ports to TCP, which is the default in the CRD of
// ClusterServiceVersion.
func defaultPorts(pod map[string]any) {
	for _, c := range k8s.Containers(pod) {
		for _, port := range k8s.Items(c, "ports") {
			if _, ok := port["protocol"]; !ok {
				port["protocol"] = "TCP"
			}
		}
	}
}

func setAnnotations(spec map[string]any, annotations map[string]string) {
	have := k8s.Ensure(k8s.Ensure(spec, "template"), "metadata", "annotations")
	for k, v := range annotations {
		have[k] = v
	}
}

// templateAnnotations returns the annotations of the pod template. These are the annotations that OLM sets, and
// the annotations of the CSV that a container reads. With Options.CSVAnnotations, or for an adopted operator,
// they include all annotations of the CSV.
func (in *install) templateAnnotations(spec map[string]any) (map[string]string, error) {
	read := ReadAnnotations(k8s.Map(spec, "template", "spec"))
	own := k8s.Map(spec, "template", "metadata", "annotations")
	out := map[string]string{}
	csv := maps.Clone(in.b.CSV.Annotations)
	if err := in.addProperties(csv, read); err != nil {
		return nil, err
	}
	adopted := in.pin.Adopted != nil
	for key, value := range csv {
		if _, set := own[key]; adopted || !set && (in.opt.CSVAnnotations || read["*"] || read[key]) {
			out[key] = value
		}
	}
	out["olm.targetNamespaces"] = strings.Join(in.watch, ",")
	out["olm.operatorNamespace"] = in.pin.Namespace
	if in.pin.OperatorGroup != "" {
		out["olm.operatorGroup"] = in.pin.OperatorGroup
	}
	return out, nil
}

// addProperties adds annotations with the properties of the bundle to csv, the annotations of the CSV. It adds
// operatorframework.io/properties (the format of OLM v0) if a container reads this annotation or the operator is
// adopted. It adds olm.properties (the format of OLM v1) if a container reads this annotation or
// Options.CSVAnnotations is set. The map read contains the annotations that containers read.
func (in *install) addProperties(csv map[string]string, read map[string]bool) error {
	if in.pin.Adopted != nil || read["operatorframework.io/properties"] {
		text, err := jsonText(map[string]any{"properties": propertyList(in.properties())})
		if err != nil {
			return err
		}
		csv["operatorframework.io/properties"] = text
	}
	if (in.opt.CSVAnnotations || read["olm.properties"]) && len(in.b.Properties) > 0 {
		list := []any{}
		if own := csv["olm.properties"]; own != "" {
			if err := json.Unmarshal([]byte(own), &list); err != nil {
				return diag.Errorf(in.csvPos(), "annotation olm.properties: %w", err)
			}
		}
		text, err := jsonText(append(list, propertyList(in.bundleProperties())...))
		if err != nil {
			return err
		}
		csv["olm.properties"] = text
	}
	return nil
}

// properties returns the properties of the bundle, which the lock records from the catalog. If the lock has
// none, it derives them from the bundle.
func (in *install) properties() []catalog.Property {
	if len(in.pin.Properties) > 0 {
		return in.pin.Properties
	}
	var out []catalog.Property
	for _, g := range in.b.Provides() {
		out = append(out, catalog.GVKProperty(g))
	}
	for _, api := range in.b.CSV.OwnedAPIs {
		out = append(out, catalog.GVKProperty(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
	slices.SortFunc(out, func(a, b catalog.Property) int { return bytes.Compare(a.Value, b.Value) })
	out = append(out, catalog.PackageProperty(in.pin.Package, in.pin.Version))
	return append(out, in.bundleProperties()...)
}

// bundleProperties returns the properties in the metadata of the bundle.
func (in *install) bundleProperties() []catalog.Property {
	out := make([]catalog.Property, len(in.b.Properties))
	for i, p := range in.b.Properties {
		out[i] = p.Property
	}
	return out
}

func propertyList(in []catalog.Property) []any {
	out := make([]any, len(in))
	for i, p := range in {
		out[i] = map[string]any{"type": p.Type, "value": p.Value}
	}
	return out
}

// ReadAnnotations returns the keys of the annotations that a pod reads through the downward API.
// The key "*" means all annotations.
func ReadAnnotations(pod map[string]any) map[string]bool {
	read := map[string]bool{}
	var search func(v any)
	search = func(v any) {
		fields, _ := v.(map[string]any)
		path := k8s.Text(fields, "fieldRef", "fieldPath")
		if path == "metadata.annotations" {
			read["*"] = true
		}
		if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
			read[strings.TrimSuffix(key, "']")] = true
		}
		for _, e := range fields {
			search(e)
		}
		list, _ := v.([]any)
		for _, e := range list {
			search(e)
		}
	}
	search(pod)
	return read
}

// addEnvironment sets the proxy settings and the name of the OperatorCondition as environment
// variables in every container. The operator's config takes precedence.
func (in *install) addEnvironment(pod map[string]any) {
	addProxy(pod, in.opt.Proxy, in.config)
	if in.config.setsEnv(conditionVariable) {
		return
	}
	for _, c := range k8s.Items(pod, "containers") {
		replaceNamed(c, "env", map[string]any{"name": conditionVariable, "value": in.conditionName()})
	}
}

// addProxy sets the proxy settings as environment variables in every container. If the operator's config sets
// any proxy variable, addProxy does nothing.
func addProxy(pod map[string]any, p Proxy, c config) {
	proxy := map[string]string{"HTTP_PROXY": p.HTTP, "HTTPS_PROXY": p.HTTPS, "NO_PROXY": p.None}
	names := slices.Sorted(maps.Keys(proxy))
	if c.setsEnv(names...) {
		return
	}
	for _, container := range k8s.Items(pod, "containers") {
		for _, name := range names {
			if proxy[name] != "" {
				replaceNamed(container, "env", map[string]any{"name": name, "value": proxy[name]})
			}
		}
	}
}

// setsEnv reports whether the config sets one of the environment variables.
func (c config) setsEnv(names ...string) bool {
	return slices.ContainsFunc(k8s.Items(c, "env"), func(env map[string]any) bool { return slices.Contains(names, k8s.Text(env, "name")) })
}

// mountCertificates mounts the serving certificate in every container, at the same paths as OLM. It
// does not change mounts of the bundle at other paths.
func (in *install) mountCertificates(pod map[string]any, secret string) {
	mounts := []certificateMount{
		{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
		{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
	}
	if in.pin.Adopted != nil {
		slices.Reverse(mounts)
		for _, m := range mounts {
			m.addAsOLM(pod, secret)
		}
		pod["serviceAccountName"] = cmp.Or(k8s.Text(pod, "serviceAccountName"), "default")
		return
	}
	for _, m := range mounts {
		m.add(pod, secret)
	}
}

// certificateMount is a volume with a serving certificate: its name, its mount path, and the names of its
// files.
type certificateMount struct{ name, path, crt, key string }

func (m certificateMount) volume(secret string) map[string]any {
	items := []any{map[string]any{"key": "tls.crt", "path": m.crt}, map[string]any{"key": "tls.key", "path": m.key}}
	return map[string]any{"name": m.name, "secret": map[string]any{"secretName": secret, "items": items}}
}

func (m certificateMount) mount() map[string]any {
	return map[string]any{"name": m.name, "mountPath": m.path}
}

// add adds the volume to the pod, and replaces a volume of the same name. It mounts the volume in every
// container, and replaces other mounts at the same path. If a replaced mount was the last mount of its volume,
// it removes that volume.
func (m certificateMount) add(pod map[string]any, secret string) {
	displaced := map[string]bool{}
	for _, c := range k8s.Items(pod, "containers") {
		mounts := k8s.Items(c, "volumeMounts")
		if slices.ContainsFunc(mounts, func(have map[string]any) bool { return k8s.Text(have, "name") == m.name }) {
			continue
		}
		var kept []any
		for _, have := range mounts {
			if strings.TrimRight(k8s.Text(have, "mountPath"), "/") == m.path {
				displaced[k8s.Text(have, "name")] = true
				continue
			}
			kept = append(kept, have)
		}
		c["volumeMounts"] = append(kept, m.mount())
	}
	for _, c := range k8s.Containers(pod) {
		for _, m := range k8s.Items(c, "volumeMounts") {
			delete(displaced, k8s.Text(m, "name"))
		}
	}
	volumes, _ := pod["volumes"].([]any)
	volumes = slices.DeleteFunc(slices.Clone(volumes), func(v any) bool {
		have, ok := v.(map[string]any)
		return ok && (displaced[k8s.Text(have, "name")] || k8s.Text(have, "name") == m.name)
	})
	pod["volumes"] = append(volumes, m.volume(secret))
}
