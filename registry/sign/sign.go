// Package sign signs what is in a registry, and statements about it, as cosign
// does: with a key, or with a certificate that an authority issues for an
// identity.
//
// A signature is put beside the image in both forms that cosign has had, for
// whoever looks for one does not see the other: as a simple signature below a
// tag, and as a sigstore bundle that refers to the image. A statement is a
// bundle. With a key the same image gives the same bytes, and what is there is
// not sent again.
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
	"github.com/quayside/quayside/registry"
)

const (
	statementType   = "https://in-toto.io/Statement/v1"
	statementFormat = "application/vnd.in-toto+json"
	signPredicate   = "https://sigstore.dev/cosign/sign/v1"
)

// Signer signs with one key. It may be used for several images, one after the
// other.
type Signer struct {
	pair    sign.Keypair
	options sign.BundleOptions
	public  []byte // PEM; nil where the key is used once
}

// PublicKey returns the public key in PEM form, nil where an identity signs and
// not a key.
func (s *Signer) PublicKey() []byte { return s.public }

// Sign signs an image of a registry, which ref names by digest, and reports
// whether anything had to be sent.
func (s *Signer) Sign(ctx context.Context, c *registry.Client, ref string) (bool, error) {
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

// Blob returns a sigstore bundle with a signature of data, as 'cosign sign-blob
// --bundle' writes it. Nothing is sent to a registry.
func (s *Signer) Blob(ctx context.Context, data []byte) ([]byte, error) {
	b, err := s.bundle(ctx, &sign.PlainData{Data: data})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data) // a key of Ed25519 has signed all of the data, which is no digest
	b.GetMessageSignature().MessageDigest.Digest = sum[:]
	return marshal(b)
}

// Attest puts a signed in-toto statement beside an image of a registry, which ref
// names by digest, and reports whether it had to be sent. The predicate is
// marshalled as JSON.
func (s *Signer) Attest(ctx context.Context, c *registry.Client, ref, predicateType string, predicate any) (bool, error) {
	text, err := statement(ref, predicateType, predicate)
	if err != nil {
		return false, err
	}
	b, err := s.bundle(ctx, &sign.DSSEData{Data: text, PayloadType: statementFormat})
	if err != nil {
		return false, err
	}
	data, err := marshal(b)
	if err != nil {
		return false, err
	}
	_, sent, err := c.Attach(ctx, ref, registry.Attachment{Type: registry.BundleType, Data: data, Annotations: map[string]string{
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

// marshal returns a bundle as JSON, without the spaces by which protojson keeps
// people from comparing what it writes.
func marshal(b *protobundle.Bundle) ([]byte, error) {
	text, err := protojson.Marshal(b)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, text)
	return out.Bytes(), err
}

// statement returns an in-toto statement about an image.
func statement(ref, predicateType string, predicate any) ([]byte, error) {
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
