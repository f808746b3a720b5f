package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// config is a Subscription's spec.config: what the user adds to every container
// of every Deployment. A field that is absent or null leaves things as they are.
type config map[string]any

// parseConfig reads a config in JSON, by the types of its fields; nil is the
// empty one.
func parseConfig(data []byte) (config, error) {
	var c map[string]any
	if len(data) == 0 {
		return nil, nil
	}
	if err := utiljson.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	_, shape := admit.Read(admit.NewTypes(), admit.Config(), c, "config")
	var errs []error
	for _, field := range shape.Unknown {
		errs = append(errs, fmt.Errorf("%s: unknown field", field))
	}
	for _, f := range shape.Wrong {
		errs = append(errs, fmt.Errorf("%s: %s", f.Field, f.Message))
	}
	delete(c, "selector") // which OLM takes and does nothing with
	return c, errors.Join(errs...)
}

// applied returns a Deployment with the config. The Deployment is not modified, and
// shares with what is returned what is the same.
func (c config) applied(deployment Object) Object {
	if len(c) == 0 {
		return deployment
	}
	out := maps.Clone(deployment)
	ownAt(out, "metadata", "annotations")
	ownAt(out, "spec", "template", "metadata", "annotations")
	ownAt(kobj.Map(out, "spec", "template"), "spec", "affinity")
	pod := kobj.PodSpec(out)
	if containers := slices.Clone(kobj.List(pod, "containers")); containers != nil {
		for i, v := range containers {
			if container, ok := v.(map[string]any); ok {
				containers[i] = maps.Clone(container)
			}
		}
		pod["containers"] = containers
	}
	c.apply(out)
	return out
}

// ownAt gives m copies of its own of the mappings on a path, as far as they are
// there.
func ownAt(m map[string]any, path ...string) {
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			return
		}
		next = maps.Clone(next)
		m[key], m = next, next
	}
}

// apply changes a Deployment that the caller owns, down to its containers, its
// annotations and its affinity: what lies below these it replaces as a whole.
func (c config) apply(deployment Object) {
	spec := kobj.Ensure(deployment, "spec")
	pod := podOf(spec)
	for _, container := range kobj.Items(pod, "containers") {
		for _, env := range kobj.Items(c, "env") {
			replaceNamed(container, "env", env)
		}
		appendNew(container, "envFrom", kobj.List(c, "envFrom"))
		replaceNamed(container, "volumeMounts", kobj.Items(c, "volumeMounts")...)
		if resources := kobj.Map(c, "resources"); resources != nil {
			container["resources"] = kobj.Copy(resources)
		}
	}
	replaceNamed(pod, "volumes", kobj.Items(c, "volumes")...)
	appendNew(pod, "tolerations", kobj.List(c, "tolerations"))
	if nodeSelector := kobj.Map(c, "nodeSelector"); nodeSelector != nil {
		pod["nodeSelector"] = kobj.Copy(nodeSelector)
	}
	c.applyAffinity(pod)
	if annotations := kobj.Map(c, "annotations"); len(annotations) > 0 {
		addMissing(kobj.Ensure(deployment, "metadata", "annotations"), annotations)
		addMissing(kobj.Ensure(spec, "template", "metadata", "annotations"), annotations)
	}
}

// mounted refuses mounts of volumes that the pods of a Deployment do not have,
// with what c adds.
func (c config) mounted(pos diag.Pos, deployment Object) error {
	mounts := kobj.Items(c, "volumeMounts")
	if len(mounts) == 0 {
		return nil
	}
	var errs diag.List
	have := map[string]bool{}
	for _, v := range kobj.Items(deployment, "spec", "template", "spec", "volumes") {
		have[kobj.Text(v, "name")] = true
	}
	for _, m := range mounts {
		if name := kobj.Text(m, "name"); !have[name] {
			errs.Addf(pos, "config.volumeMounts: volume %q is not in config.volumes, nor has Deployment %q one of that name", name, deployment.Name())
		}
	}
	return errs.Err()
}

// applyAffinity replaces each kind of affinity that the config gives; an empty
// one removes it, and an empty affinity removes them all.
func (c config) applyAffinity(pod map[string]any) {
	affinity := kobj.Map(c, "affinity")
	if affinity == nil {
		return
	}
	if len(affinity) == 0 {
		delete(pod, "affinity")
		return
	}
	have := kobj.Ensure(pod, "affinity")
	for key, value := range affinity {
		switch {
		case value == nil:
		case hollow(value):
			delete(have, key)
		default:
			have[key] = kobj.Copy(value)
		}
	}
	if len(have) == 0 {
		delete(pod, "affinity")
	}
}

// hollow reports whether v holds nothing but empty lists and objects.
func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !hollow(e) {
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

// appendNew appends what is not in the list at key yet.
func appendNew(m map[string]any, key string, more []any) {
	if len(more) > 0 {
		m[key] = union(kobj.List(m, key), kobj.Copy(more))
	}
}

// replaceNamed replaces the first item of each name that the list at key has, or
// appends the new one: two mounts of a new volume are two mounts.
func replaceNamed(m map[string]any, key string, more ...map[string]any) {
	if len(more) == 0 {
		return
	}
	list := slices.Clone(kobj.List(m, key))
	before := len(list)
	for _, item := range more {
		i := slices.IndexFunc(list[:before], func(v any) bool {
			have, ok := v.(map[string]any)
			return ok && kobj.Text(have, "name") == kobj.Text(item, "name")
		})
		if i < 0 {
			list = append(list, kobj.Copy(item))
		} else {
			list[i] = kobj.Copy(item)
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
