package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// config is the spec.config of a Subscription: additions by the user to the Deployments of an
// operator. A missing or null field changes nothing.
type config map[string]any

// parseConfig parses a config in JSON, and checks the types of its fields. It returns nil if data
// is empty.
func parseConfig(data []byte) (config, error) {
	var c map[string]any
	if len(data) == 0 {
		return nil, nil
	}
	if err := utiljson.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	_, shape := admit.PrunePart(admit.NewTypes(), admit.Config(), c, "config")
	var errs []error
	for _, field := range shape.Unknown {
		errs = append(errs, fmt.Errorf("%s: unknown field", field))
	}
	for _, f := range shape.Wrong {
		errs = append(errs, fmt.Errorf("%s: %s", f.Field, f.Message))
	}
	delete(c, "selector") // OLM permits this field and ignores it
	return c, errors.Join(errs...)
}

// applyToCopy returns an object changed by the config. It changes only Deployments. The result
// shares unchanged values with o.
func (c config) applyToCopy(o Object) Object {
	if len(c) == 0 || !isConfigurable(o) {
		return o
	}
	out := maps.Clone(o)
	cloneAt(out, "metadata", "annotations")
	cloneAt(out, "spec", "template", "metadata", "annotations")
	cloneAt(k8s.Map(out, "spec", "template"), "spec", "affinity")
	pod := k8s.PodSpec(out)
	if containers := slices.Clone(k8s.List(pod, "containers")); containers != nil {
		for i, v := range containers {
			if container, ok := v.(map[string]any); ok {
				containers[i] = maps.Clone(container)
			}
		}
		pod["containers"] = containers
	}
	c.applyInPlace(out)
	return out
}

// cloneAt replaces m[path[0]], m[path[0]][path[1]] and so on with copies, until one does not exist.
func cloneAt(m map[string]any, path ...string) {
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			return
		}
		next = maps.Clone(next)
		m[key], m = next, next
	}
}

// applyInPlace changes a Deployment in place. It writes into its mappings down to containers, annotations and
// affinity: the caller must have copied these. It replaces deeper values as a whole.
func (c config) applyInPlace(deployment Object) {
	spec := k8s.Ensure(deployment, "spec")
	pod := podOf(spec)
	for _, container := range k8s.Items(pod, "containers") {
		for _, env := range k8s.Items(c, "env") {
			replaceNamed(container, "env", env)
		}
		appendNew(container, "envFrom", k8s.List(c, "envFrom"))
		replaceNamed(container, "volumeMounts", k8s.Items(c, "volumeMounts")...)
		if resources := k8s.Map(c, "resources"); resources != nil {
			container["resources"] = k8s.Copy(resources)
		}
	}
	replaceNamed(pod, "volumes", k8s.Items(c, "volumes")...)
	appendNew(pod, "tolerations", k8s.List(c, "tolerations"))
	if nodeSelector := k8s.Map(c, "nodeSelector"); nodeSelector != nil {
		pod["nodeSelector"] = k8s.Copy(nodeSelector)
	}
	c.applyAffinity(pod)
	if annotations := k8s.Map(c, "annotations"); len(annotations) > 0 {
		addMissing(k8s.Ensure(deployment, "metadata", "annotations"), annotations)
		addMissing(k8s.Ensure(spec, "template", "metadata", "annotations"), annotations)
	}
}

// checkMounts returns an error if the config mounts a volume that neither the config nor the
// Deployment has.
func (c config) checkMounts(pos diag.Pos, deployment Object) error {
	mounts := k8s.Items(c, "volumeMounts")
	if len(mounts) == 0 {
		return nil
	}
	var errs diag.List
	have := map[string]bool{}
	for _, v := range k8s.Items(deployment, "spec", "template", "spec", "volumes") {
		have[k8s.Text(v, "name")] = true
	}
	for _, m := range mounts {
		if name := k8s.Text(m, "name"); !have[name] {
			errs.Addf(pos, "config.volumeMounts: no volume %q in config.volumes or Deployment %q", name, deployment.Name())
		}
	}
	return errs.Err()
}

// applyAffinity replaces the kinds of affinity in the pod that the config contains. If a kind in the config is
// empty, it removes this kind from the pod. If the config's whole affinity is empty, it removes all kinds.
func (c config) applyAffinity(pod map[string]any) {
	affinity := k8s.Map(c, "affinity")
	if affinity == nil {
		return
	}
	if len(affinity) == 0 {
		delete(pod, "affinity")
		return
	}
	have := k8s.Ensure(pod, "affinity")
	for key, value := range affinity {
		switch {
		case value == nil:
		case isEmptyValue(value):
			delete(have, key)
		default:
			have[key] = k8s.Copy(value)
		}
	}
	if len(have) == 0 {
		delete(pod, "affinity")
	}
}

// isEmptyValue reports whether v is null, an empty list, or an object with only such values.
func isEmptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !isEmptyValue(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// appendNew appends each item in more to the list m[key], unless the list already contains the item.
func appendNew(m map[string]any, key string, more []any) {
	if len(more) > 0 {
		m[key] = mergeLists(k8s.List(m, key), k8s.Copy(more))
	}
}

// replaceNamed adds the given items to the list m[key]. A given item replaces the first existing item of the
// same name. The given items do not replace each other, so a new volume can have two mounts.
func replaceNamed(m map[string]any, key string, more ...map[string]any) {
	if len(more) == 0 {
		return
	}
	list := slices.Clone(k8s.List(m, key))
	before := len(list)
	for _, item := range more {
		i := slices.IndexFunc(list[:before], func(v any) bool {
			have, ok := v.(map[string]any)
			return ok && k8s.Text(have, "name") == k8s.Text(item, "name")
		})
		if i < 0 {
			list = append(list, k8s.Copy(item))
		} else {
			list[i] = k8s.Copy(item)
		}
	}
	m[key] = list
}

func addMissing(m, more map[string]any) {
	for k, v := range more {
		if _, ok := m[k]; !ok {
			m[k] = v
		}
	}
}
