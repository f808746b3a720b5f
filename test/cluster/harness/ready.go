package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Await waits until each object is ready according to its kind: CRDs must be established, Deployments and
// APIServices available, custom resources with a Ready condition ready, and Jobs complete. Other objects must
// exist. If ctx ends first, the error lists the objects that are not ready, with the reasons.
func (a *Applier) Await(ctx context.Context, objects []*unstructured.Unstructured) error {
	reasons := make([]string, len(objects)) // "" once the object has been ready
	for i := range reasons {
		reasons[i] = "not checked yet"
	}
	for {
		for i, o := range objects {
			if reasons[i] == "" {
				continue
			}
			reason, err := a.unreadyReason(ctx, o)
			if ctx.Err() != nil {
				return notReady(objects, reasons)
			}
			if err != nil {
				return fmt.Errorf("waiting for %s: %w", Name(o), err)
			}
			reasons[i] = reason
		}
		if !slices.ContainsFunc(reasons, func(r string) bool { return r != "" }) {
			return nil
		}
		if err := sleepContext(ctx, 100*time.Millisecond); err != nil {
			return notReady(objects, reasons)
		}
	}
}

// AwaitGone waits until none of the objects exists. After an error, the API server tries to remove a CRD again,
// with growing delays, but at once if the CRD changes. So AwaitGone changes objects whose removal takes long.
func (a *Applier) AwaitGone(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		for tries := 1; ; tries++ {
			_, err := a.Get(ctx, o)
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil {
				return fmt.Errorf("waiting until %s is gone: %w", Name(o), err)
			}
			if tries%100 == 0 { // an error means that it is gone, or is seen by the next Get
				_ = a.Merge(ctx, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"test/tries": strconv.Itoa(tries)}}})
			}
			if err := sleepContext(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("waiting until %s is gone: %w", Name(o), err)
			}
		}
	}
	return nil
}

func notReady(objects []*unstructured.Unstructured, reasons []string) error {
	var lines []string
	for i, o := range objects {
		if reasons[i] != "" {
			lines = append(lines, Name(o)+": "+reasons[i])
		}
	}
	return fmt.Errorf("not ready in time:\n\t%s", strings.Join(lines, "\n\t"))
}

// unreadyReason returns the reason why the object is not ready, or "".
func (a *Applier) unreadyReason(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	live, err := a.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return "not found", nil
	case err != nil:
		return "", err
	}
	if observed, has, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration"); has && observed < live.GetGeneration() {
		return "its controller has not observed the latest change", nil
	}
	want, must := readyCondition(o)
	status, message, has := Condition(live, want)
	switch {
	case !has && must:
		return "no condition " + want, nil
	case has && status != "True":
		return fmt.Sprintf("condition %s is %s: %s", want, status, message), nil
	}
	return "", nil
}

// readyCondition returns the condition that indicates that an object of this kind is ready, and whether the
// object must have this condition.
func readyCondition(o *unstructured.Unstructured) (condition string, must bool) {
	switch o.GroupVersionKind().GroupKind().String() {
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return "Established", true
	case "Deployment.apps", "APIService.apiregistration.k8s.io":
		return "Available", true
	case "Job.batch":
		return "Complete", true
	}
	return "Ready", false
}

// Condition returns the status and the message of one of the object's
// conditions.
func Condition(o *unstructured.Unstructured, name string) (status, message string, has bool) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != name {
			continue
		}
		status, _, _ = unstructured.NestedString(fields, "status")
		message, _, _ = unstructured.NestedString(fields, "message")
		return status, message, true
	}
	return "", "", false
}
