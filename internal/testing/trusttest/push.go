// Package trusttest signs images in tests.
//
// Start from [NewKey], [PushSimple] and [PushBundle].
package trusttest

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	simpleType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// Simple is a signature in cosign's simple signing format.
type Simple struct {
	Payload     []byte
	Annotations map[string]string
}

// PushSimple pushes signatures of an image to a repository such as "127.0.0.1:5000/org/name". It uses the tag
// that cosign derives from the image's digest.
func PushSimple(tb testing.TB, repo, digest string, sigs ...Simple) {
	tb.Helper()
	var layers []mutate.Addendum
	for _, s := range sigs {
		layers = append(layers, mutate.Addendum{Layer: static.NewLayer(s.Payload, simpleType), Annotations: s.Annotations})
	}
	pushImage(tb, repo+":"+strings.Replace(digest, ":", "-", 1)+".sig", newArtifact(tb, types.OCIConfigJSON, layers...))
}

// PushBundle pushes a sigstore bundle to a repository, as a referrer of the image with this digest. If the
// registry has no referrers API, PushBundle adds the bundle to the index that is tagged with the digest.
func PushBundle(tb testing.TB, repo, digest string, bundle []byte) {
	tb.Helper()
	subject, err := v1.NewHash(digest)
	if err != nil {
		tb.Fatal(err)
	}
	signature := newArtifact(tb, bundleType, mutate.Addendum{Layer: static.NewLayer(bundle, bundleType)})
	signature = mutate.Subject(signature, v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: subject, Size: 1}).(v1.Image)
	own, err := signature.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	pushImage(tb, repo+"@"+own.String(), signature)
}

// newArtifact returns an artifact with layers.
func newArtifact(tb testing.TB, config types.MediaType, layers ...mutate.Addendum) v1.Image {
	tb.Helper()
	im, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), config), layers...)
	if err != nil {
		tb.Fatal(err)
	}
	return im
}

func pushImage(tb testing.TB, ref string, im v1.Image) {
	tb.Helper()
	to, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(to, im, remote.WithContext(tb.Context()))
	}
	if err != nil {
		tb.Fatal(err)
	}
}
