package reporter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
)

// TestStrippedObjectsHaveSameHealth checks that each object has the same health before and after it is stripped.
func TestStrippedObjectsHaveSameHealth(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{
		"a rollout": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2, progressDeadlineSeconds: 60},
 status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: "True", reason: x}]}}`,
		"not seen yet":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 3}, status: {observedGeneration: 2}}`,
		"names taken":   `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, status: {conditions: [{type: NamesAccepted, status: "False", reason: MultipleNamesNotAllowed}]}}`,
		"conversion":    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {webhook: {clientConfig: {service: {name: x}}}}, versions: [{name: v1}]}, status: {conditions: [{type: Established, status: "True"}]}}`,
		"without a CA":  `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w, rules: [{}], clientConfig: {service: {name: x}}}]}`,
		"with a CA":     `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w, clientConfig: {service: {name: x}, caBundle: eA==}}]}`,
		"expired":       `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, spec: {secretName: s}, status: {notAfter: "2025-01-01T00:00:00Z", conditions: [{type: Ready, status: "True"}]}}`,
		"a failed job":  `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 1}, status: {failed: 1, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`,
		"load balancer": `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, ports: [{port: 1}]}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`,
		"being deleted": `{apiVersion: example.com/v1, kind: Beacon, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z"}}`,
		"a bad pod":     `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
		"stateful":      `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {replicas: 3, readyReplicas: 3, currentReplicas: 1, updatedReplicas: 2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := new(unstructured.Unstructured)
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			kept, err := newStripper().strip(o)
			if err != nil {
				t.Fatal(err)
			}
			want, got := health.Compute(o.Object, now), health.Compute(kept.(*unstructured.Unstructured).Object, now)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("health of the stripped object (-complete +stripped):\n%s", d)
			}
			if again, _ := newStripper().strip(kept); !equalWhereJudged(kept, again) {
				t.Error("stripping twice changes the object")
			}
		})
	}
}

func TestMetadataAreShared(t *testing.T) {
	s := newStripper()
	keep := func(name, version string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", ResourceVersion: version, Annotations: map[string]string{"large": "text"},
			Labels: map[string]string{k8s.LabelPackage: "etcd", "quayside.dev/version": "1.0.0", "other": "label"},
		}}
		kept, err := s.strip(o)
		if err != nil {
			t.Fatal(err)
		}
		return kept.(*metav1.PartialObjectMetadata)
	}
	a := keep("a", "1")
	if len(a.Annotations) != 0 || len(a.Labels) != 2 || a.ResourceVersion != "1" {
		t.Errorf("kept %+v", a)
	}
	if !equalWhereJudged(a, keep("a", "2")) {
		t.Error("a new resourceVersion counts as a change")
	}
	got := metadataObject(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, a)
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "a", "namespace": "ns", "labels": map[string]any{k8s.LabelPackage: "etcd", "quayside.dev/version": "1.0.0"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("object (-want +got):\n%s", d)
	}
}
