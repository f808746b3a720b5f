package diff

import (
	"testing"

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
		if !img.Plausible() || mirrored(img, prefixes) != want {
			t.Errorf("%s: is an image: %v, mirrored: %v", image, img.Plausible(), !want)
		}
	}
}
