package sign

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// NewKey returns a signer for a private key in PEM format: an encrypted key of cosign or OpenSSL,
// or an unencrypted ECDSA, RSA or Ed25519 key. It uses no external services. Signing the same data
// gives the same signature.
func NewKey(text []byte, password string) (*Signer, error) {
	key, err := parseKey(text, password)
	if err != nil {
		return nil, err
	}
	if err := cryptoutils.ValidatePubKey(key.Public()); err != nil { //nolint:staticcheck // checks size and curve as cosign does; the suggested replacement is for certificate authorities
		return nil, fmt.Errorf("key too weak, or of a type that cosign does not support: %w", err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return nil, err
	}
	return &Signer{pair: keyPair{key, public}, public: public}, nil
}

func parseKey(text []byte, password string) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("not a PEM private key: use a key such as cosign.key from 'cosign generate-key-pair'")
	case block.Type == string(cryptoutils.PublicKeyPEMType):
		return nil, errors.New("a public key cannot sign: use the private key")
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc([]byte(password)))
	switch {
	case err != nil && (strings.HasPrefix(block.Type, "ENCRYPTED ") || block.Headers["DEK-Info"] != ""):
		return nil, errors.New("wrong password for the key: set COSIGN_PASSWORD")
	case err != nil:
		return nil, err
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey, *rsa.PrivateKey, ed25519.PrivateKey:
		return key.(crypto.Signer), nil
	default:
		return nil, errors.New("must be an ECDSA, RSA or Ed25519 key")
	}
}

// keyPair creates signatures that depend only on key and data: ECDSA as in RFC 6979, RSA as in PKCS
// #1 v1.5. As in cosign, the hash is SHA-256 for all curves.
type keyPair struct {
	key    crypto.Signer
	public []byte
}

// SignData returns the signature of data, and the signed bytes: the hash of data, or for Ed25519
// the data itself.
func (k keyPair) SignData(_ context.Context, data []byte) (signature, signed []byte, err error) {
	if _, whole := k.key.(ed25519.PrivateKey); whole {
		signature, err = k.key.Sign(nil, data, crypto.Hash(0))
		return signature, data, err
	}
	sum := sha256.Sum256(data)
	signature, err = k.key.Sign(nil, sum[:], crypto.SHA256)
	return signature, sum[:], err
}

// GetHint returns the hint that identifies the key, in the format of cosign.
func (k keyPair) GetHint() []byte {
	block, _ := pem.Decode(k.public)
	sum := sha256.Sum256(block.Bytes)
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// GetHashAlgorithm implements sign.Keypair.
func (keyPair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm implements sign.Keypair. The value is used for logs and certificate
// authorities, not for signing with a key.
func (keyPair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PUBLIC_KEY_DETAILS_UNSPECIFIED
}

// GetKeyAlgorithm implements sign.Keypair. It is not used for signing with a key.
func (keyPair) GetKeyAlgorithm() string { return "" }

// GetPublicKey implements sign.Keypair.
func (k keyPair) GetPublicKey() crypto.PublicKey { return k.key.Public() }

// GetPublicKeyPem implements sign.Keypair.
func (k keyPair) GetPublicKeyPem() (string, error) { return string(k.public), nil }
