package trusttest

import (
	"crypto"
	"crypto/ecdsa"
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
)

// Authority issues certificates and says what time it is, as a deployment of
// sigstore without logs does. Both are for any time within two days of now.
type Authority struct {
	Root []byte // trusted_root.json

	cert, tsaCert *x509.Certificate
	key, tsaKey   *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{key: newPrivate(tb), tsaKey: newPrivate(tb)}
	from, to := time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	a.cert = issue(tb, authority, authority, a.key.Public(), a.key)
	stamping, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		tb.Fatal(err)
	}
	a.tsaCert = issue(tb, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test clock"}, NotBefore: from, NotAfter: to,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: stamping}},
	}, a.cert, a.tsaKey.Public(), a.key)
	a.Root = trustedRoot(tb,
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

func issue(tb testing.TB, template, parent *x509.Certificate, pub crypto.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
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

// Signing says who signs when.
type Signing struct {
	Identity string    // an e-mail address
	Issuer   string    // an URL
	Issued   time.Time // from when the certificate is good, for ten minutes
	Stamped  time.Time // what the timestamp says; the zero time: there is none
}

// leaf issues a certificate.
func (a *Authority) leaf(tb testing.TB, s Signing, pub crypto.PublicKey) *x509.Certificate {
	return issue(tb, &x509.Certificate{
		SerialNumber: big.NewInt(3), EmailAddresses: []string{s.Identity}, NotBefore: s.Issued, NotAfter: s.Issued.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(s.Issuer)}},
	}, a.cert, pub, a.key)
}

// stamp vouches for when a signature was there.
func (a *Authority) stamp(tb testing.TB, sig []byte, at time.Time) []byte {
	hash := crypto.SHA256.New()
	hash.Write(sig)
	t := timestamp.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: hash.Sum(nil), Time: at, Policy: asn1.ObjectIdentifier{1, 2, 3}}
	data, err := t.CreateResponseWithOpts(a.tsaCert, a.tsaKey, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Simple signs the image with that digest, as cosign does.
func (a *Authority) Simple(tb testing.TB, digest string, s Signing) Simple {
	tb.Helper()
	private := newPrivate(tb)
	payload := Payload(digest)
	sig := sign(tb, private, payload)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.leaf(tb, s, private.Public()).Raw})
	out := Simple{Payload: payload, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig),
		"dev.sigstore.cosign/certificate":    string(cert),
	}}
	if !s.Stamped.IsZero() {
		stamp, err := json.Marshal(map[string]any{"SignedRFC3161Timestamp": a.stamp(tb, sig, s.Stamped)})
		if err != nil {
			tb.Fatal(err)
		}
		out.Annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(stamp)
	}
	return out
}

// Bundle signs a statement of that type about the image, as a bundle.
func (a *Authority) Bundle(tb testing.TB, digest, predicate string, s Signing) []byte {
	tb.Helper()
	private := newPrivate(tb)
	env := envelope(tb, private, Statement(digest, predicate))
	material := map[string]any{"certificate": map[string]any{"rawBytes": a.leaf(tb, s, private.Public()).Raw}}
	if !s.Stamped.IsZero() {
		sig := env["signatures"].([]any)[0].(map[string]any)["sig"].([]byte)
		material["timestampVerificationData"] = map[string]any{
			"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": a.stamp(tb, sig, s.Stamped)}},
		}
	}
	return marshal(tb, map[string]any{"mediaType": bundleType, "verificationMaterial": material, "dsseEnvelope": env})
}
