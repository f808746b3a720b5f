package k8s

import (
	"slices"
	"testing"
)

func TestContainers(t *testing.T) {
	pod := map[string]any{
		"containers":     []any{map[string]any{"name": "main"}, "none", map[string]any{"name": "beside"}},
		"initContainers": []any{map[string]any{"name": "first"}},
	}
	template := map[string]any{"template": map[string]any{"spec": pod}}
	for _, o := range []Object{
		{"apiVersion": "v1", "kind": "Pod", "spec": pod},
		{"apiVersion": "apps/v1", "kind": "Deployment", "spec": template},
		{"apiVersion": "batch/v1", "kind": "CronJob", "spec": map[string]any{"jobTemplate": map[string]any{"spec": template}}},
		{"apiVersion": "example.com/v1", "kind": "CronJob", "spec": template},
	} {
		var got []string
		for _, c := range Containers(PodSpec(o)) {
			got = append(got, Text(c, "name"))
		}
		if want := []string{"first", "main", "beside"}; !slices.Equal(got, want) {
			t.Errorf("%s %s: got %v, want %v", o.APIVersion(), o.Kind(), got, want)
		}
	}
	if got := PodSpec(Object{"kind": "Pod"}); got != nil {
		t.Errorf("without a spec: %v", got)
	}
}
