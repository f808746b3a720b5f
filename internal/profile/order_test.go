package profile_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// TestPhases checks the order in which objects can be applied.
func TestPhases(t *testing.T) {
	want := []string{
		"v1 Namespace", "policy/v1 PodDisruptionBudget", "v1 ServiceAccount", "v1 Secret", "v1 PersistentVolumeClaim",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "rbac.authorization.k8s.io/v1 Role", "rbac.authorization.k8s.io/v1 RoleBinding",
		"v1 Service", "apps/v1 Deployment", "autoscaling/v2 HorizontalPodAutoscaler", "monitoring.coreos.com/v1 ServiceMonitor",
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "example.com/v1 Namespace",
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	phase := func(s string) int {
		version, kind, _ := strings.Cut(s, " ")
		return profile.Phase(k8s.New(version, kind, "", "x"))
	}
	slices.SortFunc(got, func(a, b string) int { return phase(a) - phase(b) })
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if phase("node.k8s.io/v1 RuntimeClass") != phase("apps/v1 Deployment") {
		t.Error("an unlisted kind of Kubernetes is not in the phase of workloads")
	}
}
