package trust_test

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

	"github.com/quayside/quayside/internal/testing/trusttest"
)

// logged is a deployment of sigstore with a transparency log, which also certifies the time.
type logged struct {
	root       []byte // trusted_root.json with the log
	rootWithCT []byte // the same, and a certificate log that does not contain the issued certificates

	sigstore *ca.VirtualSigstore
}

func newLogged(tb testing.TB) *logged {
	tb.Helper()
	v, err := ca.NewVirtualSigstore()
	if err != nil {
		tb.Fatal(err)
	}
	authority, stamps := v.FulcioCertificateAuthorities()[0], v.TimestampingAuthorities()[0]
	l := &logged{sigstore: v}
	l.root = trustedRoot(tb, authority, stamps, nil, renameLogs(tb, v.RekorLogs()))
	l.rootWithCT = trustedRoot(tb, authority, stamps, renameLogs(tb, v.CTLogs()), renameLogs(tb, v.RekorLogs()))
	return l
}

// renameLogs sets the ID of each log to its key in logs, as in a trust root. It returns a copy of logs.
func renameLogs(tb testing.TB, logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
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

// bundle returns a bundle that signs the image with this digest, with a log entry at the given time. The
// certificate is valid for ten minutes from now.
func (l *logged) bundle(tb testing.TB, digest, identity, issuer string, logged time.Time) []byte {
	tb.Helper()
	e, err := l.sigstore.AttestAtTime(identity, issuer, trusttest.Statement(digest, trusttest.SignPredicate), logged, true)
	if err != nil {
		tb.Fatal(err)
	}
	sig, content := parts(tb, e)
	entry, err := protojson.Marshal(l.entry(tb, e))
	if err != nil {
		tb.Fatal(err)
	}
	return trusttest.Bundle(tb, trusttest.Statement(digest, trusttest.SignPredicate), sig, map[string]any{
		"certificate": map[string]any{"rawBytes": content},
		"tlogEntries": []any{json.RawMessage(entry)},
	})
}

// simple signs the image in the format of cosign, with the log's signed timestamp.
func (l *logged) simple(tb testing.TB, digest, identity, issuer string) trusttest.Simple {
	tb.Helper()
	e, err := l.sigstore.Sign(identity, issuer, trusttest.Payload(digest))
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
	return trusttest.Simple{Payload: trusttest.Payload(digest), Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig),
		"dev.sigstore.cosign/certificate":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		"dev.sigstore.cosign/bundle":         promise,
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

// entry returns the log entry with the log's signed timestamp.
func (l *logged) entry(tb testing.TB, e *ca.TestEntity) *protorekor.TransparencyLogEntry {
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
