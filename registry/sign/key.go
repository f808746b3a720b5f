package sign

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// NewKey returns a signer with a private key in PEM form: cosign's, which a
// password opens, or a plain one of ECDSA, RSA or Ed25519. Nothing is asked of
// any service, and the same key signs the same with the same bytes.
func NewKey(text []byte, password string) (*Signer, error) {
	key, err := parseKey(text, password)
	if err != nil {
		return nil, err
	}
	if err := cryptoutils.ValidatePubKey(key.Public()); err != nil { //nolint:staticcheck // it asks for the size and the curve alone, as cosign does; what it names instead is a certificate authority's
		return nil, fmt.Errorf("a key that is too weak, or of a kind that cosign does not take: %w", err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return nil, err
	}
	return &Signer{pair: keyPair{key, public}, public: public}, nil
}

func parseKey(text []byte, password string) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a private key in PEM form, as 'cosign generate-key-pair' writes it to cosign.key")
	}
	var key any
	var err error
	switch block.Type {
	case "ENCRYPTED COSIGN PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY":
		var der []byte
		if der, err = encrypted.Decrypt(block.Bytes, []byte(password)); err != nil {
			return nil, errors.New("the key cannot be opened: set COSIGN_PASSWORD to its password")
		}
		key, err = x509.ParsePKCS8PrivateKey(der)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PUBLIC KEY":
		err = errors.New("a public key verifies; sign with the private one")
	default:
		err = fmt.Errorf("PEM of type %q: want cosign's, or PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY", block.Type)
	}
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey, *rsa.PrivateKey, ed25519.PrivateKey:
		return key.(crypto.Signer), nil
	default:
		return nil, errors.New("want a key of ECDSA, RSA or Ed25519")
	}
}

// keyPair signs without chance: ECDSA as in RFC 6979, RSA as in PKCS #1 v1.5.
// Like cosign it hashes with SHA-256, whatever the curve.
type keyPair struct {
	key    crypto.Signer
	public []byte
}

// SignData returns the signature and what was signed: the hash, or for Ed25519
// all of the data.
func (k keyPair) SignData(_ context.Context, data []byte) (signature, signed []byte, err error) {
	if _, whole := k.key.(ed25519.PrivateKey); whole {
		signature, err = k.key.Sign(nil, data, crypto.Hash(0))
		return signature, data, err
	}
	sum := sha256.Sum256(data)
	signature, err = k.key.Sign(nil, sum[:], crypto.SHA256)
	return signature, sum[:], err
}

// GetHint returns what cosign finds a key by.
func (k keyPair) GetHint() []byte {
	block, _ := pem.Decode(k.public)
	sum := sha256.Sum256(block.Bytes)
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// GetHashAlgorithm implements sign.Keypair.
func (keyPair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm implements sign.Keypair: only logs and authorities ask for
// it, which have no part in signing with a key.
func (keyPair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PUBLIC_KEY_DETAILS_UNSPECIFIED
}

// GetKeyAlgorithm implements sign.Keypair as GetSigningAlgorithm does.
func (keyPair) GetKeyAlgorithm() string { return "" }

// GetPublicKey implements sign.Keypair.
func (k keyPair) GetPublicKey() crypto.PublicKey { return k.key.Public() }

// GetPublicKeyPem implements sign.Keypair.
func (k keyPair) GetPublicKeyPem() (string, error) { return string(k.public), nil }
