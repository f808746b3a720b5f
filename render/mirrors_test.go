package render

import (
	"testing"

	"pgregory.net/rapid"
)

// TestOriginal checks that every image is found again by its name in a mirror, and that other images stay.
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
