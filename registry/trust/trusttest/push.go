// Package trusttest signs images for tests: with keys, and with the
// certificates of authorities that live as long as the test.
//
// Start from [NewKey], [NewAuthority], [PushSimple] and [PushBundle].
package trusttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	bundleType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	simpleType   = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// Simple is one of cosign's simple signatures.
type Simple struct {
	Payload     []byte
	Annotations map[string]string
}

type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int               `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// PushSimple puts signatures of the image with that digest into a repository
// ("127.0.0.1:5000/org/name"), below the tag that cosign gives them.
func PushSimple(tb testing.TB, repo, digest string, sigs ...Simple) {
	tb.Helper()
	config := pushBlob(tb, repo, "application/vnd.oci.image.config.v1+json", []byte("{}"))
	var layers []descriptor
	for _, s := range sigs {
		d := pushBlob(tb, repo, simpleType, s.Payload)
		d.Annotations = s.Annotations
		layers = append(layers, d)
	}
	pushManifest(tb, repo, strings.Replace(digest, ":", "-", 1)+".sig", manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": layers,
	})
}

// PushBundle puts a sigstore bundle into a repository, as a referrer of the
// image with that digest and, as registries without the API for it want it, in
// the index below the tag of the image's digest, in place of what is there.
func PushBundle(tb testing.TB, repo, digest string, bundle []byte) {
	tb.Helper()
	config := pushBlob(tb, repo, "application/vnd.oci.empty.v1+json", []byte("{}"))
	layer := pushBlob(tb, repo, bundleType, bundle)
	d := pushManifest(tb, repo, "", manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "artifactType": bundleType, "config": config, "layers": []descriptor{layer},
		"subject": descriptor{MediaType: manifestType, Digest: digest, Size: 1},
	})
	d.ArtifactType = bundleType
	pushManifest(tb, repo, strings.Replace(digest, ":", "-", 1), indexType, map[string]any{
		"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{d},
	})
}

func pushBlob(tb testing.TB, repo, mediaType string, data []byte) descriptor {
	tb.Helper()
	d := describe(mediaType, data)
	host, path, _ := strings.Cut(repo, "/")
	send(tb, http.MethodPost, "http://"+host+"/v2/"+path+"/blobs/uploads/?digest="+d.Digest, "application/octet-stream", data)
	return d
}

// pushManifest puts a manifest below ref, or below its digest.
func pushManifest(tb testing.TB, repo, ref, mediaType string, m map[string]any) descriptor {
	tb.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	d := describe(mediaType, data)
	if ref == "" {
		ref = d.Digest
	}
	host, path, _ := strings.Cut(repo, "/")
	send(tb, http.MethodPut, "http://"+host+"/v2/"+path+"/manifests/"+ref, mediaType, data)
	return d
}

func describe(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(data)}
}

func send(tb testing.TB, method, url, mediaType string, data []byte) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(res.Body)
		tb.Fatalf("%s %s: %s %s", method, url, res.Status, text)
	}
}
