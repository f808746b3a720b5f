package trust_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// TestStatements verifies images that need provenance in addition to a signature. Some of the provenance is
// forged. Only statements about this image by accepted signers may be used.
func TestStatements(t *testing.T) {
	key, another := trusttest.NewKey(t), trusttest.NewKey(t)
	trusted := newAuthority(t)
	now := time.Now()
	usual := signing{identity: identity, issuer: issuer, issued: now.Add(-time.Minute), stamped: now}
	mallory := usual
	mallory.identity = "mallory@example.com"
	const none = "requires provenance signed by key cosign.pub, but the image has none: push the artifact again with 'quayside push --sign'"

	for _, c := range []struct {
		name string
		rule trust.SignerRule
		sign func(*image)
		want string
	}{
		{"ok/key", keyRule(key), func(i *image) { i.bundle(key.Bundle(t, i.digest, trust.Provenance)) }, "key sha256:"},
		{"ok/key, among foreign and other statements", keyRule(key), func(i *image) {
			i.bundle(another.Bundle(t, i.digest, trust.Provenance))
			i.bundle(key.Bundle(t, i.digest, "https://cyclonedx.org/bom"))
			i.bundle(key.Bundle(t, i.digest, trust.Provenance))
		}, "key sha256:"},
		{"ok/identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trust.Provenance, usual)) }, identity},
		{"ok/next to a statement that is too large", keyRule(key), func(i *image) {
			i.bundle(key.Bundle(t, i.digest, trust.Provenance))
			i.bundle([]byte(strings.Repeat(" ", 2<<20)))
		}, "key sha256:"},

		{"error/missing", keyRule(key), func(*image) {}, none},
		{"error/another type", keyRule(key), func(i *image) { i.bundle(key.Bundle(t, i.digest, "https://cyclonedx.org/bom")) }, none},
		{"error/another key", keyRule(key), func(i *image) { i.bundle(another.Bundle(t, i.digest, trust.Provenance)) }, "the only one is not accepted"},
		{"error/another identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trust.Provenance, mallory)) }, "mallory@example.com"},
		{"error/another image's", keyRule(key), func(i *image) { i.bundle(key.Bundle(t, i.other, trust.Provenance)) }, "does not match"},
		{"error/another image's, by identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.other, trust.Provenance, usual)) }, "does not match"},
		{"error/another image's, rewritten", keyRule(key), func(i *image) {
			a := base64.StdEncoding.EncodeToString(trusttest.Statement(i.other, trust.Provenance))
			b := base64.StdEncoding.EncodeToString(trusttest.Statement(i.digest, trust.Provenance))
			i.bundle([]byte(strings.Replace(string(key.Bundle(t, i.other, trust.Provenance)), a, b, 1)))
		}, "the only one is not accepted"},
		{"error/another statement, said to be this", keyRule(key), func(i *image) {
			a := base64.StdEncoding.EncodeToString(trusttest.Statement(i.digest, "https://slsa.dev/provenance/v0"))
			b := base64.StdEncoding.EncodeToString(trusttest.Statement(i.digest, trust.Provenance))
			i.bundle([]byte(strings.Replace(string(key.Bundle(t, i.digest, "https://slsa.dev/provenance/v0")), a, b, 1)))
		}, "the only one is not accepted"},
		{"error/no bundle", keyRule(key), func(i *image) { i.bundle([]byte("<html>")) }, "not a sigstore bundle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			im := newImage(t, ocitest.NewReferring(t))
			if len(c.rule.Keys) > 0 {
				im.simple(key.Simple(t, im.digest))
			} else {
				im.simple(trusted.simple(t, im.digest, usual))
			}
			c.sign(im)
			p, err := trust.New([]trust.SignerRule{c.rule})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Verify(t.Context(), im.client, im.ref()); err != nil {
				t.Fatalf("unexpected error for the signature: %v", err)
			}
			got, err := p.Verify(t.Context(), im.client, im.ref(), trust.Provenance)
			if strings.HasPrefix(c.name, "ok/") {
				if err != nil || len(got.Statements) != 1 || len(got.Signatures) != 2 {
					t.Fatalf("got %+v, %v, want one statement and two signatures", got, err)
				}
				if s := got.Statements[0]; s.Type != trust.Provenance || !strings.HasPrefix(got.Identities[0], c.want) || string(s.Predicate) != "{}" {
					t.Errorf("got %s of %q by %q", s.Predicate, s.Type, got.Identities)
				}
				return
			}
			var e *trust.Error
			if got != nil || !errors.As(err, &e) || e.Statement != trust.Provenance || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v\nwant %q", got, err, c.want)
			}
		})
	}
}

// TestStatementsAreLookedUpAgain checks that the registry is contacted if only the signature is
// stored, and that the error in offline mode names the missing statement.
func TestStatementsAreLookedUpAgain(t *testing.T) {
	key := trusttest.NewKey(t)
	im := newImage(t, ocitest.NewReferring(t))
	im.simple(key.Simple(t, im.digest))
	p, err := trust.New([]trust.SignerRule{keyRule(key)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify(t.Context(), im.client, im.ref()); err != nil {
		t.Fatal(err)
	}
	im.bundle(key.Bundle(t, im.digest, trust.Provenance))
	im.client.Offline = true
	if _, err := p.Verify(t.Context(), im.client, im.ref(), trust.Provenance); err == nil || !strings.Contains(err.Error(), "provenance signed by key cosign.pub, but none is in the cache or the vendored layout") {
		t.Errorf("offline: %v", err)
	}
	im.client.Offline = false
	if _, err := p.Verify(t.Context(), im.client, im.ref(), trust.Provenance); err != nil {
		t.Error(err)
	}
}
