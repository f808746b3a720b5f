package render

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMirrorsInEveryPod puts an image into an object of each kind with pods, and checks that the rendered
// object no longer names the source.
func TestMirrorsInEveryPod(t *testing.T) {
	pod := func() map[string]any {
		return map[string]any{
			"initContainers": []any{map[string]any{"name": "a", "image": "quay.io/x:1"}},
			"containers":     []any{map[string]any{"name": "b", "image": "quay.io/x:1", "args": []any{"--image=quay.io/x:1"}}},
			"volumes":        []any{map[string]any{"name": "v", "image": map[string]any{"reference": "quay.io/x:1"}}},
		}
	}
	template := map[string]any{"template": map[string]any{"spec": pod()}}
	for _, o := range []Object{
		{"apiVersion": "v1", "kind": "Pod", "spec": pod()},
		{"apiVersion": "v1", "kind": "PodTemplate", "template": map[string]any{"spec": pod()}},
		{"apiVersion": "apps/v1", "kind": "Deployment", "spec": template},
		{"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": template},
		{"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": template},
		{"apiVersion": "batch/v1", "kind": "Job", "spec": template},
		{"apiVersion": "batch/v1", "kind": "CronJob", "spec": map[string]any{"jobTemplate": map[string]any{"spec": template}}},
		{"apiVersion": "db.example.com/v1", "kind": "Database", "spec": map[string]any{"pods": []any{pod()}}},
	} {
		operators := []operator{{objects: []Object{o}}}
		mirrorAll(operators, []Mirror{{Source: "quay.io", Mirror: "m.corp/quay"}})
		text, err := json.Marshal(operators[0].objects[0])
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "quay.io") || strings.Count(string(text), "m.corp/quay/x:1") != 4 {
			t.Errorf("%s: %s", o.Kind(), text)
		}
	}
}

// TestOriginal checks that Original reverses Mirrored for every image.
func TestOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"quay.io", "quay.io/a", "quay.io/a/b", "docker.io", "docker.io/library", "ghcr.io/a"}), 0, 4, rapid.ID).Draw(t, "sources")
		var mirrors []Mirror
		for i, source := range sources {
			mirrors = append(mirrors, Mirror{Source: source, Mirror: "m.corp/" + string(rune('a'+i)), DigestOnly: rapid.Bool().Draw(t, "digests")})
		}
		image := rapid.SampledFrom([]string{"quay.io/x:1", "quay.io/a/x:1", "quay.io/a/b/c:1", "quay.io/a/b:1", "docker.io/library/x:1", "docker.io/a/x:1", "ghcr.io/a/x:1", "ghcr.io/b:1"}).Draw(t, "image")
		if rapid.Bool().Draw(t, "digest") {
			image += "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
		}
		if got := Original(Mirrored(image, mirrors), mirrors); got != image {
			t.Errorf("%s is %s in a mirror, and then %s: %v", image, Mirrored(image, mirrors), got, mirrors)
		}
	})
}
