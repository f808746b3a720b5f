package reporter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/sanitize"
)

// pendingStatus is a status that was written, but is not yet in the cache.
type pendingStatus struct {
	resourceVersion string // resourceVersion of the cached Installation at that time
	status          v1alpha1.InstallationStatus
}

// currentStatus returns the latest status of an Installation: the pending status until the cached
// Installation changes, and then the cached status.
func (m *entry) currentStatus(in *v1alpha1.Installation) v1alpha1.InstallationStatus {
	if m.written != nil && m.written.resourceVersion == in.ResourceVersion {
		return m.written.status
	}
	m.written = nil
	return in.Status
}

// write writes the status by server-side apply.
func (r *reporter) write(ctx context.Context, m *entry, in *v1alpha1.Installation, status v1alpha1.InstallationStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	o.SetNamespace(in.Namespace)
	o.SetName(in.Name)
	o.SetUID(in.UID) // reject the request if the Installation was deleted and recreated
	err = r.status.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(Name), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	m.written = &pendingStatus{resourceVersion: in.ResourceVersion, status: status}
	ready := condition(status, v1alpha1.Ready)
	r.log.Info("judged", "namespace", in.Namespace, "name", in.Name, "version", in.Spec.Version, "ready", string(ready.Status), "message", ready.Message)
	return nil
}

// recordEvents records an Event for each condition that changed.
func (r *reporter) recordEvents(in *v1alpha1.Installation, prev, status v1alpha1.InstallationStatus) {
	for _, kind := range []string{v1alpha1.Ready, v1alpha1.Upgradeable, v1alpha1.ImagesMatch} {
		now := condition(status, kind)
		if now.Status == condition(prev, kind).Status || now.Status == "" {
			continue
		}
		severity, reason := corev1.EventTypeNormal, kind
		if now.Status != metav1.ConditionTrue {
			reason = "Not" + kind
		}
		if now.Status == metav1.ConditionFalse && (kind != v1alpha1.Ready || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.Stalled)) {
			severity = corev1.EventTypeWarning
		}
		r.events.Eventf(in, nil, severity, reason, "Judge", "%s is %s: %s", kind, now.Status, sanitize.Truncate(now.Message, maxNote))
	}
}

// maxNote is the maximum length of an Event's message in bytes. The API server accepts 1,024,
// including a prefix.
const maxNote = 900

// condition returns the condition with the given type, or the zero value if there is none.
func condition(status v1alpha1.InstallationStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
