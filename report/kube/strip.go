package kube

import (
	"maps"
	"reflect"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// metadataOnly reports whether objects of a kind have nothing to judge but that
// they are there: they have no status, or none that says how they are.
func metadataOnly(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		switch kind.Kind {
		case "ServiceAccount", "ConfigMap", "Secret", "Namespace", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate":
			return true
		}
	case "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "flowcontrol.apiserver.k8s.io":
		return true
	case "networking.k8s.io":
		return kind.Kind == "NetworkPolicy" || kind.Kind == "IngressClass"
	}
	return false
}

// stripper takes from objects what nobody judges, before they are kept. What
// many objects share is kept once: the names of kinds and namespaces, versions,
// and labels. Its methods may be called from any goroutine.
type stripper struct {
	mu     sync.Mutex
	labels map[[2]string]map[string]string
}

// maxShared bounds what is kept in case somebody shares it; beyond it, it is
// forgotten and gathered anew.
const maxShared = 10_000

func newStripper() *stripper {
	return &stripper{labels: map[[2]string]map[string]string{}}
}

// strip is a transform of an informer's. What it does not know it leaves alone.
// It may be called twice on the same object.
func (s *stripper) strip(obj any) (any, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.Name, Namespace: shared(o.Namespace), ResourceVersion: o.ResourceVersion,
			DeletionTimestamp: o.DeletionTimestamp, Labels: s.ours(o.Labels),
		}}, nil
	case *unstructured.Unstructured:
		return &unstructured.Unstructured{Object: stripObject(o)}, nil
	case *v1alpha1.Installation:
		return stripInstallation(o), nil
	}
	return obj, nil
}

// stripInstallation returns an Installation without metadata that nobody reads.
func stripInstallation(o *v1alpha1.Installation) *v1alpha1.Installation {
	out := &v1alpha1.Installation{Spec: o.Spec.DeepCopy(), Status: o.Status.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: shared(o.Namespace), ResourceVersion: o.ResourceVersion, UID: o.UID,
		Generation: o.Generation, DeletionTimestamp: o.DeletionTimestamp,
	}}
	for i := range out.Spec.Objects {
		ref := &out.Spec.Objects[i]
		for _, field := range []*string{&ref.APIVersion, &ref.Kind, &ref.Namespace, &ref.Version} {
			*field = shared(*field)
		}
	}
	return out
}

// shared returns t, kept once for all who have it.
func shared(t string) string { return unique.Make(t).Value() }

// ours returns those of the labels that are judged. Nobody may modify them.
func (s *stripper) ours(labels map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{labels[kobj.LabelPackage], labels[v1alpha1.LabelVersion]}
	if have, ok := s.labels[key]; ok {
		return have
	}
	if len(s.labels) >= maxShared {
		clear(s.labels)
	}
	out := ourLabels(labels)
	s.labels[key] = out
	return out
}

func ourLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{kobj.LabelPackage, v1alpha1.LabelVersion} {
		if value, ok := labels[name]; ok {
			out[name] = value
		}
	}
	return out
}

// metadataObject returns an object whose metadata alone are kept as the API
// server would show it.
func metadataObject(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) map[string]any {
	labels := make(map[string]any, len(o.Labels))
	for k, v := range o.Labels {
		labels[k] = v
	}
	meta := map[string]any{"name": o.Name, "labels": labels}
	if o.Namespace != "" {
		meta["namespace"] = o.Namespace
	}
	if o.DeletionTimestamp != nil {
		meta["deletionTimestamp"] = o.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	return map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": meta}
}

// stripObject returns what is judged of an object: who it is, its status
// without long lists, the short fields of its spec, and of pod templates, CRDs
// and webhook configurations a little more.
func stripObject(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": stripMeta(o)}
	if status := kobj.Map(o.Object, "status"); status != nil {
		kept := only(status, "conditions", "acceptedNames", "storedVersions", "loadBalancer")
		if containers, ok := status["containerStatuses"].([]any); ok {
			kept["containerStatuses"] = each(containers, "state")
		}
		out["status"] = kept
	}
	if spec := kobj.Map(o.Object, "spec"); spec != nil {
		out["spec"] = stripSpec(o.GroupVersionKind().GroupKind(), spec)
	}
	if hooks, ok := o.Object["webhooks"].([]any); ok {
		out["webhooks"] = each(hooks, "clientConfig")
	}
	return out
}

func stripMeta(o *unstructured.Unstructured) map[string]any {
	from := kobj.Map(o.Object, "metadata")
	out := map[string]any{}
	for _, name := range []string{"name", "namespace", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
		if v, ok := from[name]; ok {
			out[name] = v
		}
	}
	labels := map[string]any{}
	for k, v := range ourLabels(o.GetLabels()) {
		labels[k] = v
	}
	out["labels"] = labels
	return out
}

func stripSpec(kind schema.GroupKind, spec map[string]any) map[string]any {
	switch kind {
	case schema.GroupKind{Group: "operators.coreos.com", Kind: "OperatorCondition"}:
		return only(spec, "overrides", "conditions")
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		kept := only(spec, "names", "conversion")
		if versions, ok := spec["versions"].([]any); ok {
			kept["versions"] = each(versions)
		}
		return kept
	}
	out := only(spec, "selector", "strategy", "updateStrategy", "service")
	for _, list := range kobj.ContainerLists() {
		if containers, ok := spec[list].([]any); ok {
			out[list] = each(containers)
		}
	}
	for _, inner := range []string{"jobTemplate", "template"} {
		if spec := kobj.Map(spec, inner, "spec"); spec != nil {
			out[inner] = map[string]any{"spec": stripSpec(kind, spec)}
		}
	}
	return out
}

// only returns the fields of an object that are neither lists nor objects, and
// those that are named.
func only(from map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for k, v := range from {
		switch v.(type) {
		case map[string]any, []any:
		default:
			out[k] = v
		}
	}
	for _, name := range names {
		if v, ok := from[name]; ok {
			out[name] = v
		}
	}
	return out
}

// each returns the objects of a list, as only has them.
func each(list []any, names ...string) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			out = append(out, only(fields, names...))
		}
	}
	return out
}

// same reports whether two versions of an object differ in nothing that is
// judged.
func same(before, after any) bool {
	switch a := before.(type) {
	case *metav1.PartialObjectMetadata:
		b, ok := after.(*metav1.PartialObjectMetadata)
		return ok && maps.Equal(a.Labels, b.Labels) && a.DeletionTimestamp.Equal(b.DeletionTimestamp)
	case *unstructured.Unstructured:
		b, ok := after.(*unstructured.Unstructured)
		return ok && reflect.DeepEqual(kobj.Without(a.Object, "metadata", "resourceVersion"), kobj.Without(b.Object, "metadata", "resourceVersion"))
	}
	return false
}
