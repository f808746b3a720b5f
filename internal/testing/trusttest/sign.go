package trusttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// SignPredicate is the predicate type of cosign's image signatures.
const SignPredicate = "https://sigstore.dev/cosign/sign/v1"

// statementType is the payload type of an envelope with an in-toto statement.
const statementType = "application/vnd.in-toto+json"

// Key is a key pair.
type Key struct {
	Public  []byte // public key, PEM-encoded
	private *ecdsa.PrivateKey
}

// NewKey generates a key pair.
func NewKey(tb testing.TB) *Key {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return &Key{private: private, Public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
}

// Private returns the private key in cosign's format, encrypted with a password.
func (k *Key) Private(tb testing.TB, password string) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err == nil {
		der, err = encrypted.EncryptWithCustomKDFParameters(der, []byte(password), encrypted.Legacy)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: der})
}

// Simple signs the image with this digest, in cosign's simple signing format.
func (k *Key) Simple(tb testing.TB, digest string) Simple {
	tb.Helper()
	payload := Payload(digest)
	return Simple{Payload: payload, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(k.sign(tb, payload)),
	}}
}

// Bundle returns a sigstore bundle with a signed statement about the image. predicate is the
// predicate type.
func (k *Key) Bundle(tb testing.TB, digest, predicate string) []byte {
	tb.Helper()
	statement := Statement(digest, predicate)
	encoded := fmt.Sprintf("DSSEv1 %d %s %d %s", len(statementType), statementType, len(statement), statement)
	return Bundle(tb, statement, k.sign(tb, []byte(encoded)), map[string]any{"publicKey": map[string]any{"hint": "some"}})
}

// Bundle returns a sigstore bundle with a statement, its signature and the verification material.
func Bundle(tb testing.TB, statement, sig []byte, material map[string]any) []byte {
	tb.Helper()
	data, err := json.Marshal(map[string]any{
		"mediaType":            bundleType,
		"verificationMaterial": material,
		"dsseEnvelope": map[string]any{
			"payload": statement, "payloadType": statementType, "signatures": []any{map[string]any{"sig": sig}},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Payload returns the simple signing document for an image.
func Payload(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"example.com/x"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// Statement returns an in-toto statement about an image, with a predicate type.
func Statement(digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

func (k *Key) sign(tb testing.TB, data []byte) []byte {
	sum := sha256.Sum256(data)
	sig, err := ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return sig
}
