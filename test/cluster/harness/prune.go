package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// List returns every object of every kind that the selector matches, sorted by
// [Name].
func (a *Applier) List(ctx context.Context, selector string) ([]*unstructured.Unstructured, error) {
	return a.list(ctx, func(schema.GroupVersionResource) bool { return true }, selector)
}

// ListGroup returns every object of every kind of one API group, sorted by
// [Name].
func (a *Applier) ListGroup(ctx context.Context, group string) ([]*unstructured.Unstructured, error) {
	return a.list(ctx, func(kind schema.GroupVersionResource) bool { return kind.Group == group }, "")
}

func (a *Applier) list(ctx context.Context, wanted func(schema.GroupVersionResource) bool, selector string) ([]*unstructured.Unstructured, error) {
	a.mapper.Reset()
	// A group whose own server is away is left out; the others are complete.
	lists, err := discovery.ServerPreferredResources(a.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	kinds, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for kind := range kinds {
		if !wanted(kind) {
			continue
		}
		of, err := a.dynamic.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
		}
		for i := range of.Items {
			found = append(found, &of.Items[i])
		}
	}
	slices.SortFunc(found, func(x, y *unstructured.Unstructured) int { return strings.Compare(Name(x), Name(y)) })
	return found, nil
}

// Prune deletes what the selector matches and keep does not hold, and returns
// it, sorted by [Name]. Two objects are the same when group, kind, namespace
// and name are.
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
