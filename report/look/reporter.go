package look

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/report/v1alpha1"
)

// Reporter is what the reporter in the cluster says of an operator.
type Reporter struct {
	State      string      `json:"state"` // absent, pending, stale, current
	Ready      string      `json:"ready,omitempty"`
	ReadySince metav1.Time `json:"readySince,omitzero" doc:"since when it has found the bundle that the lock pins to be Ready, without a break"`
	Message    string      `json:"message,omitempty"`
}

// says returns what the reporter says of an installation, nil where there is no
// reporter and none is wanted. judged is what was found now.
func (r *reported) says(inst *v1alpha1.Installation, judged v1alpha1.InstallationStatus) *Reporter {
	switch {
	case inst == nil && r.absent != "" && r.wanted:
		return &Reporter{State: "absent", Message: r.absent}
	case inst == nil && (r.wanted || len(r.objects) > 0):
		return &Reporter{State: "absent", Message: "there is no Installation"}
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
		v.State, v.Message = "pending", "it has not looked yet"
	case inst.Status.ObservedGeneration != inst.Generation || inst.Status.Pin != inst.Spec.Pin:
		v.State, v.Message = "stale", fmt.Sprintf("what it says is about version %s, generation %d of %d", inst.Status.Version, inst.Status.ObservedGeneration, inst.Generation)
	default:
		if at := inst.Status.ReadySince; at != nil && inst.Status.BundleDigest == judged.BundleDigest {
			v.ReadySince = *at
		}
		if !meta.IsStatusConditionPresentAndEqual(judged.Conditions, v1alpha1.Ready, ready.Status) {
			v.Message = fmt.Sprintf("it says Ready=%s: %s", ready.Status, ready.Message)
		}
	}
	return v
}
