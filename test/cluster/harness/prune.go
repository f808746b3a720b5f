package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// ListGroup returns every object of every kind of one API group, sorted by
// [Name].
func (a *Applier) ListGroup(ctx context.Context, group string) ([]*unstructured.Unstructured, error) {
	resources, err := a.resources()
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for resource := range resources {
		if resource.Group != group {
			continue
		}
		of, err := a.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range of.Items {
			found = append(found, &of.Items[i])
		}
	}
	sortByName(found)
	return found, nil
}

// List returns all objects of all kinds that the selector matches, sorted by [Name]. The objects have only
// their kind and metadata, because this is much faster if CRDs are large.
func (a *Applier) List(ctx context.Context, selector string) ([]*unstructured.Unstructured, error) {
	return a.list(ctx, func(resource schema.GroupVersionResource, kind string) ([]*unstructured.Unstructured, error) {
		of, err := a.metadata.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		var found []*unstructured.Unstructured
		for i := range of.Items {
			of.Items[i].SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of.Items[i])
			if err != nil {
				return nil, err
			}
			found = append(found, &unstructured.Unstructured{Object: fields})
		}
		return found, nil
	})
}

// ListWhole returns all objects of all kinds completely, sorted by [Name].
func (a *Applier) ListWhole(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return a.list(ctx, func(resource schema.GroupVersionResource, _ string) ([]*unstructured.Unstructured, error) {
		of, err := a.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var found []*unstructured.Unstructured
		for i := range of.Items {
			found = append(found, &of.Items[i])
		}
		return found, nil
	})
}

// list returns the objects that of returns for each resource, sorted by [Name]. It ignores a resource that was
// removed after discovery.
func (a *Applier) list(ctx context.Context, of func(resource schema.GroupVersionResource, kind string) ([]*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
	resources, err := a.resources()
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for resource, kind := range resources {
		some, err := of(resource, kind)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		found = append(found, some...)
	}
	sortByName(found)
	return found, ctx.Err()
}

// resources returns the kind of every resource that can be listed and deleted, in the preferred version of its
// group. It omits groups whose server is unavailable.
func (a *Applier) resources() (map[schema.GroupVersionResource]string, error) {
	a.mapper.Reset()
	lists, err := discovery.ServerPreferredResources(a.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	kinds := map[schema.GroupVersionResource]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			kinds[version.WithResource(r.Name)] = r.Kind
		}
	}
	return kinds, nil
}

func sortByName(list []*unstructured.Unstructured) {
	slices.SortFunc(list, func(x, y *unstructured.Unstructured) int { return strings.Compare(Name(x), Name(y)) })
}

// Prune deletes the objects that the selector matches and keep does not contain, and returns them,
// sorted by [Name]. Objects are compared by group, kind, namespace and name.
func (a *Applier) Prune(ctx context.Context, selector string, keep []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	found, err := a.List(ctx, selector)
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, o := range keep {
		kept[Name(o)] = true
	}
	var gone []*unstructured.Unstructured
	for _, o := range found {
		if kept[Name(o)] || o.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Event"}) {
			continue
		}
		if err := a.Delete(ctx, o); err != nil {
			return gone, fmt.Errorf("deleting %s: %w", Name(o), err)
		}
		gone = append(gone, o)
	}
	return gone, nil
}
