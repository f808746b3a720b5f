package harness

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Create makes the object, without fields that its kind does not know, and
// returns it as the server holds it.
func (a *Applier) Create(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return a.scoped(mapping, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{
		FieldManager: a.manager, FieldValidation: metav1.FieldValidationIgnore,
	})
}

// TryCreate returns why the server would not make the object; nil where it
// would. Every unknown and duplicate field is a reason. Nothing is made.
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

// TryUpdate returns why the server would not take the object in place of the
// one that it holds, as [Applier.TryCreate] does. Nothing is changed.
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

// SetStatus gives the object that the server holds this status, as the program
// would whose affair it is.
func (a *Applier) SetStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	return a.merge(ctx, o, map[string]any{"status": status}, "status")
}

// Merge gives the object that the server holds these fields, and leaves its
// others as they are.
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
