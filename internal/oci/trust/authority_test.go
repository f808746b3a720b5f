package trust_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/quayside/quayside/internal/testing/trusttest"
)

// authority issues certificates and timestamps, like a deployment of sigstore without logs. Its
// certificates are valid from two days ago until in two days.
type authority struct {
	root []byte // trusted_root.json

	cert, tsaCert *x509.Certificate
	key, tsaKey   *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{key: newPrivate(tb), tsaKey: newPrivate(tb)}
	from, to := time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	a.cert = issueCertificate(tb, authority, authority, a.key.Public(), a.key)
	stamping, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		tb.Fatal(err)
	}
	a.tsaCert = issueCertificate(tb, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test clock"}, NotBefore: from, NotAfter: to,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: stamping}},
	}, a.cert, a.tsaKey.Public(), a.key)
	a.root = trustedRoot(tb,
		&root.FulcioCertificateAuthority{Root: a.cert, ValidityPeriodStart: from, ValidityPeriodEnd: to, URI: "https://ca.example.com"},
		&root.SigstoreTimestampingAuthority{Root: a.cert, Leaf: a.tsaCert, ValidityPeriodStart: from, ValidityPeriodEnd: to, URI: "https://tsa.example.com"},
		nil, nil)
	return a
}

func trustedRoot(tb testing.TB, ca root.CertificateAuthority, tsa root.TimestampingAuthority, ct, logs map[string]*root.TransparencyLog) []byte {
	tb.Helper()
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{ca}, ct, []root.TimestampingAuthority{tsa}, logs)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := tr.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func issueCertificate(tb testing.TB, template, parent *x509.Certificate, pub crypto.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, by)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert
}

// signing describes the signer and the times of a signature.
type signing struct {
	identity string    // an e-mail address
	issuer   string    // an URL
	issued   time.Time // start of the certificate's validity of ten minutes
	stamped  time.Time // time of the timestamp; zero: no timestamp
}

// leaf issues a certificate for a key.
func (a *authority) leaf(tb testing.TB, s signing, key *trusttest.Key) []byte {
	pub, err := cryptoutils.UnmarshalPEMToPublicKey(key.Public)
	if err != nil {
		tb.Fatal(err)
	}
	return issueCertificate(tb, &x509.Certificate{
		SerialNumber: big.NewInt(3), EmailAddresses: []string{s.identity}, NotBefore: s.issued, NotAfter: s.issued.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(s.issuer)}},
	}, a.cert, pub, a.key).Raw
}

// stamp returns a timestamp of a signature.
func (a *authority) stamp(tb testing.TB, sig []byte, at time.Time) []byte {
	hash := crypto.SHA256.New()
	hash.Write(sig)
	t := timestamp.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: hash.Sum(nil), Time: at, Policy: asn1.ObjectIdentifier{1, 2, 3}}
	data, err := t.CreateResponseWithOpts(a.tsaCert, a.tsaKey, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// simple signs the image with this digest in the format of cosign.
func (a *authority) simple(tb testing.TB, digest string, s signing) trusttest.Simple {
	tb.Helper()
	key := trusttest.NewKey(tb)
	out := key.Simple(tb, digest)
	out.Annotations["dev.sigstore.cosign/certificate"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.leaf(tb, s, key)}))
	if !s.stamped.IsZero() {
		sig, err := base64.StdEncoding.DecodeString(out.Annotations["dev.cosignproject.cosign/signature"])
		if err != nil {
			tb.Fatal(err)
		}
		out.Annotations["dev.sigstore.cosign/rfc3161timestamp"] = marshal(tb, map[string]any{"SignedRFC3161Timestamp": a.stamp(tb, sig, s.stamped)})
	}
	return out
}

// bundle returns a bundle with a signed statement of this type about the image.
func (a *authority) bundle(tb testing.TB, digest, predicate string, s signing) []byte {
	tb.Helper()
	key := trusttest.NewKey(tb)
	var signed struct {
		Envelope struct {
			Payload    []byte
			Signatures []struct{ Sig []byte }
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(key.Bundle(tb, digest, predicate), &signed); err != nil {
		tb.Fatal(err)
	}
	sig := signed.Envelope.Signatures[0].Sig
	material := map[string]any{"certificate": map[string]any{"rawBytes": a.leaf(tb, s, key)}}
	if !s.stamped.IsZero() {
		material["timestampVerificationData"] = map[string]any{
			"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": a.stamp(tb, sig, s.stamped)}},
		}
	}
	return trusttest.Bundle(tb, signed.Envelope.Payload, sig, material)
}

func newPrivate(tb testing.TB) *ecdsa.PrivateKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return private
}

func marshal(tb testing.TB, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}
