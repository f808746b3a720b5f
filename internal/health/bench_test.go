package health

import (
	"testing"

	"github.com/quayside/quayside/api/v1alpha1"
)

// BenchmarkJudge evaluates an installation of 70 objects, the size of a large operator.
func BenchmarkJudge(b *testing.B) {
	var spec v1alpha1.InstallationSpec
	var got []v1alpha1.Observed
	deployment := parse(b, `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 1, labels: {quayside.dev/version: 1.0.0}}
spec: {replicas: 1, progressDeadlineSeconds: 600, template: {spec: {containers: [{name: c, image: "x:1"}]}}}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]
`)
	role := parse(b, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {labels: {quayside.dev/version: 1.0.0}}}`)
	for i := range 70 {
		o := role
		ref := v1alpha1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: string(rune('A' + i)), Version: "1.0.0"}
		if i%10 == 0 {
			o = deployment
			ref.APIVersion, ref.Kind = "apps/v1", "Deployment"
			ref.Images = []v1alpha1.ContainerImage{{Container: "c", Image: "x:1"}}
		}
		spec.Objects = append(spec.Objects, ref)
		got = append(got, v1alpha1.Observed{Ref: ref, Object: o})
	}
	b.ReportAllocs()
	for b.Loop() {
		if s := Judge(spec, 1, v1alpha1.InstallationStatus{}, got, nil, noon()); s.Summary.Current != 70 {
			b.Fatalf("%+v", s.Summary)
		}
	}
}
