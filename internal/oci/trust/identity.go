package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/sanitize"
)

// signPredicate is the predicate type of cosign's image signatures. Statements of other types, such
// as provenance, are not signatures of the image.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// identityChecker accepts signatures whose certificate a certificate authority of the trust root has issued
// for an identity.
type identityChecker struct {
	verifier *verify.Verifier
	identity verify.CertificateIdentity
	wanted   string
}

// newIdentityChecker returns the checker for a rule. If the trust root has transparency logs or
// certificate transparency logs, an entry in one log of each kind is required. A verified time of
// signing is always required, because certificates are valid only for minutes.
func newIdentityChecker(r SignerRule) (*identityChecker, error) {
	trusted, err := root.NewTrustedRootFromJSON(r.TrustRoot)
	if err != nil {
		return nil, fmt.Errorf("trust root: %s", sanitize.TruncateLine(err.Error(), maxText))
	}
	switch {
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return nil, errors.New("trust root: no certificate authority")
	case len(trusted.RekorLogs()) == 0 && len(trusted.TimestampingAuthorities()) == 0:
		return nil, errors.New("trust root: neither a transparency log nor a timestamp authority, so the time of signing cannot be verified")
	}
	opts := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(trusted.RekorLogs()) > 0 {
		opts = append(opts, verify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		opts = append(opts, verify.WithSignedCertificateTimestamps(1))
	}
	c := &identityChecker{}
	if c.verifier, err = verify.NewVerifier(trusted, opts...); err != nil {
		return nil, err
	}
	anchored := ""
	c.wanted = fmt.Sprintf("%q at issuer %q", r.Identity, r.Issuer)
	if r.IdentityRegexp != "" {
		if _, err := regexp.Compile(r.IdentityRegexp); err != nil {
			return nil, fmt.Errorf("identityRegexp: %w", err)
		}
		anchored = "^(?:" + r.IdentityRegexp + ")$"
		c.wanted = fmt.Sprintf("an identity matching %q at issuer %q", r.IdentityRegexp, r.Issuer)
	}
	c.identity, err = verify.NewShortCertificateIdentity(r.Issuer, "", r.Identity, anchored)
	return c, err
}

func (c *identityChecker) signerName() string { return c.wanted }

// check verifies a signature. It returns the identity with its issuer.
func (c *identityChecker) check(digest string, s oci.Signature) (finding, error) {
	b, artifact, err := c.bundleAndPolicy(digest, s)
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	f, err := c.verify(b, artifact)
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return f, nil
}

func (c *identityChecker) checkBlob(data, bundle []byte) (finding, error) {
	b, err := parseBundle(bundle)
	if err != nil {
		return finding{}, err
	}
	return c.verify(b, verify.WithArtifact(bytes.NewReader(data)))
}

func (c *identityChecker) verify(b *bundle.Bundle, artifact verify.ArtifactPolicyOption) (finding, error) {
	res, err := c.verifier.Verify(b, verify.NewPolicy(artifact, verify.WithCertificateIdentity(c.identity)))
	if err != nil {
		return finding{}, err
	}
	if res.Signature == nil || res.Signature.Certificate == nil {
		return finding{}, errors.New("not signed with a certificate")
	}
	cert := res.Signature.Certificate
	return finding{sanitize.TruncateLine(cert.SubjectAlternativeName+" ("+cert.Issuer+")", maxText), verifiedType(res)}, nil
}

// bundleAndPolicy returns a signature as a sigstore bundle, and the policy that requires the bundle to be
// for the image with this digest.
func (c *identityChecker) bundleAndPolicy(digest string, s oci.Signature) (*bundle.Bundle, verify.ArtifactPolicyOption, error) {
	if s.Bundle != nil {
		b, err := parseBundle(s.Bundle)
		if err != nil {
			return nil, nil, err
		}
		artifact, err := subjectPolicy(digest)
		return b, artifact, err
	}
	if err := checkPayload(digest, s.Payload); err != nil {
		return nil, nil, err
	}
	b, err := simpleBundle(s)
	sum := sha256.Sum256(s.Payload)
	return b, verify.WithArtifactDigest("sha256", sum[:]), err
}

// subjectPolicy returns the policy that requires a bundle to be for the image with this digest.
func subjectPolicy(digest string) (verify.ArtifactPolicyOption, error) {
	raw, err := rawDigest(digest)
	return verify.WithArtifactDigest("sha256", raw), err
}

func rawDigest(digest string) ([]byte, error) {
	const prefix = "sha256:"
	if len(digest) != len(prefix)+2*sha256.Size {
		return nil, fmt.Errorf("digest %q: only sha256 is supported", digest)
	}
	return hex.DecodeString(digest[len(prefix):])
}

func parseBundle(data []byte) (*bundle.Bundle, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("not a sigstore bundle: %w", err)
	}
	return &b, nil
}

// simpleBundle converts a simple signature with a certificate to a sigstore bundle.
func simpleBundle(s oci.Signature) (*bundle.Bundle, error) {
	sig, err := base64.StdEncoding.DecodeString(s.Annotations[annotationSignature])
	if err != nil || len(sig) == 0 {
		return nil, errors.New("contains no signature")
	}
	block, _ := pem.Decode([]byte(s.Annotations[annotationCertificate]))
	if block == nil {
		return nil, errors.New("signed with a key instead of a certificate")
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_X509CertificateChain{
		X509CertificateChain: &protocommon.X509CertificateChain{Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}}},
	}}
	if text := s.Annotations[annotationLogEntry]; text != "" {
		entry, err := logEntry(text)
		if err != nil {
			return nil, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text := s.Annotations[annotationTimestamp]; text != "" {
		var stamp struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &stamp); err != nil {
			return nil, errors.New("its timestamp is invalid")
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp.SignedRFC3161Timestamp}},
		}
	}
	sum := sha256.Sum256(s.Payload)
	return bundle.NewBundle(&protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     sig,
		}},
	})
}

// logEntry decodes the log entry that cosign stores with a simple signature.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	var promise struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	var entry struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if json.Unmarshal([]byte(text), &promise) != nil || json.Unmarshal(promise.Payload.Body, &entry) != nil {
		return nil, errors.New("its log entry is invalid")
	}
	id, err := hex.DecodeString(promise.Payload.LogID)
	if err != nil {
		return nil, errors.New("its log entry has no log ID")
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          promise.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       &protorekor.KindVersion{Kind: entry.Kind, Version: entry.APIVersion},
		IntegratedTime:    promise.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: promise.SignedEntryTimestamp},
		CanonicalizedBody: promise.Payload.Body,
	}, nil
}
