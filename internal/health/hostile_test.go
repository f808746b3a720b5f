package health

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/api/v1alpha1"
)

// TestJudgeLongNames evaluates an Installation with names of a megabyte. The API server limits
// messages to 32 KiB.
func TestJudgeLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	spec := v1alpha1.InstallationSpec{Package: "p", Objects: []v1alpha1.ObjectReference{{
		APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a",
		Images: []v1alpha1.ContainerImage{{Container: "c", Image: "x"}, {Container: "d", Image: "x@" + long}, {Container: long, Image: "x"}},
	}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: long}}}
	pod := parse(t, `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ns}
spec: {containers: [{name: c, image: x}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: d, imageID: "x@sha256:`+strings.Repeat("0", 64)+`"}]
`)
	got := []v1alpha1.Observed{{Ref: spec.Objects[0], Object: pod}, {Ref: spec.Objects[1]}}
	out := Judge(spec, 1, v1alpha1.InstallationStatus{}, got, []map[string]any{pod}, noon())
	if len(out.Conditions) < 3 {
		t.Errorf("conditions: %v", out.Conditions)
	}
	for _, c := range out.Conditions {
		if len(c.Message) > 4096 {
			t.Errorf("%s: a message of %d bytes", c.Type, len(c.Message))
		}
	}
	im := newImageComparison([]map[string]any{pod})
	im.add(spec.Objects[0], pod, v1alpha1.Current)
	if c, ok := im.condition(); !ok || c.Status != "False" || len(c.Message) > 4096 {
		t.Errorf("%v, %v, %d bytes", ok, c.Status, len(c.Message))
	}
}
