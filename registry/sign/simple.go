package sign

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"github.com/quayside/quayside/internal/imageref"
)

// simplePayload returns what cosign signs of an image, which ref names by digest.
func simplePayload(ref string) ([]byte, error) {
	digest := imageref.Split(ref).Digest
	if !imageref.IsDigest(digest) {
		return nil, errors.New("only what is named by digest can be signed")
	}
	type identity struct {
		Reference string `json:"docker-reference"`
	}
	type image struct {
		Digest string `json:"docker-manifest-digest"`
	}
	type critical struct {
		Identity identity `json:"identity"`
		Image    image    `json:"image"`
		Type     string   `json:"type"`
	}
	name, _, _ := strings.Cut(ref, "@")
	return json.Marshal(struct {
		Critical critical `json:"critical"`
		Optional any      `json:"optional"`
	}{Critical: critical{identity{name}, image{digest}, "cosign container image signature"}})
}

// simpleAnnotations returns what a simple signature carries beside what is
// signed: the signature, and what vouches for it.
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
