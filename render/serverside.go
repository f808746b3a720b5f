package render

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// distinct returns an object of the bundle in which each key of a list has only one item, as server-side apply
// requires. It adds a warning if it removes items. Without a GitOps tool, it returns o unchanged.
//
// Sources: the API server rejects duplicate keys in server-side apply only (kustomize-controller#457,
// argo-cd#20979); of several environment variables with one name, the last one counts.
func (in *install) distinct(pos diag.Pos, o Object) Object {
	if in.opt.profile.About().Tool == "" {
		return o
	}
	out, repeats := in.opt.types.Distinct(o, in.keepItem)
	for _, r := range repeats {
		in.warn(pos, "repeated-item", "%s: %s: %d items have the same key %s, which server-side apply rejects: only the item that Kubernetes uses is rendered", o.Key(), r.List, r.Count, r.Key)
	}
	return out
}

// keepItem returns the item to keep if several items have the same key. Usually it is the last item. Of several
// ports, it is the first port whose name the bundle uses. A kept host alias has the host names of all items.
func (in *install) keepItem(r admit.Repeat) map[string]any {
	last := r.Items[len(r.Items)-1]
	switch {
	case last["containerPort"] != nil:
		names := in.portNames()
		i := slices.IndexFunc(r.Items, func(port map[string]any) bool { return names[k8s.Text(port, "name")] })
		if i >= 0 {
			return r.Items[i]
		}
	case last["hostnames"] != nil:
		var all []any
		for _, alias := range r.Items {
			all = mergeLists(all, k8s.List(alias, "hostnames"))
		}
		return k8s.With(last, all, "hostnames")
	}
	return last
}

// portNames returns the names by which the bundle refers to ports of containers, such as in Services, probes
// and webhooks.
func (in *install) portNames() map[string]bool {
	out := map[string]bool{}
	var search func(v any)
	search = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"port", "targetPort"} {
				if name := k8s.Text(v, key); name != "" {
					out[name] = true
				}
			}
			for _, e := range v {
				search(e)
			}
		case []any:
			for _, e := range v {
				search(e)
			}
		}
	}
	for _, o := range in.b.Objects {
		if !k8s.IsCRD(o.Object) {
			search(map[string]any(o.Object))
		}
	}
	for _, d := range in.b.CSV.Deployments {
		search(d.Spec)
	}
	for _, w := range in.b.CSV.Webhooks {
		if name, ok := w.TargetPort.(string); ok {
			out[name] = true
		}
	}
	return out
}

// withoutForeignFields returns o without fields that a controller of Kubernetes writes: the rules of
// an aggregated ClusterRole, and the replicas of a workload that an autoscaler of the bundle scales.
// A GitOps tool and the controller would overwrite each other's value.
func (in *install) withoutForeignFields(o Object) Object {
	switch {
	case o.Is(k8s.RBACGroup, "ClusterRole") && len(k8s.Map(o, "aggregationRule")) > 0:
		return k8s.Without(o, "rules")
	case k8s.At(o, "spec", "replicas") != nil && in.isScaled(o):
		return k8s.Without(o, "spec", "replicas")
	}
	return o
}

// isScaled reports whether a HorizontalPodAutoscaler of the bundle scales a workload.
func (in *install) isScaled(o Object) bool {
	return slices.ContainsFunc(in.b.Objects, func(file bundle.ManifestObject) bool {
		target := k8s.Map(file.Object, "spec", "scaleTargetRef")
		return file.Is("autoscaling", "HorizontalPodAutoscaler") && k8s.Text(target, "kind") == o.Kind() && k8s.Text(target, "name") == o.Name()
	})
}

// withOwnReferences returns an object of the bundle. Its references to other namespaced objects of the bundle
// name the install namespace, where those objects are rendered. A reference to a Service outside of the bundle
// causes a warning.
func (in *install) withOwnReferences(file bundle.ManifestObject, o Object) Object {
	for _, key := range certificates.InjectAnnotations() {
		from := k8s.Text(o, "metadata", "annotations", key)
		if ns, name, ok := strings.Cut(from, "/"); ok && in.isHome(ns) && in.ships("Certificate", name) {
			o = k8s.With(o, in.pin.Namespace+"/"+name, "metadata", "annotations", key)
		}
	}
	switch o.Kind() {
	case "APIService":
		if service := in.ownServiceRef(file, k8s.Map(o, "spec", "service")); service != nil {
			o = k8s.With(o, service, "spec", "service")
		}
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		hooks := slices.Clone(k8s.List(o, "webhooks"))
		for i, v := range hooks {
			hook, _ := v.(map[string]any)
			if service := in.ownServiceRef(file, k8s.Map(hook, "clientConfig", "service")); service != nil {
				hooks[i] = k8s.With(hook, service, "clientConfig", "service")
			}
		}
		if len(hooks) > 0 {
			o = k8s.With(o, hooks, "webhooks")
		}
	}
	if !slices.ContainsFunc(in.b.Objects, func(file bundle.ManifestObject) bool { return in.isHome(file.Namespace()) }) {
		return o
	}
	out := make(Object, len(o))
	for key, v := range o {
		if key != "metadata" {
			v = mover{in}.moveReferences(v)
		}
		out[key] = v
	}
	return out
}

// mover replaces the references in the objects of a bundle.
type mover struct{ *install }

// moveReferences returns a value with the install namespace in references to objects of the bundle. Such
// references are mappings with the name and namespace of an object, lists of namespaces that monitors select,
// users that are ServiceAccounts, and host names of Services. Labels that select namespaces are not changed,
// because they may select the namespace of another program for which the bundle also has an object.
func (in mover) moveReferences(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			switch ns, _ := e.(string); {
			case key == "namespace" && in.isHome(ns) && in.hasNamespaced(k8s.Text(v, "name")):
				e = in.pin.Namespace
			case key == "matchNames":
				e = in.moveNamespaces(e)
			default:
				e = in.moveReferences(e)
			}
			out[key] = e
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = in.moveReferences(e)
		}
		return out
	case string:
		return in.moveText(v)
	}
	return v
}

// moveNamespaces replaces the bundle's own namespaces in a list by the install namespace.
func (in mover) moveNamespaces(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	list = slices.Clone(list)
	for i, e := range list {
		if ns, _ := e.(string); in.isHome(ns) {
			list[i] = in.pin.Namespace
		}
	}
	return list
}

// moveText replaces the bundle's own namespaces in a text by the install namespace. The text is the user name of
// a ServiceAccount, or has host names of Services: "hook.placeholder.svc" becomes "hook.my-namespace.svc".
func (in mover) moveText(text string) string {
	if rest, ok := strings.CutPrefix(text, "system:serviceaccount:"); ok {
		if ns, name, _ := strings.Cut(rest, ":"); in.isHome(ns) && in.accounts()[name] {
			return "system:serviceaccount:" + in.pin.Namespace + ":" + name
		}
		return text
	}
	if !strings.Contains(text, ".svc") {
		return text
	}
	return hostNamePattern().ReplaceAllStringFunc(text, func(host string) string {
		parts := strings.Split(host, ".")
		if in.isHome(parts[1]) && in.ownService(parts[0]) == parts[0] {
			parts[1] = in.pin.Namespace
		}
		return strings.Join(parts, ".")
	})
}

// hostNamePattern matches the host names of Services, without the domain of the cluster.
var hostNamePattern = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once
	return regexp.MustCompile(`\b[a-z0-9-]+\.[a-z0-9-]+\.svc\b`)
})

// hasNamespaced reports whether a namespaced object of the bundle has this name.
func (in mover) hasNamespaced(name string) bool {
	return name != "" && (in.accounts()[name] || in.ownService(name) == name || slices.ContainsFunc(in.b.Objects, func(o bundle.ManifestObject) bool {
		return o.Name() == name && in.scopes.namespaced(o.Group(), o.Kind())
	}))
}

// ownServiceRef returns a reference to a Service of the bundle with the install namespace set, or
// nil. It adds a warning for a Service outside of the bundle.
func (in *install) ownServiceRef(file bundle.ManifestObject, service map[string]any) map[string]any {
	name := k8s.Text(service, "name")
	if name == "" {
		return nil
	}
	if in.ownService(name) != name {
		in.warnOutside(file, "Service", name, k8s.Text(service, "namespace"))
		return nil
	}
	return k8s.With(service, in.pin.Namespace, "namespace")
}

// warnOutside adds a warning for an object outside of the bundle that a file of the bundle refers to.
func (in *install) warnOutside(file bundle.ManifestObject, kind, name, namespace string) {
	in.warn(file.Pos(), "expected-from-outside", "%s references %s %q in namespace %q, which is not in the bundle and must exist in the cluster", file, kind, name, namespace)
}

// ships reports whether the bundle contains an object of a kind with a name.
func (in *install) ships(kind, name string) bool {
	return slices.ContainsFunc(in.b.Objects, func(o bundle.ManifestObject) bool { return o.Kind() == kind && o.Name() == name })
}

// isHome reports whether a namespace in the files of the bundle stands for the install namespace. This is the
// case if the files put an object of the bundle into it.
func (in *install) isHome(namespace string) bool {
	return namespace != "" && slices.ContainsFunc(in.b.Objects, func(o bundle.ManifestObject) bool {
		return o.Namespace() == namespace && in.scopes.namespaced(o.Group(), o.Kind())
	})
}

// canonical returns an object without the fields that the API server drops. A GitOps tool that compares the
// object with the stored object would report these fields as differences.
func (in *install) canonical(o Object) Object {
	if in.opt.types.Has(o) {
		return in.opt.types.Canonical(o)
	}
	version, _ := k8s.ParseCRD(shippedCRD(in.b, o)).Version(strings.TrimPrefix(o.APIVersion(), o.Group()+"/"))
	if version.Subresources["status"] != nil {
		o = k8s.Without(o, "status")
	}
	return k8s.With(Object(withoutNulls(o, version.Schema)), withoutNulls(k8s.Map(o, "metadata"), nil), "metadata")
}

// withoutNulls returns the fields of a custom resource without nulls, unless the schema permits null or unknown
// fields. Without a schema, no null is permitted. The API server removes these nulls when an object is created,
// but rejects them in server-side apply.
//
// Source: PruneNonNullableNullsWithoutDefaults in apiextensions-apiserver/pkg/apiserver/schema/defaulting.
func withoutNulls(fields, schema map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for name, v := range fields {
		of := k8s.Map(schema, "properties", name)
		if of == nil {
			of = k8s.Map(schema, "additionalProperties")
		}
		switch {
		case of == nil && k8s.True(schema, "x-kubernetes-preserve-unknown-fields"):
			out[name] = v
		case v != nil || k8s.True(of, "nullable"):
			out[name] = withoutNullsBelow(v, of)
		}
	}
	return out
}

// withoutNullsBelow returns a value of a custom resource, with withoutNulls applied to the mappings in it.
func withoutNullsBelow(v any, schema map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		return withoutNulls(v, schema)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutNullsBelow(e, k8s.Map(schema, "items"))
		}
		return out
	}
	return v
}

// shippedCRD returns the bundle's CRD for a custom resource, or nil.
func shippedCRD(b *bundle.Bundle, o Object) Object {
	for _, file := range b.Objects {
		if k8s.IsCRD(file.Object) && k8s.Text(file.Object, "spec", "group") == o.Group() && k8s.Text(file.Object, "spec", "names", "kind") == o.Kind() {
			return file.Object
		}
	}
	return nil
}
