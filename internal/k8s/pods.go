package k8s

// PodSpec returns the pod spec of a workload or a pod, or nil.
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

// ContainerLists returns the fields of a pod's spec that hold its containers, in
// the order in which they run.
func ContainerLists() []string { return []string{"initContainers", "containers"} }

// Containers returns the containers of a pod's spec in the order in which they
// run.
func Containers(pod map[string]any) []map[string]any {
	var out []map[string]any
	for _, list := range ContainerLists() {
		out = append(out, Items(pod, list)...)
	}
	return out
}
