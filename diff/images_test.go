package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/imageref"
)

func TestMirrored(t *testing.T) {
	prefixes := []string{"docker.io", "quay.io/org/", "*.example.com", "*.example.org/team"}
	for image, want := range map[string]bool{
		"nginx:1": true, "library/nginx": true, "docker.io/nginx@sha256:0": true, "index.docker.io/org/x:1": true,
		"quay.io/org/x:1": true, "quay.io/org:1": true, "quay.io/organ/x:1": false,
		"a.example.com/x:1": true, "a.b.example.com/x/y:1": true, "example.com/x:1": false, "aexample.com/x:1": false,
		"a.example.org/team/x:1": true, "a.example.org/teams/x:1": false, "a.example.org/x/team:1": false,
	} {
		img := imageref.Split(image)
		if !img.Plausible() || isMirrored(img, prefixes) != want {
			t.Errorf("%s: is an image: %v, mirrored: %v", image, img.Plausible(), !want)
		}
	}
}

// TestImages checks the image references found in environment variables and arguments.
func TestImages(t *testing.T) {
	o, err := Content([]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"spec": {
		"initContainers": [{"name": "i", "image": "busybox"}],
		"containers": [{"name": "c", "image": "quay.io/org/c:1",
			"env": [{"name": "RELATED_IMAGE_X", "value": "org/x"}, {"name": "KAFKA", "value": "4.1=quay.io/org/kafka:4.1\n4.2=quay.io/org/kafka:4.2\n"}, {"name": "URL", "value": "http://example.com:80/a/b"}],
			"args": ["--solver=quay.io/org/solver:2", "--config", "{\"image\": \"example.com/one:1\"}"]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"quay.io/org/c:1", "docker.io/org/x", "quay.io/org/kafka:4.1", "quay.io/org/kafka:4.2", "quay.io/org/solver:2", "example.com/one:1", "docker.io/library/busybox",
	}
	if d := cmp.Diff(want, (&Object{Content: o}).Images()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
