package harness

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Create creates the object without fields unknown to its kind, and returns the object as the server has stored
// it.
func (a *Applier) Create(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return a.scoped(mapping, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{
		FieldManager: a.manager, FieldValidation: metav1.FieldValidationIgnore,
	})
}

// TryCreate returns the server's reason for rejecting the object, or nil. Unknown and duplicate
// fields are rejected. It does not create the object.
func (a *Applier) TryCreate(ctx context.Context, o *unstructured.Unstructured) error {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	_, err = a.scoped(mapping, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: a.manager, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// TryUpdate is like [Applier.TryCreate], but for an update of the existing object. It does not change that
// object.
func (a *Applier) TryUpdate(ctx context.Context, o *unstructured.Unstructured) error {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	_, err = a.scoped(mapping, o.GetNamespace()).Update(ctx, o, metav1.UpdateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: a.manager, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// SetStatus sets the status of an existing object, in place of its controller.
func (a *Applier) SetStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	return a.merge(ctx, o, map[string]any{"status": status}, "status")
}

// Merge sets these fields of an existing object, and keeps its other fields.
func (a *Applier) Merge(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	return a.merge(ctx, o, fields)
}

func (a *Applier) merge(ctx context.Context, o *unstructured.Unstructured, fields map[string]any, subresources ...string) error {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = a.scoped(mapping, o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: a.manager}, subresources...)
	return err
}
