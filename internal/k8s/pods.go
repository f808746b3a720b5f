package k8s

import (
	"maps"
	"slices"
	"strconv"
)

// PodSpec returns the pod spec of a pod or a workload, or nil for other kinds.
func PodSpec(o Object) map[string]any {
	switch {
	case o.Is("", "Pod"):
		return Map(o, "spec")
	case o.Is("batch", "CronJob"):
		return Map(o, "spec", "jobTemplate", "spec", "template", "spec")
	default:
		return Map(o, "spec", "template", "spec")
	}
}

// podTemplatePath returns the path of the pod template in a workload of a built-in kind. ok is false
// for other kinds.
func podTemplatePath(o Object) (path []string, ok bool) {
	switch o.Key().GroupKind() {
	case "Pod":
		return nil, true
	case "PodTemplate":
		return []string{"template"}, true
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController", "Job.batch":
		return []string{"spec", "template"}, true
	case "CronJob.batch":
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}

// PodTemplate is a pod in an object: a Pod itself, or the template of a workload or of a custom
// resource.
type PodTemplate struct {
	Path           []string // path of the pod spec in the object; an element of a list has its index
	Metadata, Spec map[string]any
}

// PodTemplates returns the pods in an object. In a custom resource, each map with containers is a
// pod.
func PodTemplates(o Object) []PodTemplate {
	if path, ok := podTemplatePath(o); ok {
		at := Map(o, path...)
		if spec := Map(at, "spec"); spec != nil {
			return []PodTemplate{{append(path, "spec"), Map(at, "metadata"), spec}}
		}
		return nil
	}
	var out []PodTemplate
	if hasPods(o) {
		walkPods(map[string]any(o), nil, nil, func(p PodTemplate) map[string]any {
			out = append(out, p)
			return p.Spec
		})
	}
	return out
}

// MapPods returns a copy of an object with each pod spec replaced by the result of convert. See
// [PodTemplates].
func MapPods(o Object, convert func(spec map[string]any) map[string]any) Object {
	if path, ok := podTemplatePath(o); ok {
		path = append(path, "spec")
		if spec := Map(o, path...); spec != nil {
			return With(o, any(convert(spec)), path...)
		}
		return o
	}
	if !hasPods(o) {
		return o
	}
	out, _ := walkPods(map[string]any(o), nil, nil, func(p PodTemplate) map[string]any { return convert(p.Spec) }).(map[string]any)
	return out
}

// hasPods reports whether an object is a custom resource. Its fields may then contain pods.
func hasPods(o Object) bool { return !IsBuiltinGroup(o.Group()) }

// walkPods returns v with each pod spec in it replaced by the result of visit. meta is the field metadata of
// the map that contains v.
func walkPods(v any, path []string, meta map[string]any, visit func(PodTemplate) map[string]any) any {
	below := func(key string) []string { return append(path[:len(path):len(path)], key) }
	switch v := v.(type) {
	case map[string]any:
		if len(Items(v, "containers")) > 0 {
			return visit(PodTemplate{path, meta, v})
		}
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = walkPods(v[key], below(key), Map(v, "metadata"), visit)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = walkPods(e, below(strconv.Itoa(i)), nil, visit)
		}
		return out
	}
	return v
}

// ContainerLists returns the fields of a pod spec that contain containers, in the order in which
// the containers start.
func ContainerLists() []string {
	return []string{"initContainers", "containers", "ephemeralContainers"}
}

// Containers returns the containers in a pod spec, in the order in which they start.
func Containers(pod map[string]any) []map[string]any {
	var out []map[string]any
	for _, list := range ContainerLists() {
		out = append(out, Items(pod, list)...)
	}
	return out
}

// PodReferences calls each for every Secret and ConfigMap that a pod needs to start. field is the
// location of the reference, such as "volumes[cert]" or "containers[manager].env[TOKEN]". Optional
// references are omitted.
func PodReferences(pod map[string]any, each func(field, kind, name string)) {
	expect := func(field, kind string, ref map[string]any, key string) {
		if name := Text(ref, key); name != "" && ref["optional"] != true {
			each(field, kind, name)
		}
	}
	for _, v := range Items(pod, "volumes") {
		field := "volumes[" + Text(v, "name") + "]"
		expect(field, "Secret", Map(v, "secret"), "secretName")
		expect(field, "ConfigMap", Map(v, "configMap"), "name")
		for _, source := range Items(v, "projected", "sources") {
			expect(field, "Secret", Map(source, "secret"), "name")
			expect(field, "ConfigMap", Map(source, "configMap"), "name")
		}
	}
	for _, list := range ContainerLists() {
		for _, container := range Items(pod, list) {
			of := list + "[" + Text(container, "name") + "]."
			for _, env := range Items(container, "env") {
				from, field := Map(env, "valueFrom"), of+"env["+Text(env, "name")+"]"
				expect(field, "Secret", Map(from, "secretKeyRef"), "name")
				expect(field, "ConfigMap", Map(from, "configMapKeyRef"), "name")
			}
			for _, from := range Items(container, "envFrom") {
				expect(of+"envFrom", "Secret", Map(from, "secretRef"), "name")
				expect(of+"envFrom", "ConfigMap", Map(from, "configMapRef"), "name")
			}
		}
	}
	for _, ref := range Items(pod, "imagePullSecrets") {
		expect("imagePullSecrets", "Secret", ref, "name")
	}
}
