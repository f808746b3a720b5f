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

	"github.com/quayside/quayside/registry"
)

// The annotations of a simple signature.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLogEntry    = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// keyChecker accepts what the owner of one of some keys has signed.
type keyChecker struct {
	keys []publicKey
}

type publicKey struct {
	name      string
	id        string               // "sha256:…" of the key as it is exchanged
	simple    signature.Verifier   // cosign hashes a simple document with SHA-256, whatever the key
	envelopes []signature.Verifier // bundles are hashed as the kind of key suggests
}

func newKeyChecker(keys []Key) (*keyChecker, error) {
	c := &keyChecker{}
	var errs []error
	for _, k := range keys {
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
		return publicKey{}, errors.New("a private key: name the public one, and take this one out of the repository")
	}
	pub, err := cryptoutils.UnmarshalPEMToPublicKey(k.PEM)
	if err != nil {
		return publicKey{}, errors.New("not a public key in PEM form, as cosign writes it to cosign.pub")
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

func (c *keyChecker) who() string {
	names := make([]string, len(c.keys))
	for i, k := range c.keys {
		names[i] = "key " + k.name
	}
	return strings.Join(names, " or ")
}

// check returns "key sha256:…" of the key that made the signature.
func (c *keyChecker) check(digest string, s registry.Signature) (finding, error) {
	if s.Bundle != nil {
		return c.bundle(digest, s)
	}
	k, err := c.simple(digest, s)
	return finding{by: "key " + k.id}, err
}

// simple returns the key that has signed a simple document about the image.
func (c *keyChecker) simple(digest string, s registry.Signature) (publicKey, error) {
	sig, err := base64.StdEncoding.DecodeString(s.Annotations[annotationSignature])
	if err != nil || len(sig) == 0 {
		return publicKey{}, fmt.Errorf("%s holds no signature", s.Manifest)
	}
	i := slices.IndexFunc(c.keys, func(k publicKey) bool {
		return k.simple.VerifySignature(bytes.NewReader(sig), bytes.NewReader(s.Payload)) == nil
	})
	if i < 0 {
		return publicKey{}, fmt.Errorf("%s is not made with the key, or what it signed was altered", s.Manifest)
	}
	if err := checkPayload(digest, s.Payload); err != nil {
		return publicKey{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return c.keys[i], nil
}

// checkPayload sees that a simple document, whose signature is good, is about
// the image.
func checkPayload(digest string, payload []byte) error {
	var doc struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &doc); err != nil {
		return errors.New("what is signed is not a simple signing document")
	}
	if doc.Critical.Type != "cosign container image signature" {
		return fmt.Errorf("what is signed is of type %q, not a signature of an image", doc.Critical.Type)
	}
	if doc.Critical.Image.Digest != digest {
		return fmt.Errorf("it signs another image, %q", doc.Critical.Image.Digest)
	}
	return nil
}

// bundle returns the key that has signed a bundle about the image, and what that
// is.
func (c *keyChecker) bundle(digest string, s registry.Signature) (finding, error) {
	artifact, err := artifactOf(digest)
	if err != nil {
		return finding{}, err
	}
	f, err := c.signer(s.Bundle, func() verify.ArtifactPolicyOption { return artifact })
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return f, nil
}

// VerifyBlob returns nil where a sigstore bundle has a signature of data by the
// owner of one of the keys, as 'cosign sign-blob --bundle' and [sign.Signer.Blob]
// make it.
func VerifyBlob(keys []Key, data, bundle []byte) error {
	c, err := newKeyChecker(keys)
	if err != nil {
		return err
	}
	f, err := c.signer(bundle, func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(data)) })
	if err == nil && f.predicate != "" {
		err = fmt.Errorf("a statement of type %q, which is no signature", f.predicate)
	}
	if err != nil {
		return fmt.Errorf("not signed with %s, or altered since: %w", c.who(), err)
	}
	return nil
}

// signer returns the key that has signed a bundle about an artifact, and what that
// is.
func (c *keyChecker) signer(bundle []byte, artifact func() verify.ArtifactPolicyOption) (finding, error) {
	var first error
	for _, k := range c.keys {
		res, err := verifyWithKey(k, bundle, artifact)
		if err == nil {
			return finding{"key " + k.id, stated(res)}, nil
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
