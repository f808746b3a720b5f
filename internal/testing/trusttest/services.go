package trusttest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/go-openapi/runtime"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/quayside/quayside/internal/testing/servertest"
)

// Services are a certificate authority, a transparency log and a timestamp authority on loopback,
// with the APIs of Fulcio and Rekor. They do not verify identities.
type Services struct {
	URL       string // URL of the certificate authority and of the log
	Timestamp string // URL of the timestamp authority
	Root      []byte // content of trusted_root.json, with the authority, the log and the timestamp authority

	servertest.Guard // Requests returns "METHOD path"

	sigstore       *ca.VirtualSigstore
	issuer         *x509.Certificate
	key            *ecdsa.PrivateKey
	timestampCert  *x509.Certificate
	timestampKey   *ecdsa.PrivateKey
	rootCert       *x509.Certificate
	timestampChain *x509.Certificate
}

// NewServices starts the services, and stops them at the end of the test.
func NewServices(tb testing.TB) *Services {
	tb.Helper()
	s := &Services{}
	err := s.createAuthorities()
	if err == nil {
		err = s.trustedRoot()
	}
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/signingCert", serveJSON(s.issueCertificate))
	mux.HandleFunc("POST /api/v1/log/entries", serveJSON(s.addLogEntry))
	mux.HandleFunc("POST /api/v1/timestamp", serveJSON(s.issueTimestamp))
	s.Guard = servertest.Guard{Server: mux, Line: func(r *http.Request) string { return r.Method + " " + r.URL.Path }}
	h := httptest.NewServer(&s.Guard)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	tb.Cleanup(h.Close)
	s.URL, s.Timestamp = h.URL, h.URL+"/api/v1/timestamp"
	return s
}

// Token returns an OIDC token. identity is an e-mail address.
func Token(identity, issuer string) string {
	claims := fmt.Sprintf(`{"sub":%q,"email":%[1]q,"email_verified":true,"iss":%q}`, identity, issuer)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

func (s *Services) createAuthorities() error {
	var err error
	if s.sigstore, err = ca.NewVirtualSigstore(); err != nil {
		return err
	}
	var top *ecdsa.PrivateKey
	if s.rootCert, top, err = ca.GenerateRootCa(); err != nil {
		return err
	}
	if s.issuer, s.key, err = ca.GenerateFulcioIntermediate(s.rootCert, top); err != nil {
		return err
	}
	timestampChain, by, err := ca.GenerateTSAIntermediate(s.rootCert, top)
	if err != nil {
		return err
	}
	if s.timestampKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	s.timestampChain = timestampChain
	s.timestampCert, err = ca.GenerateTSALeafCert(time.Now().Add(-5*time.Minute), s.timestampKey, timestampChain, by)
	return err
}

func (s *Services) trustedRoot() error {
	logs := s.sigstore.RekorLogs()
	for id, l := range logs {
		raw, err := hex.DecodeString(id)
		if err != nil {
			return err
		}
		l.ID = raw
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{
			Root: s.rootCert, Intermediates: []*x509.Certificate{s.issuer}, ValidityPeriodStart: from, ValidityPeriodEnd: to, URI: "https://ca.example.com",
		}}, nil,
		[]root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{
			Root: s.rootCert, Intermediates: []*x509.Certificate{s.timestampChain}, Leaf: s.timestampCert, ValidityPeriodStart: from, ValidityPeriodEnd: to, URI: "https://tsa.example.com",
		}}, logs)
	if err != nil {
		return err
	}
	s.Root, err = tr.MarshalJSON()
	return err
}

// serveJSON returns a handler that calls a function for each request, and writes its result as JSON.
func serveJSON(handle func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := handle(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if raw, is := out.([]byte); is {
			_, _ = w.Write(raw)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if entries, is := out.(map[string]any); is {
			for id := range entries {
				w.Header().Set("ETag", id)
			}
			w.WriteHeader(http.StatusCreated)
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

// publicOnly is a crypto.Signer that cannot sign, because it has no private key.
type publicOnly struct{ crypto.PublicKey }

func (p publicOnly) Public() crypto.PublicKey { return p.PublicKey }
func (publicOnly) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("no private key")
}

func (s *Services) issueCertificate(r *http.Request) (any, error) {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return nil, errors.New("no token")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	var identity struct{ Email, Iss string }
	var request struct {
		PublicKeyRequest struct{ PublicKey struct{ Content string } }
	}
	if err := errors.Join(json.Unmarshal(claims, &identity), json.NewDecoder(r.Body).Decode(&request)); err != nil {
		return nil, err
	}
	pub, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(request.PublicKeyRequest.PublicKey.Content))
	if err != nil {
		return nil, err
	}
	cert, err := ca.GenerateLeafCert(identity.Email, identity.Iss, time.Now().Add(-time.Minute), publicOnly{pub}, s.issuer, s.key)
	if err != nil {
		return nil, err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	type chain struct {
		Certificates []string `json:"certificates"`
	}
	return struct {
		Embedded struct {
			Chain chain `json:"chain"`
		} `json:"signedCertificateEmbeddedSct"`
	}{struct {
		Chain chain `json:"chain"`
	}{chain{[]string{text}}}}, nil
}

func (s *Services) addLogEntry(r *http.Request) (any, error) {
	proposed, err := models.UnmarshalProposedEntry(r.Body, runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.UnmarshalEntry(proposed)
	if err != nil {
		return nil, err
	}
	body, err := entry.Canonicalize(context.WithoutCancel(r.Context()))
	if err != nil {
		return nil, err
	}
	id, err := s.sigstore.RekorLogID()
	if err != nil {
		return nil, err
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Unix(), LogIndex: 0, LogID: id}
	promise, err := s.sigstore.RekorSignPayload(payload)
	if err != nil {
		return nil, err
	}
	proof, err := s.sigstore.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	return map[string]any{strings.Repeat("0", 64): map[string]any{
		"body": payload.Body, "integratedTime": payload.IntegratedTime, "logIndex": payload.LogIndex, "logID": id,
		"verification": map[string]any{"signedEntryTimestamp": promise, "inclusionProof": proof},
	}}, nil
}

func (s *Services) issueTimestamp(r *http.Request) (any, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	request, err := timestamp.ParseRequest(data)
	if err != nil {
		return nil, err
	}
	t := timestamp.Timestamp{HashAlgorithm: request.HashAlgorithm, HashedMessage: request.HashedMessage, Time: time.Now(), Policy: []int{1, 2, 3}}
	return t.CreateResponseWithOpts(s.timestampCert, s.timestampKey, crypto.SHA256)
}
