package reporter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

func TestMetrics(t *testing.T) {
	f := newMetricStore()
	status := v1alpha1.InstallationStatus{
		Summary: v1alpha1.ObjectCounts{Total: 3, Current: 2, Failed: 1},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.Ready, Status: metav1.ConditionFalse},
			{Type: v1alpha1.Upgradeable, Status: metav1.ConditionFalse},
			{Type: v1alpha1.ImagesMatch, Status: metav1.ConditionUnknown},
		},
	}
	f.set(installation("etcd", 1), status)
	twin := installation("zz", 1)
	twin.Spec.Package = "etcd" // the same series as the first Installation
	f.set(twin, v1alpha1.InstallationStatus{})
	c := collector{metrics: f, kinds: func() map[string]int { return map[string]int{stateWatched: 4} }, build: buildInfo{"v1", "go1"}}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	got := gatherMetrics(t, registry)
	want := map[string]float64{
		"quayside_installation_ready ns etcd 1.0.0":               0,
		"quayside_installation_upgradeable ns etcd 1.0.0":         0,
		"quayside_installation_objects ns etcd Current 1.0.0":     2,
		"quayside_installation_objects ns etcd Failed 1.0.0":      1,
		"quayside_installation_objects ns etcd Forbidden 1.0.0":   0,
		"quayside_installation_objects ns etcd InProgress 1.0.0":  0,
		"quayside_installation_objects ns etcd NotFound 1.0.0":    0,
		"quayside_installation_objects ns etcd Terminating 1.0.0": 0,
		"quayside_installation_objects ns etcd Unknown 1.0.0":     0,
		"quayside_reporter_kinds Watched":                         4,
		"quayside_reporter_build_info go1 v1":                     1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	f.forget(types.NamespacedName{Namespace: "ns", Name: "etcd"})
	f.forget(types.NamespacedName{Namespace: "ns", Name: "zz"})
	if got := gatherMetrics(t, registry); len(got) != 2 {
		t.Errorf("a deleted Installation has series: %v", got)
	}
}

// gatherMetrics returns metric values. Each key is "name label label", with label values in the order of label names.
func gatherMetrics(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}
