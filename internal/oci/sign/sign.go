// Package sign signs images in a registry, and statements about them, as cosign does: with a key,
// or with a certificate for an identity.
//
// A signature is stored in both formats of cosign, because most verifiers support only one: as a simple
// signature under a tag, and as a sigstore bundle that refers to the image. A statement is stored only as a
// bundle. Signatures with a key are reproducible, and existing signatures are not sent again.
//
// Start from [NewKey] or [Keyless], and [Signer.Sign].
package sign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
)

const (
	statementType   = "https://in-toto.io/Statement/v1"
	statementFormat = "application/vnd.in-toto+json"
	signPredicate   = "https://sigstore.dev/cosign/sign/v1"
)

// Signer signs with one key. It is not safe for concurrent use.
type Signer struct {
	pair    sign.Keypair
	options sign.BundleOptions
	public  []byte // public key in PEM format; nil for a temporary key
}

// PublicKey returns the public key in PEM format, or nil for keyless signing.
func (s *Signer) PublicKey() []byte { return s.public }

// Sign signs an image in a registry. ref must contain the digest of the image. The result reports
// whether anything was sent.
func (s *Signer) Sign(ctx context.Context, c *oci.Client, ref string) (bool, error) {
	payload, err := simplePayload(ref)
	if err != nil {
		return false, err
	}
	b, err := s.bundle(ctx, &sign.PlainData{Data: payload})
	if err != nil {
		return false, err
	}
	annotations, err := simpleAnnotations(b)
	if err != nil {
		return false, err
	}
	simple, err := c.AddSignature(ctx, ref, payload, annotations)
	if err != nil {
		return false, err
	}
	bundled, err := s.Attest(ctx, c, ref, signPredicate, struct{}{})
	return simple || bundled, err
}

// SignBlob signs data like 'cosign sign-blob --bundle', and returns the sigstore bundle. It sends nothing to a
// registry.
func (s *Signer) SignBlob(ctx context.Context, data []byte) ([]byte, error) {
	b, err := s.bundle(ctx, &sign.PlainData{Data: data})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data) // Ed25519 signs the whole data, not a digest
	b.GetMessageSignature().MessageDigest.Digest = sum[:]
	return marshalBundle(b)
}

// Attest attaches a signed in-toto statement to an image in a registry. ref must contain the digest
// of the image. predicate is encoded as JSON. The result reports whether anything was sent.
func (s *Signer) Attest(ctx context.Context, c *oci.Client, ref, predicateType string, predicate any) (bool, error) {
	text, err := newStatement(ref, predicateType, predicate)
	if err != nil {
		return false, err
	}
	b, err := s.bundle(ctx, &sign.DSSEData{Data: text, PayloadType: statementFormat})
	if err != nil {
		return false, err
	}
	data, err := marshalBundle(b)
	if err != nil {
		return false, err
	}
	_, sent, err := c.Attach(ctx, ref, oci.Attachment{Type: oci.BundleType, Data: data, Annotations: map[string]string{
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": predicateType,
	}})
	return sent, err
}

func (s *Signer) bundle(ctx context.Context, content sign.Content) (*protobundle.Bundle, error) {
	opts := s.options
	opts.Context = ctx
	b, err := sign.Bundle(content, s.pair, opts)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return b, nil
}

// marshalBundle encodes a bundle as JSON. The output is deterministic. (protojson would insert random
// spaces.)
func marshalBundle(b *protobundle.Bundle) ([]byte, error) {
	text, err := protojson.Marshal(b)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, text)
	return out.Bytes(), err
}

// newStatement returns an in-toto statement about an image.
func newStatement(ref, predicateType string, predicate any) ([]byte, error) {
	type subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	name, _, _ := strings.Cut(ref, "@")
	return json.Marshal(struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     any       `json:"predicate"`
	}{
		statementType,
		[]subject{{name, map[string]string{"sha256": strings.TrimPrefix(imageref.Split(ref).Digest, "sha256:")}}},
		predicateType, predicate,
	})
}
