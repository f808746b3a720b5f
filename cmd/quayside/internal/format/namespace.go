package format

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// moveObjects replaces the namespace that the author of a release chose, in all objects of the release. to is the new
// namespace. It modifies namespaced objects, the Namespace itself, subjects of bindings, Services of webhooks,
// conversions and APIServices, and selectors of the Namespace. It does not move objects in namespaces of Kubernetes. It
// returns an error if another field mentions the namespace, or if the objects are in several namespaces.
func moveObjects(objects []bundle.ReleaseObject, to string) error {
	names := homeNamespaces(objects)
	switch {
	case len(names) == 0 || slices.Contains(names, to):
		return nil
	case len(names) > 1:
		return diag.Hintf(diag.Pos{File: objects[0].File}, "install it into "+names[0], "the release uses several namespaces (%s): it cannot be moved to %s", strings.Join(names, ", "), to)
	}
	m := &mover{from: names[0], to: to}
	m.mention = regexp.MustCompile(fmt.Sprintf(`(?:^|\.)%[1]s\.svc(?:$|[.:/])|(?i:namespaces?["']?\s*[:=]\s*["']?)%[1]s(?:$|[^a-zA-Z0-9-])`, regexp.QuoteMeta(m.from)))
	for _, o := range objects {
		m.moveObject(o)
	}
	return m.errs.Err()
}

// homeNamespaces returns the namespaces of the objects, sorted. For a ServiceAccount without a namespace, it
// returns the namespaces in which subjects of bindings expect it. It omits namespaces of Kubernetes.
func homeNamespaces(objects []bundle.ReleaseObject) []string {
	var out []string
	unplaced := map[string]bool{} // names of ServiceAccounts without a namespace
	for _, o := range objects {
		if ns := k8s.Text(o.Object, "metadata", "namespace"); ns != "" {
			out = append(out, ns)
		} else if k8s.Text(o.Object, "kind") == "ServiceAccount" {
			unplaced[k8s.Text(o.Object, "metadata", "name")] = true
		}
	}
	for _, o := range objects {
		for _, s := range subjectsOf(o.Object) {
			if ns := k8s.Text(s, "namespace"); ns != "" && unplaced[k8s.Text(s, "name")] {
				out = append(out, ns)
			}
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(ns string) bool { return strings.HasPrefix(ns, "kube-") })
}

func subjectsOf(o map[string]any) []map[string]any {
	if !strings.HasSuffix(k8s.Text(o, "kind"), "RoleBinding") {
		return nil
	}
	return slices.DeleteFunc(k8s.Items(o, "subjects"), func(s map[string]any) bool { return k8s.Text(s, "kind") != "ServiceAccount" })
}

// mover moves objects from one namespace to another.
type mover struct {
	from, to string
	mention  *regexp.Regexp
	errs     diag.List
}

// rename sets a field to the new namespace if the field has the old namespace.
func (m *mover) rename(in map[string]any, field string) {
	if in[field] == m.from {
		in[field] = m.to
	}
}

func (m *mover) moveObject(o bundle.ReleaseObject) {
	meta := k8s.Map(o.Object, "metadata")
	m.rename(meta, "namespace")
	object := k8s.Object(o.Object)
	if object.Is("", "Namespace") {
		m.rename(meta, "name")
	}
	for _, s := range subjectsOf(o.Object) {
		m.rename(s, "namespace")
	}
	for _, w := range k8s.Items(o.Object, "webhooks") {
		m.rename(k8s.Map(w, "clientConfig", "service"), "namespace")
	}
	if object.Is("apiregistration.k8s.io", "APIService") {
		m.rename(k8s.Map(o.Object, "spec", "service"), "namespace")
	}
	annotations := k8s.Map(meta, "annotations")
	for _, key := range []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"} {
		if name, ok := strings.CutPrefix(k8s.Text(annotations, key), m.from+"/"); ok {
			annotations[key] = m.to + "/" + name
		}
	}
	if k8s.IsCRD(object) { // its schema may mention anything
		m.rename(k8s.Map(o.Object, "spec", "conversion", "webhook", "clientConfig", "service"), "namespace")
		return
	}
	m.walk(o, "", o.Object)
}

// walk moves selectors of the Namespace, and adds an error for each other field below v that mentions the namespace.
func (m *mover) walk(o bundle.ReleaseObject, field string, v any) {
	switch v := v.(type) {
	case map[string]any:
		m.rename(v, "kubernetes.io/metadata.name")
		isVariable := strings.Contains(strings.ToLower(k8s.Text(v, "name")), "namespace")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(field+"."+key, ".")
			if v[key] == m.from && (isVariable && key == "value" || strings.Contains(strings.ToLower(key), "namespace")) {
				m.add(o, at)
				continue
			}
			m.walk(o, at, v[key])
		}
	case []any:
		key := strings.ToLower(field[strings.LastIndex(field, ".")+1:])
		for i, item := range v {
			if item == m.from && strings.Contains(key, "namespace") {
				m.add(o, diag.Item(field, i))
				continue
			}
			m.walk(o, diag.Item(field, i), item)
		}
	case string:
		if m.mention.MatchString(v) {
			m.add(o, field)
		}
	}
}

func (m *mover) add(o bundle.ReleaseObject, field string) {
	m.errs.Add(diag.Pos{File: o.File}, diag.Hintf(diag.Pos{File: o.File}, "install it into "+m.from,
		"%s names namespace %s in %s, which cannot be moved to %s", k8s.Object(o.Object).Key(), m.from, field, m.to))
}
