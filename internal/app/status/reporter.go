package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
)

// Reporter is the status of an operator according to the reporter.
type Reporter struct {
	State      string      `json:"state"` // absent, pending, stale, current
	Ready      string      `json:"ready,omitempty"`
	ReadySince metav1.Time `json:"readySince,omitzero" doc:"time since which the pinned bundle has been Ready without interruption"`
	Message    string      `json:"message,omitempty"`
}

// compare compares the status of an Installation with the current judgement. It returns nil if
// there is no reporter and none is expected.
func (r *reporterState) compare(inst *v1alpha1.Installation, judged v1alpha1.InstallationStatus) *Reporter {
	switch {
	case inst == nil && r.absent != "" && r.wanted:
		return &Reporter{State: "absent", Message: r.absent}
	case inst == nil && (r.wanted || len(r.objects) > 0):
		return &Reporter{State: "absent", Message: "Installation missing"}
	case inst == nil:
		return nil
	}
	v := &Reporter{State: "current"}
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
			v.ReadySince = *at
		}
		if !meta.IsStatusConditionPresentAndEqual(judged.Conditions, v1alpha1.Ready, ready.Status) {
			v.Message = fmt.Sprintf("it reports Ready=%s: %s", ready.Status, ready.Message)
		}
	}
	return v
}
