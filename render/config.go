package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// config is a Subscription's spec.config: what the user adds to every
// container of every Deployment.
type config struct {
	env, envFrom, volumes, volumeMounts, tolerations []map[string]any
	resources, nodeSelector, affinity                map[string]any // nil: leave as it is
	annotations                                      map[string]any
}

// empty reports whether c changes nothing.
func (c config) empty() bool {
	return len(c.env)+len(c.envFrom)+len(c.volumes)+len(c.volumeMounts)+len(c.tolerations)+len(c.annotations) == 0 &&
		c.resources == nil && c.nodeSelector == nil && c.affinity == nil
}

// parseConfig reads a config in JSON; nil is the empty one.
func parseConfig(data []byte) (config, error) {
	var c config
	if len(data) == 0 {
		return c, nil
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		return c, fmt.Errorf("config: %w", err)
	}
	fields = plainNumbers(fields).(map[string]any)
	r := configReader{fields: fields, known: map[string]bool{"selector": true}} // OLM takes selector and does nothing with it
	c.env, c.envFrom = r.list("env"), r.list("envFrom")
	c.volumes, c.volumeMounts, c.tolerations = r.list("volumes"), r.list("volumeMounts"), r.list("tolerations")
	c.resources, c.nodeSelector = r.object("resources"), r.object("nodeSelector")
	c.affinity, c.annotations = r.object("affinity"), r.object("annotations")
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !r.known[key] {
			r.errs = append(r.errs, fmt.Errorf("config: unknown field %q", key))
		}
	}
	return c, errors.Join(r.errs...)
}

// configReader takes the fields out of a config and notes what is wrong.
type configReader struct {
	fields map[string]any
	known  map[string]bool
	errs   []error
}

// list returns a list of objects, nil where the field is absent or null.
func (r *configReader) list(key string) []map[string]any {
	r.known[key] = true
	list, ok := r.fields[key].([]any)
	out := kobj.Items(r.fields, key)
	if !ok && r.fields[key] != nil || len(out) != len(list) {
		r.errs = append(r.errs, fmt.Errorf("config.%s: want a list of objects", key))
	}
	return out
}

// object returns an object, nil where the field is absent or null.
func (r *configReader) object(key string) map[string]any {
	r.known[key] = true
	out, ok := r.fields[key].(map[string]any)
	if !ok && r.fields[key] != nil {
		r.errs = append(r.errs, fmt.Errorf("config.%s: want an object", key))
	}
	return out
}

// plainNumbers turns json.Number into int64 or float64 where that is exact
// enough for JSON.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainNumbers(e)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	}
	return v
}

// apply changes a Deployment that the caller owns.
func (c config) apply(deployment Object) {
	spec := kobj.Ensure(deployment, "spec")
	pod := podOf(spec)
	for _, container := range kobj.Items(pod, "containers") {
		for _, env := range c.env {
			setEnv(container, env)
		}
		appendNew(container, "envFrom", c.envFrom)
		replaceNamed(container, "volumeMounts", c.volumeMounts)
		if c.resources != nil {
			container["resources"] = kobj.Copy(c.resources)
		}
	}
	replaceNamed(pod, "volumes", c.volumes)
	appendNew(pod, "tolerations", c.tolerations)
	if c.nodeSelector != nil {
		pod["nodeSelector"] = kobj.Copy(c.nodeSelector)
	}
	c.applyAffinity(pod)
	if len(c.annotations) > 0 {
		addMissing(kobj.Ensure(deployment, "metadata", "annotations"), c.annotations)
		addMissing(kobj.Ensure(kobj.Ensure(spec, "template"), "metadata", "annotations"), c.annotations)
	}
}

// mounted refuses mounts of volumes that the pods of a Deployment do not have,
// with what c adds.
func (c config) mounted(pos diag.Pos, deployment Object) error {
	var errs diag.List
	have := map[string]bool{}
	for _, v := range kobj.Items(deployment, "spec", "template", "spec", "volumes") {
		have[kobj.Text(v, "name")] = true
	}
	for _, m := range c.volumeMounts {
		if name := kobj.Text(m, "name"); !have[name] {
			errs.Addf(pos, "config.volumeMounts: volume %q is not in config.volumes, nor has Deployment %q one of that name", name, deployment.Name())
		}
	}
	return errs.Err()
}

// applyAffinity replaces each kind of affinity that the config gives; an empty
// one removes it, and an empty affinity removes them all.
func (c config) applyAffinity(pod map[string]any) {
	if c.affinity == nil {
		return
	}
	if len(c.affinity) == 0 {
		delete(pod, "affinity")
		return
	}
	have := kobj.Ensure(pod, "affinity")
	for key, value := range c.affinity {
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
func appendNew(m map[string]any, key string, more []map[string]any) {
	list, _ := m[key].([]any)
	for _, item := range more {
		if !slices.ContainsFunc(list, func(have any) bool { return kobj.Equal(have, item) }) {
			list = append(list, kobj.Copy(item))
		}
	}
	if list != nil {
		m[key] = list
	}
}

// replaceNamed replaces the first item of each name that the list at key has, or
// appends the new one: two mounts of a new volume are two mounts.
func replaceNamed(m map[string]any, key string, more []map[string]any) {
	list, _ := m[key].([]any)
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
	if list != nil {
		m[key] = list
	}
}

func addMissing(m, more map[string]any) {
	for k, v := range more {
		if _, ok := m[k]; !ok {
			m[k] = v
		}
	}
}
