package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/cmd/quayside/internal/status"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/terminal"
)

// TestUnhealthyMessage checks that a few unhealthy operators are listed, and that "and N more" never
// replaces a single operator.
func TestUnhealthyMessage(t *testing.T) {
	for n, want := range map[int]string{
		0: "unhealthy: ", 1: "unhealthy: ops/a (Failed)", 6: "unhealthy: ops/a (Failed), ops/b (Failed), ops/c (Failed), ops/d (Failed), ops/e (Failed), ops/f (Failed)",
		7: "unhealthy: ops/a (Failed), ops/b (Failed), ops/c (Failed), ops/d (Failed), ops/e (Failed), and 2 more",
	} {
		v := status.Status{Summary: health.Summary{Operators: []health.OperatorHealth{{Namespace: "ops", Package: "good", State: health.StateReady}}}}
		for i := range n {
			v.Operators = append(v.Operators, health.OperatorHealth{Namespace: "ops", Package: string(rune('a' + i)), State: health.StateFailed})
		}
		if got := unhealthyMessage(&v); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := unhealthyMessage(&status.Status{Healthy: true}); got != "" {
		t.Errorf("message without unhealthy operators: %q", got)
	}
}

// TestWriteStatus checks that only tables with rows are printed, objects and kinds are listed once,
// unhealthy ones first, and messages cannot add lines.
func TestWriteStatus(t *testing.T) {
	bad := v1alpha1.ObjectHealth{APIVersion: "v1", Kind: "Service", Namespace: "ops", Name: "z", Health: v1alpha1.Failed, Message: "x\nforged"}
	good := v1alpha1.ObjectHealth{APIVersion: "v1", Kind: "Namespace", Name: "a", Health: v1alpha1.Current}
	kind := health.CustomKind{APIVersion: "g/v1", Kind: "Light", Count: 100, AtLeast: true, NotReady: 2}
	v := status.Status{Summary: health.Summary{Operators: []health.OperatorHealth{
		{
			Namespace: "ops", Package: "lamp", Version: "1.0.0", Applied: []string{"0.9.0", "1.0.0"}, State: health.StateFailed, Message: "m", Upgradeable: "False", UpgradeMessage: "wait",
			Details: &health.Details{
				Conditions: []metav1.Condition{{Type: v1alpha1.ImagesMatch, Status: "False", Message: "another image"}},
				Objects:    []v1alpha1.ObjectHealth{good, bad}, CustomResources: []health.CustomKind{kind, {Kind: "Empty"}},
				Images:   []v1alpha1.RunningImage{{Kind: "Deployment", Name: "lamp", Container: "c", Want: "x", Digests: []string{"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}},
				Reporter: &health.Reporter{State: "stale", Message: "old"}, Notes: []string{"note"},
			},
		},
		{Namespace: "ops", Package: "tin", State: health.StateReady, Upgradeable: "True", Details: &health.Details{Objects: []v1alpha1.ObjectHealth{good}, CustomResources: []health.CustomKind{kind}}},
	}}}
	var out bytes.Buffer
	writeStatus(terminal.New(&out, nil), &v)
	want := strings.ReplaceAll(`OPERATOR|LOCK|CLUSTER|STATUS|UPGRADEABLE|MESSAGE
ops/lamp|1.0.0|0.9.0,1.0.0|Failed|False|m
ops/tin|-|-|Ready|True|

OPERATOR|NOTE
ops/lamp|Upgradeable=False: wait
ops/lamp|another image
ops/lamp|reporter stale: old
ops/lamp|note

KIND|COUNT|NAME|NAMESPACE|STATUS|MESSAGE
Light|>=100|||2 not ready|

NAME|NAMESPACE|KIND|STATUS|MESSAGE
z|ops|Service|Failed|x forged
a|-|Namespace|Current|

OPERATOR|WORKLOAD|CONTAINER|IMAGE|RUNNING
ops/lamp|Deployment/lamp|c|x|sha256:0123456789ab
`, "|", "\t")
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
