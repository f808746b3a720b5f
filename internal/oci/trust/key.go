package trust

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/quayside/quayside/internal/oci"
)

// Annotations of a simple signature.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLogEntry    = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// keyChecker accepts signatures by any of its keys.
type keyChecker struct {
	keys    []publicKey
	openPGP []openPGPKeys // keys for provenance files of charts
}

type publicKey struct {
	name      string
	id        string               // "sha256:" and the digest of the key in DER format
	simple    signature.Verifier   // verifier for simple signatures: cosign uses SHA-256 with all keys
	envelopes []signature.Verifier // verifiers for bundles: the hash depends on the key
}

func newKeyChecker(keys []Key) (*keyChecker, error) {
	c := &keyChecker{}
	var errs []error
	for _, k := range keys {
		if isOpenPGP(k) {
			ring, err := parseOpenPGP(k)
			errs, c.openPGP = append(errs, err), append(c.openPGP, ring)
			continue
		}
		key, err := parseKey(k)
		if err != nil {
			errs = append(errs, fmt.Errorf("key %s: %w", k.Name, err))
			continue
		}
		c.keys = append(c.keys, key)
	}
	return c, errors.Join(errs...)
}

func parseKey(k Key) (publicKey, error) {
	if bytes.Contains(k.PEM, []byte("PRIVATE KEY")) {
		return publicKey{}, errors.New("this is a private key: use the public key, and remove the private key from the repository")
	}
	pub, err := cryptoutils.UnmarshalPEMToPublicKey(k.PEM)
	if err != nil {
		return publicKey{}, errors.New("not a PEM public key such as cosign.pub")
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return publicKey{}, err
	}
	sum := sha256.Sum256(der)
	key := publicKey{name: k.Name, id: "sha256:" + hex.EncodeToString(sum[:])}
	if key.simple, err = signature.LoadVerifier(pub, crypto.SHA256); err != nil {
		return publicKey{}, err
	}
	usual, err := signature.LoadDefaultVerifier(pub)
	if err != nil {
		return publicKey{}, err
	}
	key.envelopes = []signature.Verifier{usual, key.simple}
	return key, nil
}

func (c *keyChecker) signerName() string {
	var names []string
	for _, k := range c.keys {
		names = append(names, "key "+k.name)
	}
	for _, k := range c.openPGP {
		names = append(names, "key "+k.name)
	}
	return strings.Join(names, " or ")
}

// check verifies a signature. It returns the key that made the signature, as "key sha256:…".
func (c *keyChecker) check(digest string, s oci.Signature) (finding, error) {
	if s.Provenance != nil {
		signer, err := c.checkProvenance(s.Archive, "", "", s.Provenance)
		return finding{signer: signer}, err
	}
	if s.Bundle != nil {
		return c.checkBundle(digest, s)
	}
	k, err := c.checkSimple(digest, s)
	return finding{signer: "key " + k.id}, err
}

// checkSimple verifies a simple signature of the image with this digest. It returns the signer's key.
func (c *keyChecker) checkSimple(digest string, s oci.Signature) (publicKey, error) {
	sig, err := base64.StdEncoding.DecodeString(s.Annotations[annotationSignature])
	if err != nil || len(sig) == 0 {
		return publicKey{}, fmt.Errorf("%s contains no signature", s.Manifest)
	}
	i := slices.IndexFunc(c.keys, func(k publicKey) bool {
		return k.simple.VerifySignature(bytes.NewReader(sig), bytes.NewReader(s.Payload)) == nil
	})
	if i < 0 {
		return publicKey{}, fmt.Errorf("%s was not signed with this key, or the signed content was altered", s.Manifest)
	}
	if err := checkPayload(digest, s.Payload); err != nil {
		return publicKey{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return c.keys[i], nil
}

// checkPayload returns an error unless text, a document with a valid simple signature, is about the
// image with this digest.
func checkPayload(digest string, text []byte) error {
	var doc payload.SimpleContainerImage
	if err := json.Unmarshal(text, &doc); err != nil {
		return errors.New("the signed content is not a simple signing document")
	}
	if doc.Critical.Type != payload.CosignSignatureType {
		return fmt.Errorf("the signed content has type %q, not an image signature", doc.Critical.Type)
	}
	if doc.Critical.Image.DockerManifestDigest != digest {
		return fmt.Errorf("the signature is for another image, %q", doc.Critical.Image.DockerManifestDigest)
	}
	return nil
}

// checkBundle verifies a sigstore bundle for the image with this digest. It returns the key and the
// type of the statement.
func (c *keyChecker) checkBundle(digest string, s oci.Signature) (finding, error) {
	artifact, err := subjectPolicy(digest)
	if err != nil {
		return finding{}, err
	}
	f, err := c.signer(s.Bundle, func() verify.ArtifactPolicyOption { return artifact })
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return f, nil
}

// VerifyBlob verifies that one of the keys signed data. bundle is a sigstore bundle with the
// signature, as written by 'cosign sign-blob --bundle' or [sign.Signer.SignBlob].
func VerifyBlob(keys []Key, data, bundle []byte) error {
	c, err := newKeyChecker(keys)
	if err != nil {
		return err
	}
	return verifyBlob(c, data, bundle)
}

func (c *keyChecker) checkBlob(data, bundle []byte) (finding, error) {
	return c.signer(bundle, func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(data)) })
}

func verifyBlob(c checker, data, bundle []byte) error {
	f, err := c.checkBlob(data, bundle)
	if err == nil && f.predicate != "" {
		err = fmt.Errorf("contains a statement of type %q, not a signature", f.predicate)
	}
	if err != nil {
		return fmt.Errorf("not signed with %s, or altered: %w", c.signerName(), err)
	}
	return nil
}

// signer verifies a sigstore bundle for an artifact. It returns the key and the type of the
// statement.
func (c *keyChecker) signer(bundle []byte, artifact func() verify.ArtifactPolicyOption) (finding, error) {
	if len(c.keys) == 0 {
		return finding{}, errors.New("the rule has only OpenPGP keys, for provenance files of charts")
	}
	var first error
	for _, k := range c.keys {
		res, err := verifyWithKey(k, bundle, artifact)
		if err == nil {
			return finding{"key " + k.id, verifiedType(res)}, nil
		}
		if first == nil {
			first = err
		}
	}
	return finding{}, first
}

func verifyWithKey(k publicKey, bundle []byte, artifact func() verify.ArtifactPolicyOption) (*verify.VerificationResult, error) {
	b, err := parseBundle(bundle)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, v := range k.envelopes {
		material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(v, time.Time{}, time.Time{}), nil
		})
		verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
		if err != nil {
			return nil, err
		}
		res, err := verifier.Verify(b, verify.NewPolicy(artifact(), verify.WithKey()))
		if err == nil {
			return res, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
}
