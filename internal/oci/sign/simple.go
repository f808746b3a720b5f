package sign

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/quayside/quayside/internal/imageref"
)

// simplePayload returns the document that a simple signature signs. ref must contain the digest of
// the image.
func simplePayload(ref string) ([]byte, error) {
	digest := imageref.Split(ref).Digest
	if !imageref.IsDigest(digest) {
		return nil, errors.New("only images with a digest can be signed")
	}
	name, _, _ := strings.Cut(ref, "@")
	return json.Marshal(payload.SimpleContainerImage{Critical: payload.Critical{
		Identity: payload.Identity{DockerReference: name},
		Image:    payload.Image{DockerManifestDigest: digest},
		Type:     payload.CosignSignatureType,
	}})
}

// simpleAnnotations returns the annotations of a simple signature: the signature itself and the
// material to verify it.
func simpleAnnotations(b *protobundle.Bundle) (map[string]string, error) {
	out := map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(b.GetMessageSignature().GetSignature()),
	}
	material := b.GetVerificationMaterial()
	if cert := material.GetCertificate(); cert != nil {
		out["dev.sigstore.cosign/certificate"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.GetRawBytes()}))
	}
	for _, entry := range material.GetTlogEntries() {
		promise, err := json.Marshal(map[string]any{
			"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
			"Payload": map[string]any{
				"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
				"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
			},
		})
		if err != nil {
			return nil, err
		}
		out["dev.sigstore.cosign/bundle"] = string(promise)
	}
	for _, stamp := range material.GetTimestampVerificationData().GetRfc3161Timestamps() {
		text, err := json.Marshal(map[string]any{"SignedRFC3161Timestamp": stamp.GetSignedTimestamp()})
		if err != nil {
			return nil, err
		}
		out["dev.sigstore.cosign/rfc3161timestamp"] = string(text)
	}
	return out, nil
}
