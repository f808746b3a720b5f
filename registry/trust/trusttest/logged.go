package trusttest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// Logged is a deployment of sigstore with a transparency log, which vouches
// for the time too.
type Logged struct {
	Root       []byte // trusted_root.json with the log
	RootWithCT []byte // and with a log of certificates, in which those issued are not

	sigstore *ca.VirtualSigstore
}

// NewLogged makes a deployment.
func NewLogged(tb testing.TB) *Logged {
	tb.Helper()
	v, err := ca.NewVirtualSigstore()
	if err != nil {
		tb.Fatal(err)
	}
	authority, stamps := v.FulcioCertificateAuthorities()[0], v.TimestampingAuthorities()[0]
	l := &Logged{sigstore: v}
	l.Root = trustedRoot(tb, authority, stamps, nil, known(tb, v.RekorLogs()))
	l.RootWithCT = trustedRoot(tb, authority, stamps, known(tb, v.CTLogs()), known(tb, v.RekorLogs()))
	return l
}

// known gives logs the identity that a trust root has them by.
func known(tb testing.TB, logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	out := maps.Clone(logs)
	for id, log := range out {
		raw, err := hex.DecodeString(id)
		if err != nil {
			tb.Fatal(err)
		}
		log.ID = raw
	}
	return out
}

// Bundle signs the image with that digest, as a bundle with an entry in the
// log of that time. The certificate is good from now on for ten minutes.
func (l *Logged) Bundle(tb testing.TB, digest, identity, issuer string, logged time.Time) []byte {
	tb.Helper()
	e, err := l.sigstore.AttestAtTime(identity, issuer, Statement(digest, SignPredicate), logged, true)
	if err != nil {
		tb.Fatal(err)
	}
	sig, content := parts(tb, e)
	entry, err := protojson.Marshal(l.entry(tb, e))
	if err != nil {
		tb.Fatal(err)
	}
	return marshal(tb, map[string]any{
		"mediaType": bundleType,
		"verificationMaterial": map[string]any{
			"certificate": map[string]any{"rawBytes": content},
			"tlogEntries": []any{json.RawMessage(entry)},
		},
		"dsseEnvelope": map[string]any{
			"payload": Statement(digest, SignPredicate), "payloadType": statementType, "signatures": []any{map[string]any{"sig": sig}},
		},
	})
}

// Simple signs the image as cosign does, with the log's promise beside it.
func (l *Logged) Simple(tb testing.TB, digest, identity, issuer string) Simple {
	tb.Helper()
	e, err := l.sigstore.Sign(identity, issuer, Payload(digest))
	if err != nil {
		tb.Fatal(err)
	}
	sig, cert := parts(tb, e)
	entry := l.entry(tb, e)
	promise := marshal(tb, map[string]any{
		"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
		"Payload": map[string]any{
			"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
			"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
		},
	})
	return Simple{Payload: Payload(digest), Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig),
		"dev.sigstore.cosign/certificate":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		"dev.sigstore.cosign/bundle":         string(promise),
	}}
}

// parts returns the signature and the certificate.
func parts(tb testing.TB, e *ca.TestEntity) (sig, cert []byte) {
	content, err := e.SignatureContent()
	if err != nil {
		tb.Fatal(err)
	}
	material, err := e.VerificationContent()
	if err != nil {
		tb.Fatal(err)
	}
	return content.Signature(), material.Certificate().Raw
}

// entry returns the log's entry with the log's promise in it.
func (l *Logged) entry(tb testing.TB, e *ca.TestEntity) *protorekor.TransparencyLogEntry {
	entries, err := e.TlogEntries()
	if err != nil {
		tb.Fatal(err)
	}
	entry := entries[0].TransparencyLogEntry()
	var body struct{ APIVersion, Kind string }
	if err := json.Unmarshal(entry.GetCanonicalizedBody(), &body); err != nil {
		tb.Fatal(err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	promise, err := l.sigstore.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
		LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	if err != nil {
		tb.Fatal(err)
	}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	return entry
}
