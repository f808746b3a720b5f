package reporter

import (
	"maps"
	"reflect"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// metadataOnly reports whether only the metadata of a kind is needed, because its objects have no
// health.
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

// stripper removes unused fields before objects are cached. Equal strings and label sets share
// memory. It is safe for concurrent use.
type stripper struct {
	mu     sync.Mutex
	labels map[[2]string]map[string]string
}

// maxShared is the maximum number of shared label sets. When it is reached, the stripper forgets all of them.
const maxShared = 10_000

func newStripper() *stripper {
	return &stripper{labels: map[[2]string]map[string]string{}}
}

// strip is a TransformFunc for informers. It returns objects of unknown types unchanged. Informers may call it
// twice for the same object.
func (s *stripper) strip(obj any) (any, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.Name, Namespace: intern(o.Namespace), ResourceVersion: o.ResourceVersion,
			DeletionTimestamp: o.DeletionTimestamp, Labels: s.internLabels(o.Labels),
		}}, nil
	case *unstructured.Unstructured:
		return &unstructured.Unstructured{Object: stripObject(o)}, nil
	case *v1alpha1.Installation:
		return stripInstallation(o), nil
	}
	return obj, nil
}

// stripInstallation returns an Installation without unused metadata.
func stripInstallation(o *v1alpha1.Installation) *v1alpha1.Installation {
	out := &v1alpha1.Installation{Spec: o.Spec.DeepCopy(), Status: o.Status.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: intern(o.Namespace), ResourceVersion: o.ResourceVersion, UID: o.UID,
		Generation: o.Generation, DeletionTimestamp: o.DeletionTimestamp,
	}}
	for i := range out.Spec.Objects {
		ref := &out.Spec.Objects[i]
		for _, field := range []*string{&ref.APIVersion, &ref.Kind, &ref.Namespace, &ref.Version} {
			*field = intern(*field)
		}
	}
	return out
}

// intern returns the shared copy of a string.
func intern(t string) string { return unique.Make(t).Value() }

// internLabels returns those labels that affect the status, as a shared map. The caller must not modify the
// map.
func (s *stripper) internLabels(labels map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{labels[k8s.LabelPackage], labels[v1alpha1.LabelVersion]}
	if have, ok := s.labels[key]; ok {
		return have
	}
	if len(s.labels) >= maxShared {
		clear(s.labels)
	}
	out := filterLabels(labels)
	s.labels[key] = out
	return out
}

func filterLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{k8s.LabelPackage, v1alpha1.LabelVersion} {
		if value, ok := labels[name]; ok {
			out[name] = value
		}
	}
	return out
}

// metadataObject returns an object that has only metadata, in the format of the Kubernetes API.
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

// stripObject returns the fields of an object that the status depends on: its identity, its status
// without long lists, the scalar fields of its spec, and some fields of pod templates, CRDs and
// webhook configurations.
func stripObject(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": stripMeta(o)}
	if status := k8s.Map(o.Object, "status"); status != nil {
		kept := scalarFields(status, "conditions", "acceptedNames", "storedVersions", "loadBalancer")
		if containers, ok := status["containerStatuses"].([]any); ok {
			kept["containerStatuses"] = scalarFieldsOfItems(containers, "state")
		}
		out["status"] = kept
	}
	if spec := k8s.Map(o.Object, "spec"); spec != nil {
		out["spec"] = stripSpec(o.GroupVersionKind().GroupKind(), spec)
	}
	if hooks, ok := o.Object["webhooks"].([]any); ok {
		out["webhooks"] = scalarFieldsOfItems(hooks, "clientConfig")
	}
	return out
}

func stripMeta(o *unstructured.Unstructured) map[string]any {
	from := k8s.Map(o.Object, "metadata")
	out := map[string]any{}
	for _, name := range []string{"name", "namespace", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
		if v, ok := from[name]; ok {
			out[name] = v
		}
	}
	labels := map[string]any{}
	for k, v := range filterLabels(o.GetLabels()) {
		labels[k] = v
	}
	out["labels"] = labels
	return out
}

func stripSpec(kind schema.GroupKind, spec map[string]any) map[string]any {
	switch kind {
	case schema.GroupKind{Group: "operators.coreos.com", Kind: "OperatorCondition"}:
		return scalarFields(spec, "overrides", "conditions")
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		kept := scalarFields(spec, "names", "conversion")
		if versions, ok := spec["versions"].([]any); ok {
			kept["versions"] = scalarFieldsOfItems(versions)
		}
		return kept
	}
	out := scalarFields(spec, "selector", "strategy", "updateStrategy", "service")
	for _, list := range k8s.ContainerLists() {
		if containers, ok := spec[list].([]any); ok {
			out[list] = scalarFieldsOfItems(containers)
		}
	}
	for _, inner := range []string{"jobTemplate", "template"} {
		if spec := k8s.Map(spec, inner, "spec"); spec != nil {
			out[inner] = map[string]any{"spec": stripSpec(kind, spec)}
		}
	}
	return out
}

// scalarFields returns the fields of an object whose values are neither lists nor objects. It also returns the
// fields in names, whatever their values are.
func scalarFields(from map[string]any, names ...string) map[string]any {
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

// scalarFieldsOfItems applies scalarFields to each object in a list.
func scalarFieldsOfItems(list []any, names ...string) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			out = append(out, scalarFields(fields, names...))
		}
	}
	return out
}

// equalWhereJudged reports whether two versions of a stripped object give the same status.
func equalWhereJudged(before, after any) bool {
	switch a := before.(type) {
	case *metav1.PartialObjectMetadata:
		b, ok := after.(*metav1.PartialObjectMetadata)
		return ok && maps.Equal(a.Labels, b.Labels) && a.DeletionTimestamp.Equal(b.DeletionTimestamp)
	case *unstructured.Unstructured:
		b, ok := after.(*unstructured.Unstructured)
		return ok && reflect.DeepEqual(k8s.Without(a.Object, "metadata", "resourceVersion"), k8s.Without(b.Object, "metadata", "resourceVersion"))
	}
	return false
}
