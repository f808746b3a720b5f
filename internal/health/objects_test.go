package health_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/health"
)

// TestObjects judges more unhealthy objects than a status lists. JudgeObjects must return all of
// them, in the order of the status.
func TestObjects(t *testing.T) {
	var spec v1alpha1.InstallationSpec
	var got []v1alpha1.Observed
	for i := range 150 {
		ref := v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: fmt.Sprintf("s%03d", i)}
		spec.Objects = append(spec.Objects, ref)
		o := v1alpha1.Observed{Ref: ref}
		switch i % 3 {
		case 0:
			o.Object = map[string]any{"apiVersion": "v1", "kind": "Secret"}
		case 1:
			o.Reason, o.Message = v1alpha1.ReasonForbidden, "no"
		}
		got = append(got, o)
	}
	now := time.Unix(0, 0)
	all := health.JudgeObjects(spec, got, now)
	status := health.Judge(spec, 1, v1alpha1.InstallationStatus{}, got, nil, now)
	if d := cmp.Diff(status.Objects, all[:len(status.Objects)]); d != "" {
		t.Errorf("(-status +objects):\n%s", d)
	}
	healths := map[v1alpha1.HealthStatus]int{}
	for _, o := range all {
		healths[o.Health]++
	}
	want := map[v1alpha1.HealthStatus]int{v1alpha1.Current: 50, v1alpha1.Forbidden: 50, v1alpha1.NotFound: 50}
	if d := cmp.Diff(want, healths); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if all[149].Health != v1alpha1.Current || all[149].Name != "s147" {
		t.Errorf("the last is %v", all[149])
	}
}
