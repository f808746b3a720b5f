package sign_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	pkcs8pw "github.com/youmark/pkcs8"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

const (
	provenance = "https://slsa.dev/provenance/v1"
	identity   = "release@example.com"
	issuer     = "https://accounts.example.com"
)

// image pushes an image. It returns a client, and the reference of the image by digest.
func image(t *testing.T, server *ocitest.Server) (*oci.Client, string) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &oci.Client{Store: s, Retry: oci.Retry{Attempts: 1}}
	p, err := oci.Pack(fstest.MapFS{"a": {Data: []byte("a")}}, oci.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	repo := server.Host + "/org/name"
	if err := c.Push(t.Context(), repo+":v1", p); err != nil {
		t.Fatal(err)
	}
	return c, repo + "@" + p.Digest()
}

// verified verifies an image against the rule r. The client's store is empty, so that the signatures come
// from the registry.
func verified(t *testing.T, ref string, r trust.SignerRule) (*trust.Verification, error) {
	t.Helper()
	r.Match, r.Where = "*", "quayside.yaml:3:5"
	p, err := trust.New([]trust.SignerRule{r})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p.Verify(t.Context(), &oci.Client{Store: s, Retry: oci.Retry{Attempts: 1}}, ref)
}

func keyRule(public []byte) trust.SignerRule {
	return trust.SignerRule{Keys: []trust.Key{{Name: "cosign.pub", PEM: public}}}
}

func block(kind string, data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

func pkcs8(key any) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return der
}

func ecKey(curve elliptic.Curve) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// keys returns a private key of every kind, as file content.
var keys = sync.OnceValue(makeKeys) //nolint:gochecknoglobals // encrypting them is slow by design

func makeKeys() map[string][]byte {
	ec := ecKey(elliptic.P256())
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		panic(err)
	}
	locked, lockedErr := encrypted.Encrypt(pkcs8(ec), []byte("secret"))
	openssl, opensslErr := pkcs8pw.MarshalPrivateKey(ec, []byte("secret"), nil)
	old, oldErr := encrypted.EncryptWithCustomKDFParameters(pkcs8(ec), []byte("secret"), encrypted.Legacy)
	return map[string][]byte{
		"cosign":      block("ENCRYPTED SIGSTORE PRIVATE KEY", locked, lockedErr),
		"cosign, old": block("ENCRYPTED COSIGN PRIVATE KEY", old, oldErr),
		"OpenSSL":     block("ENCRYPTED PRIVATE KEY", openssl, opensslErr),
		"EC":          block("EC PRIVATE KEY", ecDER, nil),
		"P-256":       block("PRIVATE KEY", pkcs8(ec), nil),
		"P-384":       block("PRIVATE KEY", pkcs8(ecKey(elliptic.P384())), nil),
		"P-521":       block("PRIVATE KEY", pkcs8(ecKey(elliptic.P521())), nil),
		"RSA":         block("PRIVATE KEY", pkcs8(rsaKey), nil),
		"RSA, PKCS#1": block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil),
		"Ed25519":     block("PRIVATE KEY", pkcs8(ed), nil),
	}
}

// TestKeys signs with a key of every kind. Both formats must verify for the owner of the key,
// and signing again must send nothing.
func TestKeys(t *testing.T) {
	for name, text := range keys() {
		t.Run(name, func(t *testing.T) {
			s, err := sign.NewKey(text, "secret")
			if err != nil {
				t.Fatal(err)
			}
			for _, server := range []*ocitest.Server{ocitest.New(t), ocitest.NewReferring(t)} {
				c, ref := image(t, server)
				for _, want := range []bool{true, false} {
					server.Requests()
					signed, err := s.Sign(t.Context(), c, ref)
					if err != nil || signed != want {
						t.Fatalf("signed: %t, %v, want %t", signed, err, want)
					}
					attested, err := s.Attest(t.Context(), c, ref, provenance, map[string]any{"buildType": "x"})
					if err != nil || attested != want {
						t.Fatalf("attested: %t, %v, want %t", attested, err, want)
					}
					if sent := strings.Join(server.Requests(), "\n"); !want && strings.Contains(sent, "PUT ") {
						t.Errorf("sent again:\n%s", sent)
					}
					got, err := verified(t, ref, keyRule(s.PublicKey()))
					if err != nil {
						t.Fatal(err)
					}
					if len(got.Signatures) != 2 || got.Signatures[0].Bundle != nil || got.Signatures[1].Bundle == nil {
						t.Errorf("valid signatures: %v, want a simple one and a bundle", got.Signatures)
					}
				}
			}
		})
	}
}

// TestBlob signs data with a key of every kind. The signature must be deterministic and verify
// only with this key and data.
func TestBlob(t *testing.T) {
	stranger, err := sign.NewKey(block("PRIVATE KEY", pkcs8(ecKey(elliptic.P521())), nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range keys() {
		t.Run(name, func(t *testing.T) {
			s, err := sign.NewKey(text, "secret")
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.SignBlob(t.Context(), []byte("text"))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.SignBlob(t.Context(), []byte("text")); err != nil || !bytes.Equal(again, bundle) {
				t.Errorf("a second signature differs: %v", err)
			}
			mine, theirs := trust.Key{Name: "mine", PEM: s.PublicKey()}, trust.Key{Name: "theirs", PEM: stranger.PublicKey()}
			if err := trust.VerifyBlob([]trust.Key{theirs, mine}, []byte("text"), bundle); err != nil {
				t.Error(err)
			}
			if err := trust.VerifyBlob([]trust.Key{mine}, []byte("other"), bundle); err == nil {
				t.Error("the signature is valid for other data")
			}
			if err := trust.VerifyBlob([]trust.Key{theirs}, []byte("text"), bundle); err == nil {
				t.Error("the signature is valid for another key")
			}
		})
	}
}

// TestKeyFaults checks that invalid private keys are rejected, with a hint.
func TestKeyFaults(t *testing.T) {
	known := keys()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	small, err := x509.MarshalECPrivateKey(ecKey(elliptic.P224()))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text           []byte
		password, want string
	}{
		"no PEM":         {[]byte("<html>"), "", "not a PEM private key"},
		"wrong password": {known["cosign"], "wrong", "COSIGN_PASSWORD"},
		"no password":    {known["cosign"], "", "COSIGN_PASSWORD"},
		"OpenSSL, wrong": {known["OpenSSL"], "wrong", "COSIGN_PASSWORD"},
		"public":         {trusttest.NewKey(t).Public, "", "use the private key"},
		"other PEM":      {block("OPENSSH PRIVATE KEY", []byte("x"), nil), "", "unknown private key PEM file type: OPENSSH PRIVATE KEY"},
		"broken":         {block("PRIVATE KEY", []byte("x"), nil), "", "asn1"},
		"weak":           {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(weak), nil), "", "too weak"},
		"P-224":          {block("EC PRIVATE KEY", small, nil), "", "too weak"},
	} {
		s, err := sign.NewKey(c.text, c.password)
		if s != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestKeyless signs with certificates of services on loopback. The signature must verify only
// for its identity, with every combination of log and timestamp authority.
func TestKeyless(t *testing.T) {
	services := trusttest.NewServices(t)
	for name, s := range map[string]sign.Services{
		"log":           {Rekor: services.URL},
		"log and clock": {Rekor: services.URL, Timestamp: services.Timestamp},
	} {
		t.Run(name, func(t *testing.T) {
			s.Fulcio, s.Token = services.URL, trusttest.Token(identity, issuer)
			c, ref := image(t, ocitest.NewReferring(t))
			signer, err := sign.Keyless(s)
			if err != nil {
				t.Fatal(err)
			}
			services.Requests()
			if _, err := signer.Sign(t.Context(), c, ref); err != nil {
				t.Fatal(err)
			}
			if _, err := signer.Attest(t.Context(), c, ref, provenance, struct{}{}); err != nil {
				t.Fatal(err)
			}
			asked := services.Requests()
			if n := len(slices.DeleteFunc(slices.Clone(asked), func(l string) bool { return !strings.HasSuffix(l, "signingCert") })); n != 1 {
				t.Errorf("%d requests for certificates, want one:\n%s", n, strings.Join(asked, "\n"))
			}
			rule := trust.SignerRule{Identity: identity, Issuer: issuer, TrustRoot: services.Root}
			got, err := verified(t, ref, rule)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Signatures) != 2 {
				t.Errorf("%d signatures, want 2", len(got.Signatures))
			}
			rule.Identity = "mallory@example.com"
			if _, err := verified(t, ref, rule); err == nil {
				t.Error("the signature is valid for another identity")
			}
		})
	}
}

// TestKeylessFaults checks that nothing is sent to the registry if a service fails, and that no
// token is sent unencrypted.
func TestKeylessFaults(t *testing.T) {
	services := trusttest.NewServices(t)
	good := sign.Services{Fulcio: services.URL, Rekor: services.URL, Token: trusttest.Token(identity, issuer)}
	for name, c := range map[string]struct {
		change func(*sign.Services)
		want   string
	}{
		"no token":   {func(s *sign.Services) { s.Token = "" }, "no identity token"},
		"no time":    {func(s *sign.Services) { s.Rekor = "" }, "to prove the time of signing"},
		"in clear":   {func(s *sign.Services) { s.Fulcio = "http://fulcio.example.com" }, "must be an https URL"},
		"no URL":     {func(s *sign.Services) { s.Rekor = "rekor" }, "must be an https URL"},
		"no service": {func(s *sign.Services) { s.Fulcio = "" }, "must be an https URL"},
	} {
		s := good
		c.change(&s)
		if _, err := sign.Keyless(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		path, token, want string
		status            int
		location, answer  string
		endless           bool
	}{
		"bad token":     {token: "x", want: "identity token"},
		"denied":        {path: "signingCert", status: 403, want: "403"},
		"redirect":      {path: "signingCert", status: 307, location: "http://elsewhere.example.com/", want: "must be an https URL"},
		"log redirects": {path: "entries", status: 307, location: "http://elsewhere.example.com/", want: "must be an https URL"},
		"log fails":     {path: "entries", status: 400, want: "400"},
		"long":          {path: "signingCert", status: 200, endless: true, want: "unexpected end"},
		"long log":      {path: "entries", status: 201, endless: true, want: "not a complete entry"},
		"empty log":     {path: "entries", status: 201, answer: `{"": {"logID": "00", "logIndex": 1, "integratedTime": 1, "verification": {"inclusionProof": {"treeSize": 1}}}}`, want: "not a complete entry"},
		"present":       {path: "entries", status: 409, location: "/api/v1/log/entries/00", want: "not a complete entry"},
		"long stamp":    {path: "timestamp", status: 200, endless: true, want: "asn1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := ocitest.NewReferring(t)
			client, ref := image(t, server)
			server.Requests()
			var sent atomic.Int64 // the handler may still run after the client has given up
			services.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodGet { // request for the existing entry
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"00": {}}`)
					return
				}
				if c.path == "" || !strings.HasSuffix(r.URL.Path, c.path) {
					next.ServeHTTP(w, r)
					return
				}
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
				for ; c.endless && sent.Load() < 64<<20; sent.Add(1 << 20) {
					if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
						return
					}
				}
			})
			s := good
			if c.path == "timestamp" {
				s.Timestamp = services.Timestamp
			}
			if c.token != "" {
				s.Token = c.token
			}
			signer, err := sign.Keyless(s)
			if err != nil {
				t.Fatal(err)
			}
			_, err = signer.Sign(t.Context(), client, ref)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), good.Token) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if asked := strings.Join(server.Requests(), "\n"); strings.Contains(asked, "PUT ") {
				t.Errorf("sent:\n%s", asked)
			}
			if sent := sent.Load(); sent >= 64<<20 {
				t.Errorf("read %d bytes of a response", sent)
			}
		})
	}
}

// TestAttacks alters the signatures of a key's owner, or attaches them to another image. Such signatures
// must not verify.
func TestAttacks(t *testing.T) {
	owner, err := sign.NewKey(keys()["cosign"], "secret")
	if err != nil {
		t.Fatal(err)
	}
	mallory, err := sign.NewKey(block("PRIVATE KEY", pkcs8(ecKey(elliptic.P256())), nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do   func(t *testing.T, c *oci.Client, ref, other string)
		want string
	}{
		"nothing":     {func(*testing.T, *oci.Client, string, string) {}, "the image has none"},
		"another key": {func(t *testing.T, c *oci.Client, ref, _ string) { must(t)(mallory.Sign(t.Context(), c, ref)) }, "not signed with this key"},
		"a statement alone": {func(t *testing.T, c *oci.Client, ref, _ string) {
			must(t)(owner.Attest(t.Context(), c, ref, provenance, struct{}{}))
		}, "not a signature"},
		"another image's, moved": {func(t *testing.T, c *oci.Client, ref, other string) {
			must(t)(owner.Sign(t.Context(), c, other))
			for _, s := range signatures(t, c, other) {
				move(t, c, ref, s, func(text string) string { return text })
			}
		}, "the signature is for another image"},
		"another image's, rewritten": {func(t *testing.T, c *oci.Client, ref, other string) {
			must(t)(owner.Sign(t.Context(), c, other))
			_, from, _ := strings.Cut(other, "@sha256:")
			_, to, _ := strings.Cut(ref, "@sha256:")
			for _, s := range signatures(t, c, other) {
				move(t, c, ref, s, func(text string) string { return strings.ReplaceAll(text, from, to) })
			}
		}, "altered"},
	} {
		t.Run(name, func(t *testing.T) {
			server := ocitest.NewReferring(t)
			client, ref := image(t, server)
			p, err := oci.Pack(fstest.MapFS{"b": {Data: []byte("b")}}, oci.PackOptions{})
			if err != nil {
				t.Fatal(err)
			}
			repo, _, _ := strings.Cut(ref, "@")
			if err := client.Push(t.Context(), repo+":v2", p); err != nil {
				t.Fatal(err)
			}
			c.do(t, client, ref, repo+"@"+p.Digest())
			got, err := verified(t, ref, keyRule(owner.PublicKey()))
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", got, err, c.want)
			}
		})
	}
}

func must(t *testing.T) func(bool, error) {
	t.Helper()
	return func(_ bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func signatures(t *testing.T, c *oci.Client, ref string) []oci.Signature {
	t.Helper()
	sigs, err := c.Signatures(t.Context(), ref)
	if err != nil || len(sigs) != 2 {
		t.Fatalf("%d signatures, %v", len(sigs), err)
	}
	return sigs
}

// move attaches a signature to another image after changing its payload.
func move(t *testing.T, c *oci.Client, ref string, s oci.Signature, change func(string) string) {
	t.Helper()
	if s.Bundle == nil {
		must(t)(c.AddSignature(t.Context(), ref, []byte(change(string(s.Payload))), s.Annotations))
		return
	}
	var b map[string]any
	if err := json.Unmarshal(s.Bundle, &b); err != nil {
		t.Fatal(err)
	}
	envelope := b["dsseEnvelope"].(map[string]any)
	var payload []byte
	text, _ := json.Marshal(envelope["payload"])
	if err := json.Unmarshal(text, &payload); err != nil {
		t.Fatal(err)
	}
	envelope["payload"] = []byte(change(string(payload)))
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Attach(t.Context(), ref, oci.Attachment{Type: oci.BundleType, Data: data}); err != nil {
		t.Fatal(err)
	}
}
