package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
)

// Status is the result of observing a cluster, with the context and server of its kubeconfig.
type Status struct {
	health.Summary
	Context string `json:"context"`
	Server  string `json:"server"`
	Healthy bool   `json:"healthy" doc:"whether every operator is Ready"`

	Warnings []diag.Warning `json:"-"` // objects of OLM that could not be listed
}

// newStatus returns the status with a summary. details holds the details of each operator, by
// "namespace/package".
func (l *observer) newStatus(summary health.Summary, details map[string]health.Details) *Status {
	for i := range summary.Operators {
		op := &summary.Operators[i]
		d := details[op.Key()]
		d.Conditions = append([]metav1.Condition{}, op.Status.Conditions...)
		d.Summary, d.CustomResources = op.Status.Summary, []health.CustomKind{}
		d.Objects = append([]v1alpha1.ObjectHealth{}, d.Objects...)
		d.Images = append([]v1alpha1.RunningImage{}, op.Status.Images...)
		op.Details = &d
		if pin, ok := l.want.Lock.Pin(op.Namespace, op.Package); ok {
			op.Bundle = pin.BundleDigest()
		}
		if r := d.Reporter; r != nil {
			op.ReadySince = r.ReadySince
		}
	}
	return &Status{Summary: summary, Context: l.c.Context, Server: l.c.Server, Healthy: summary.IsHealthy()}
}

// compare compares the status that the reporter wrote to inst with judged, the current status. inst is nil if the
// cluster has no Installation of the operator. If there is no reporter and none is expected, compare returns nil.
func (r *reporterState) compare(inst *v1alpha1.Installation, judged v1alpha1.InstallationStatus) *health.Reporter {
	switch {
	case inst == nil && r.absent != "" && r.wanted:
		return &health.Reporter{State: "absent", Message: r.absent}
	case inst == nil && (r.wanted || len(r.objects) > 0):
		return &health.Reporter{State: "absent", Message: "Installation missing"}
	case inst == nil:
		return nil
	}
	v := &health.Reporter{State: "current"}
	ready := meta.FindStatusCondition(inst.Status.Conditions, v1alpha1.Ready)
	if ready != nil {
		v.Ready = string(ready.Status)
	}
	switch {
	case ready == nil:
		v.State, v.Message = "pending", "no report yet"
	case inst.Status.ObservedGeneration != inst.Generation || inst.Status.Pin != inst.Spec.Pin:
		v.State, v.Message = "stale", fmt.Sprintf("its report is for version %s, generation %d of %d", inst.Status.Version, inst.Status.ObservedGeneration, inst.Generation)
	default:
		if at := inst.Status.ReadySince; at != nil && inst.Status.BundleDigest == judged.BundleDigest {
			v.ReadySince = at.Time
		}
		if !meta.IsStatusConditionPresentAndEqual(judged.Conditions, v1alpha1.Ready, ready.Status) {
			v.Message = fmt.Sprintf("it reports Ready=%s: %s", ready.Status, ready.Message)
		}
	}
	return v
}
