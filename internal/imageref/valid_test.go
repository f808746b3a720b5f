package imageref

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, s := range []string{
		"x", "x:1", "quay.io/a/b", "localhost:5000/a__b/c-d.e:v1.0_2", "[::1]:5000/a", "Registry.Example.com/a" + digest, "a/b:tag" + digest,
	} {
		if !Valid(s) {
			t.Errorf("%q is an image", s)
		}
	}
	for _, s := range []string{
		"", ":::", "../x", "a//b", "a/B", "x y", "https://x/y", "x@sha256:zz", "x" + digest + "0", "x:", "x:.a", "-x", "a/b/", "x\n",
		"quay.io/" + strings.Repeat("a", 600), "x:" + strings.Repeat("a", 129),
	} {
		if Valid(s) {
			t.Errorf("%q is no image", s)
		}
	}
}
