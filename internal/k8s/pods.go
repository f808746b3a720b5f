package k8s

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

// ContainerLists returns the fields of a pod spec that contain containers, in the order in which
// these start.
func ContainerLists() []string { return []string{"initContainers", "containers"} }

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
