package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quayside/quayside/internal/store"
)

const (
	signatureRecords  = "signatures"                          // kind of record in the store: the locations of the signatures of an image
	bundleType        = "application/vnd.dev.sigstore.bundle" // beginning of the media types of sigstore bundles
	simpleSigningType = "application/vnd.dev.cosign.simplesigning.v1+json"

	maxSignatures     = 64      // maximum number of signature manifests of an image
	maxSignatureBytes = 1 << 20 // maximum bytes of one signature
)

// Signature is an unverified signature of an image. Only the digests of its parts were verified. Package
// internal/oci/trust verifies the signature itself.
type Signature struct {
	Name        string            // location: "quay.io/org/x:sha256-….sig" or "quay.io/org/x@sha256:…"
	Manifest    string            // digest of the manifest that contains the signature
	Payload     []byte            // signed content of a simple signature; nil for a bundle
	Annotations map[string]string // annotations of a simple signature: the signature itself, certificates, log entries
	Bundle      []byte            // a sigstore bundle as JSON; nil for other signatures
	Provenance  []byte            // the provenance file of a chart (helm.sh/docs/topics/provenance); nil for other signatures
	Archive     string            // digest of the archive of the chart that Provenance is about
}

// Signatures returns the signatures of an image, given by digest ("quay.io/org/x@sha256:…"). It looks in
// the registry and its mirrors: under the tag sha256-<digest>.sig, and for sigstore bundles that refer to
// the image. The result has the order of the registry, and is kept in the store. Bundles that are too large
// for a signature are ignored. For an image without signatures, the result is empty.
func (c *Client) Signatures(ctx context.Context, ref string) ([]Signature, error) {
	up, src, err := c.parseSigned(ref)
	if err != nil {
		return nil, wrapImageError(ref, err)
	}
	if c.Offline {
		return nil, wrapImageError(ref, &OfflineError{Missing: "its signature"})
	}
	found, err := up.signatures(ctx, src, mayBeBundle)
	if err != nil {
		return nil, wrapImageError(ref, fmt.Errorf("looking up its signatures: %w", err))
	}
	return c.recordSignatures(ctx, up, src, found)
}

// recordSignatures reads the signatures at these locations, and records the locations in the store.
func (c *Client) recordSignatures(ctx context.Context, up *upstream, src Reference, found []VendoredImage) ([]Signature, error) {
	var out []Signature
	for _, m := range found {
		sigs, err := readSignatures(ctx, up, m)
		if err != nil {
			return nil, wrapImageError(src.String(), err)
		}
		out = append(out, sigs...)
	}
	if len(found) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	return out, c.Store.PutRecord(signatureRecords, src.String(), data)
}

// SignatureImages returns the locations of the signatures to copy together with an image: the signatures
// of [Client.Signatures], and referrers with other kinds of signatures. It reads only manifests.
func (c *Client) SignatureImages(ctx context.Context, ref string) ([]VendoredImage, error) {
	up, src, err := c.parseSigned(ref)
	if err != nil {
		return nil, wrapImageError(ref, err)
	}
	found, err := up.signatures(ctx, src, isAnySignature)
	if err != nil {
		return nil, wrapImageError(ref, fmt.Errorf("looking up its signatures: %w", err))
	}
	return found, nil
}

// VendoredSignatures is like [Client.SignatureImages], but returns the locations of the signatures in the
// vendored layout.
func (c *Client) VendoredSignatures(ctx context.Context, ref string) ([]VendoredImage, error) {
	_, src, err := c.parseSigned(ref)
	if err != nil {
		return nil, wrapImageError(ref, err)
	}
	return c.vendored().signatures(ctx, src), nil
}

// LocalSignatures returns the signatures of an image that are in the store or in the vendored
// layout. It opens no network connection.
func (c *Client) LocalSignatures(ctx context.Context, ref string) ([]Signature, error) {
	local, src, err := c.parseSigned(ref)
	if err != nil {
		return nil, wrapImageError(ref, err)
	}
	local.offline = true
	var all []VendoredImage
	if data, err := c.Store.Record(signatureRecords, src.String()); err == nil {
		_ = json.Unmarshal(data, &all) // ignore a damaged record
	}
	all = append(all, c.vendored().signatures(ctx, src)...)
	var out []Signature
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.Digest] || len(seen) == maxSignatures {
			continue
		}
		seen[m.Digest] = true
		sigs, err := readSignatures(ctx, local, m)
		if err == nil { // ignore missing or damaged signatures
			out = append(out, sigs...)
		}
	}
	return out, nil
}

// Provenance returns the provenance file in the image of a chart, given by digest. It returns false if the
// image has none, or is not a chart.
func (c *Client) Provenance(ctx context.Context, ref string) (Signature, bool, error) {
	up, src, err := c.parseSigned(ref)
	var s Signature
	if err == nil {
		s, err = readProvenance(ctx, up, src)
	}
	return s, s.Provenance != nil && s.Archive != "", wrapImageError(ref, err)
}

func readProvenance(ctx context.Context, from origin, src Reference) (Signature, error) {
	s := Signature{Name: src.String(), Manifest: src.Digest}
	data, err := from.manifest(ctx, src.Digest)
	if err != nil {
		return s, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return s, err
	}
	for _, l := range m.Layers {
		if l.MediaType == chartType {
			s.Archive = l.Digest.String()
		}
		if l.MediaType != chartProvenanceType {
			continue
		}
		if s.Provenance, err = readBlob(ctx, from, l); err != nil {
			return s, err
		}
	}
	return s, nil
}

// parseSigned parses the reference of a signed image, which must contain a digest. It returns the
// origin of the image.
func (c *Client) parseSigned(ref string) (*upstream, Reference, error) {
	src, err := ParseReference(ref)
	if err == nil && (src.Kind != Remote || src.Digest == "") {
		err = errors.New("signatures need a registry image with a digest")
	}
	if err != nil {
		return nil, Reference{}, err
	}
	src.Tag = ""
	up, err := c.upstream(src)
	return up, src, err
}

// signatures returns the locations of the signatures in the first candidate repository that has
// any.
func (r *upstream) signatures(ctx context.Context, src Reference, wanted func(artifactType string) bool) ([]VendoredImage, error) {
	var errs []error
	for _, repo := range r.repos {
		found, err := r.signaturesIn(ctx, repo, src, wanted)
		switch {
		case len(found) > 0 && err == nil:
			return found, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil, nil
	}
	return nil, joinAttemptErrors(errs)
}

// signaturesIn returns the locations of the signatures in one repository.
func (r *upstream) signaturesIn(ctx context.Context, repo name.Repository, src Reference, wanted func(artifactType string) bool) ([]VendoredImage, error) {
	var out []VendoredImage
	add := func(name string, data []byte) error {
		digest := store.DigestOf(data)
		out = append(out, VendoredImage{Name: name, Digest: digest})
		return r.storeManifest(ctx, digest, data)
	}
	tag := strings.Replace(src.Digest, ":", "-", 1)
	switch data, err := r.getOptional(ctx, repo, tag+".sig"); {
	case err != nil:
		return nil, err
	case data != nil:
		if err := add(src.Name+":"+tag+".sig", data); err != nil {
			return nil, err
		}
	}
	referrers, err := r.referrers(ctx, repo, src.Digest, wanted)
	if err != nil {
		return nil, err
	}
	for _, digest := range referrers {
		data, err := r.getOptional(ctx, repo, digest)
		if err == nil && data == nil {
			err = fmt.Errorf("manifest %s: listed as a signature, but missing", digest)
		}
		if err == nil {
			err = checkManifestText(data, digest, digest)
		}
		if err != nil {
			return nil, err
		}
		if m, err := v1.ParseManifest(bytes.NewReader(data)); err != nil || m.Subject == nil || m.Subject.Digest.String() != src.Digest {
			continue // the manifest refers to another image
		}
		if err := add(src.Name+"@"+digest, data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readSignatures returns the signatures in the manifest at a location.
func readSignatures(ctx context.Context, from origin, at VendoredImage) ([]Signature, error) {
	data, err := from.manifest(ctx, at.Digest)
	if err != nil {
		return nil, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("signature %s: %w", at.Digest, err)
	}
	if len(m.Layers) > maxSignatures {
		return nil, fmt.Errorf("signature %s: %d layers exceed the limit of %d", at.Digest, len(m.Layers), maxSignatures)
	}
	if _, err := readBlob(ctx, from, m.Config); err != nil { // store the configuration, because vendoring copies all parts of a manifest
		return nil, fmt.Errorf("signature %s: %w", at.Digest, err)
	}
	var out []Signature
	for _, l := range m.Layers {
		kind := string(l.MediaType)
		bundled := strings.HasPrefix(kind, bundleType)
		if !bundled && kind != simpleSigningType {
			continue
		}
		if bundled && l.Size > maxSignatureBytes {
			continue // too large for a signature: for example an SBOM
		}
		blob, err := readBlob(ctx, from, l)
		if err != nil {
			return nil, fmt.Errorf("signature %s: %w", at.Digest, err)
		}
		s := Signature{Name: at.Name, Manifest: at.Digest}
		if bundled {
			s.Bundle = blob
		} else {
			s.Payload, s.Annotations = blob, maps.Clone(l.Annotations)
		}
		out = append(out, s)
	}
	return out, nil
}

// readBlob returns the content of a blob, verified. It returns an error if the blob is too large
// for a signature.
func readBlob(ctx context.Context, from origin, d v1.Descriptor) ([]byte, error) {
	if err := checkDescriptor("layer", d, maxSignatureBytes); err != nil {
		return nil, err
	}
	return readAll(ctx, from, d)
}
