package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// deployments makes one Deployment for each that the CSV lists.
func deployments(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, d := range in.b.CSV.Deployments {
		o := kobj.New("apps/v1", "Deployment", in.pin.Namespace, d.Name)
		if len(d.Labels) > 0 {
			o = kobj.Label(o, d.Labels)
		}
		spec := kobj.Copy(d.Spec)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["revisionHistoryLimit"] = int64(1)
		o["spec"] = spec
		pod := podOf(spec)
		defaultPorts(pod)
		annotations, err := in.templateAnnotations(spec)
		if err != nil {
			return nil, err
		}
		setAnnotations(spec, annotations)
		if service, ok := in.services[d.Name]; ok {
			in.mountCertificates(pod, in.opt.provider.Secret(service))
		}
		in.config.apply(o)
		in.addRecorded(o)
		errs.Add(in.pin.Pos, in.config.mounted(in.pin.Pos, o))
		in.addEnvironment(pod)
		out = append(out, o)
	}
	return out, errs.Err()
}

// podOf returns the pod spec of a deployment's spec, made where missing.
func podOf(spec map[string]any) map[string]any { return kobj.Ensure(spec, "template", "spec") }

// defaultPorts sets the protocol of container ports to TCP where it is
// missing, as the CSV's own CRD does.
func defaultPorts(pod map[string]any) {
	for _, c := range kobj.Containers(pod) {
		for _, port := range kobj.Items(c, "ports") {
			if _, ok := port["protocol"]; !ok {
				port["protocol"] = "TCP"
			}
		}
	}
}

func setAnnotations(spec map[string]any, annotations map[string]string) {
	have := kobj.Ensure(kobj.Ensure(spec, "template"), "metadata", "annotations")
	for k, v := range annotations {
		have[k] = v
	}
}

// templateAnnotations returns the annotations that pods get: OLM's, and those
// of the CSV that a container reads.
func (in *install) templateAnnotations(spec map[string]any) (map[string]string, error) {
	read := ReadAnnotations(kobj.Map(spec, "template", "spec"))
	own := kobj.Map(spec, "template", "metadata", "annotations")
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

// addProperties adds the bundle's properties in the two forms that OLM writes
// them in: v0's where a container reads it, v1's also on request.
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
		text, err := jsonText(append(list, propertyList(in.b.Properties)...))
		if err != nil {
			return err
		}
		csv["olm.properties"] = text
	}
	return nil
}

// properties returns what the catalog says of the bundle, as the lock records
// it, else what the bundle says of itself.
func (in *install) properties() []catalog.Property {
	if len(in.pin.Properties) > 0 {
		return in.pin.Properties
	}
	var out []catalog.Property
	for _, crd := range in.b.CSV.OwnedCRDs {
		if group, ok := olm.GroupOf(crd.Name); ok {
			out = append(out, olm.Provided(catalog.GVK{Group: group, Version: crd.Version, Kind: crd.Kind}))
		}
	}
	for _, api := range in.b.CSV.OwnedAPIs {
		out = append(out, olm.Provided(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
	slices.SortFunc(out, func(a, b catalog.Property) int { return bytes.Compare(a.Value, b.Value) })
	out = append(out, olm.Named(in.pin.Package, in.pin.Version))
	return append(out, in.b.Properties...)
}

func propertyList(in []catalog.Property) []any {
	out := make([]any, len(in))
	for i, p := range in {
		out[i] = map[string]any{"type": p.Type, "value": p.Value}
	}
	return out
}

// ReadAnnotations returns the keys of the annotations that a pod reads through
// the downward API; "*" stands for all of them.
func ReadAnnotations(pod map[string]any) map[string]bool {
	read := map[string]bool{}
	var look func(v any)
	look = func(v any) {
		fields, _ := v.(map[string]any)
		path := kobj.Text(fields, "fieldRef", "fieldPath")
		if path == "metadata.annotations" {
			read["*"] = true
		}
		if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
			read[strings.TrimSuffix(key, "']")] = true
		}
		for _, e := range fields {
			look(e)
		}
		list, _ := v.([]any)
		for _, e := range list {
			look(e)
		}
	}
	look(pod)
	return read
}

// addEnvironment sets what the operator learns of its surroundings on every
// container: the proxy, unless its config speaks of one, and the name of its
// OperatorCondition, unless the config sets it.
func (in *install) addEnvironment(pod map[string]any) {
	given := map[string]bool{}
	for _, env := range kobj.Items(in.config, "env") {
		given[kobj.Text(env, "name")] = true
	}
	proxy := map[string]string{"HTTP_PROXY": in.opt.Proxy.HTTP, "HTTPS_PROXY": in.opt.Proxy.HTTPS, "NO_PROXY": in.opt.Proxy.None}
	ownProxy := given["HTTP_PROXY"] || given["HTTPS_PROXY"] || given["NO_PROXY"]
	for _, c := range kobj.Items(pod, "containers") {
		for _, name := range slices.Sorted(maps.Keys(proxy)) {
			if proxy[name] != "" && !ownProxy {
				replaceNamed(c, "env", map[string]any{"name": name, "value": proxy[name]})
			}
		}
		if !given[conditionVariable] {
			replaceNamed(c, "env", map[string]any{"name": conditionVariable, "value": in.conditionName()})
		}
	}
}

// mountCertificates mounts the serving certificate where OLM does, in every
// container. A mount of one of the two volumes at a path of the bundle's own
// choice is kept.
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
		pod["serviceAccountName"] = cmp.Or(kobj.Text(pod, "serviceAccountName"), "default")
		return
	}
	for _, m := range mounts {
		m.add(pod, secret)
	}
}

// certificateMount is a volume with a serving certificate, and where its files
// lie in a container.
type certificateMount struct{ name, path, crt, key string }

func (m certificateMount) volume(secret string) map[string]any {
	items := []any{map[string]any{"key": "tls.crt", "path": m.crt}, map[string]any{"key": "tls.key", "path": m.key}}
	return map[string]any{"name": m.name, "secret": map[string]any{"secretName": secret, "items": items}}
}

func (m certificateMount) mount() map[string]any {
	return map[string]any{"name": m.name, "mountPath": m.path}
}

// add puts the volume into pod in place of the one of its name, and mounts it in
// every container that does not mount it yet, in place of whatever is mounted at
// its path. A volume that nobody mounts any more goes.
func (m certificateMount) add(pod map[string]any, secret string) {
	displaced := map[string]bool{}
	for _, c := range kobj.Items(pod, "containers") {
		mounts := kobj.Items(c, "volumeMounts")
		if slices.ContainsFunc(mounts, func(have map[string]any) bool { return kobj.Text(have, "name") == m.name }) {
			continue
		}
		var kept []any
		for _, have := range mounts {
			if strings.TrimRight(kobj.Text(have, "mountPath"), "/") == m.path {
				displaced[kobj.Text(have, "name")] = true
				continue
			}
			kept = append(kept, have)
		}
		c["volumeMounts"] = append(kept, m.mount())
	}
	for _, c := range kobj.Containers(pod) {
		for _, m := range kobj.Items(c, "volumeMounts") {
			delete(displaced, kobj.Text(m, "name"))
		}
	}
	volumes, _ := pod["volumes"].([]any)
	volumes = slices.DeleteFunc(slices.Clone(volumes), func(v any) bool {
		have, ok := v.(map[string]any)
		return ok && (displaced[kobj.Text(have, "name")] || kobj.Text(have, "name") == m.name)
	})
	pod["volumes"] = append(volumes, m.volume(secret))
}
