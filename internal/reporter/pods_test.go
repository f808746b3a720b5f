package reporter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/health"
)

const wanted = "quay.io/x/operator@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// deployment returns the observation of an available Deployment.
func deployment(ready int64) v1alpha1.Observed {
	return v1alpha1.Observed{
		Ref: v1alpha1.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "operator",
			Images: []v1alpha1.ContainerImage{{Container: "manager", Image: wanted}},
		},
		Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "operator", "namespace": "ns", "generation": int64(1)},
			"spec": map[string]any{
				"replicas": int64(1),
				"selector": map[string]any{"matchLabels": map[string]any{"app": "operator"}},
				"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "image": wanted}}}},
			},
			"status": map[string]any{
				"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1),
				"readyReplicas": ready, "availableReplicas": ready,
				"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
			},
		},
	}
}

// pod returns a pod of the Deployment. The digest of its image consists of 64 copies of the letter.
func pod(letter string) map[string]any {
	return stripPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "operator-1", Labels: map[string]string{"app": "operator"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "manager", Image: wanted, ImageID: "mirror.example.com/operator@sha256:" + strings.Repeat(letter, 64),
		}}},
	})
}

// TestPodsAreListedOnWorkloadChange counts the requests for pods: a request is only made after a workload has changed.
func TestPodsAreListedOnWorkloadChange(t *testing.T) {
	var asked []string
	var answer error
	r := podReader{list: func(_ context.Context, namespace string, selector labels.Selector) ([]map[string]any, error) {
		asked = append(asked, namespace+" "+selector.String())
		return []map[string]any{pod("a")}, answer
	}}
	absent := v1alpha1.Observed{Ref: v1alpha1.ObjectReference{Kind: "Deployment", Namespace: "ns", Name: "gone", Images: deployment(1).Ref.Images}}
	plain := v1alpha1.Observed{Ref: v1alpha1.ObjectReference{Kind: "Service", Namespace: "ns", Name: "s"}, Object: map[string]any{}}
	var seen podCache
	for step, tt := range []struct {
		ready  int64
		answer error
		fails  bool
		asked  int // total number of requests
		pods   int
	}{
		{ready: 0, asked: 1, pods: 1},
		{ready: 0, asked: 1, pods: 1}, // no change
		{ready: 1, answer: errors.New("the server is unavailable"), fails: true, asked: 2, pods: 1},
		{ready: 1, asked: 3, pods: 1}, // listed again
		{ready: 0, answer: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil), asked: 4, pods: 0},
	} {
		answer = tt.answer
		got, err := r.read(t.Context(), seen, []v1alpha1.Observed{plain, absent, deployment(tt.ready)})
		if (err != nil) != tt.fails {
			t.Errorf("step %d: got error %v", step, err)
		}
		if err != nil && !strings.Contains(err.Error(), "listing the pods of Deployment ns/operator") {
			t.Errorf("step %d: %v does not name the Deployment", step, err)
		}
		if seen = got; len(asked) != tt.asked || len(seen.pods) != tt.pods {
			t.Errorf("step %d: %d requests, %d pods; want %d and %d", step, len(asked), len(seen.pods), tt.asked, tt.pods)
		}
	}
	if d := cmp.Diff("ns app=operator", asked[0]); d != "" {
		t.Error(d)
	}
}

// TestPodDigestsSetImagesMatch checks that the digests of pods determine the condition ImagesMatch.
func TestPodDigestsSetImagesMatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods []map[string]any
		want metav1.ConditionStatus
	}{
		{"the lock's", []map[string]any{pod("a")}, metav1.ConditionTrue},
		{"another", []map[string]any{pod("b")}, metav1.ConditionFalse},
		{"both", []map[string]any{pod("a"), pod("b")}, metav1.ConditionFalse},
		{"no pods", nil, metav1.ConditionUnknown},
		{"not a digest", []map[string]any{pod("x")}, metav1.ConditionUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := deployment(1)
			spec := v1alpha1.InstallationSpec{Package: "operator", Version: "1.0.0", Objects: []v1alpha1.ObjectReference{o.Ref}}
			status := health.Judge(spec, 1, v1alpha1.InstallationStatus{}, []v1alpha1.Observed{o}, tt.pods, time.Unix(0, 0))
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ImagesMatch)
			if c == nil || c.Status != tt.want || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.Ready) {
				t.Errorf("got %+v, want Ready and ImagesMatch %s", status.Conditions, tt.want)
			}
		})
	}
}
