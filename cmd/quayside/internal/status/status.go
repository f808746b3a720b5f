package status

import (
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

// newStatus returns the status with a summary. details are the details of each operator, by
// namespace/package.
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
