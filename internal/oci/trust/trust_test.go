package trust_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

const (
	identity = "release@example.com"
	issuer   = "https://accounts.example.com"
)

// image is a pushed image with its registry and client.
type image struct {
	testing.TB
	server *ocitest.Server
	client *oci.Client
	repo   string
	digest string
	other  string // digest without an image
}

func (i *image) ref() string { return i.repo + "@" + i.digest }

func newImage(t *testing.T, server *ocitest.Server) *image {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(fstest.MapFS{"a": {Data: []byte("a")}}, oci.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im := &image{
		TB: t, server: server, repo: server.Host + "/org/name", digest: packed.Digest(), other: "sha256:" + strings.Repeat("1", 64),
		client: &oci.Client{Store: s, Retry: oci.Retry{Attempts: 1}},
	}
	if err := im.client.Push(t.Context(), im.repo+":v1", packed); err != nil {
		t.Fatal(err)
	}
	return im
}

func (i *image) simple(sigs ...trusttest.Simple) { trusttest.PushSimple(i, i.repo, i.digest, sigs...) }
func (i *image) bundle(data []byte)              { trusttest.PushBundle(i, i.repo, i.digest, data) }

func keyRule(keys ...*trusttest.Key) trust.SignerRule {
	r := trust.SignerRule{Match: "*", Where: "quayside.yaml:3:5"}
	for _, k := range keys {
		r.Keys = append(r.Keys, trust.Key{Name: "cosign.pub", PEM: k.Public})
	}
	return r
}

func keylessRule(root []byte) trust.SignerRule {
	return trust.SignerRule{Match: "*", Where: "quayside.yaml:3:5", Identity: identity, Issuer: issuer, TrustRoot: root}
}

func verify(ctx context.Context, i *image, r trust.SignerRule) (*trust.Verification, error) {
	p, err := trust.New([]trust.SignerRule{r})
	if err != nil {
		return nil, err
	}
	return p.Verify(ctx, i.client, i.ref())
}

// TestVerify verifies an image with valid and invalid signatures of every kind.
func TestVerify(t *testing.T) {
	key, another := trusttest.NewKey(t), trusttest.NewKey(t)
	trusted, stranger := newAuthority(t), newAuthority(t)
	log := newLogged(t)
	now := time.Now()
	usual := signing{identity: identity, issuer: issuer, issued: now.Add(-24 * time.Hour), stamped: now.Add(-24*time.Hour + time.Minute)}
	altered := func(f func(*signing)) signing {
		s := usual
		f(&s)
		return s
	}
	late := altered(func(s *signing) { s.stamped = now })
	undated := altered(func(s *signing) { s.stamped = time.Time{} })
	mallory := altered(func(s *signing) { s.identity = "mallory@example.com" })
	elsewhere := altered(func(s *signing) { s.issuer = "https://accounts.example.org" })
	pattern := keylessRule(trusted.root)
	pattern.Identity, pattern.IdentityRegexp = "", `.*@example\.com`
	prefix := pattern
	prefix.IdentityRegexp = "release"

	for _, c := range []struct {
		name string
		rule trust.SignerRule
		sign func(*image)
		want string // part of the error, or the signer
	}{
		{"ok/key, simple", keyRule(key), func(i *image) { i.simple(key.Simple(t, i.digest)) }, "key sha256:"},
		{"ok/key, second key and second signature", keyRule(another, key), func(i *image) { i.simple(trusttest.NewKey(t).Simple(t, i.digest), key.Simple(t, i.digest)) }, "key sha256:"},
		{"ok/key, bundle", keyRule(another, key), func(i *image) { i.bundle(key.Bundle(t, i.digest, trusttest.SignPredicate)) }, "key sha256:"},
		{"ok/identity, simple, certificate expired since", keylessRule(trusted.root), func(i *image) { i.simple(trusted.simple(t, i.digest, usual)) }, identity + " (" + issuer + ")"},
		{"ok/identity, bundle, certificate expired since", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, identity + " (" + issuer + ")"},
		{"ok/identity by pattern", pattern, func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, identity + " (" + issuer + ")"},
		{"ok/log, bundle", keylessRule(log.root), func(i *image) { i.bundle(log.bundle(t, i.digest, identity, issuer, now.Add(time.Minute))) }, identity},
		{"ok/log, simple", keylessRule(log.root), func(i *image) { i.simple(log.simple(t, i.digest, identity, issuer)) }, identity},

		{"error/missing", keyRule(key), func(*image) {}, "requires a signature by key cosign.pub, but the image has none: sign the image, or change the rule"},
		{"error/missing identity", keylessRule(trusted.root), func(*image) {}, `requires a signature by "release@example.com" at issuer "https://accounts.example.com", but the image has none`},
		{"error/wrong key", keyRule(key), func(i *image) { i.simple(another.Simple(t, i.digest)) }, "not signed with this key"},
		{"error/wrong key, bundle", keyRule(key), func(i *image) { i.bundle(another.Bundle(t, i.digest, trusttest.SignPredicate)) }, "the only one is not accepted"},
		{"error/other digest", keyRule(key), func(i *image) { i.simple(key.Simple(t, i.other)) }, `the signature is for another image, "sha256:1111`},
		{"error/other digest, bundle", keyRule(key), func(i *image) { i.bundle(key.Bundle(t, i.other, trusttest.SignPredicate)) }, "does not match"},
		{"error/tampered payload", keyRule(key), func(i *image) {
			s := key.Simple(t, i.other)
			s.Payload = trusttest.Payload(i.digest)
			i.simple(s)
		}, "the signed content was altered"},
		{"error/tampered statement", keyRule(key), func(i *image) {
			a := base64.StdEncoding.EncodeToString(trusttest.Statement(i.other, trusttest.SignPredicate))
			b := base64.StdEncoding.EncodeToString(trusttest.Statement(i.digest, trusttest.SignPredicate))
			i.bundle([]byte(strings.Replace(string(key.Bundle(t, i.other, trusttest.SignPredicate)), a, b, 1)))
		}, "the only one is not accepted"},
		{"error/an attestation is no signature", keyRule(key), func(i *image) { i.bundle(key.Bundle(t, i.digest, "https://slsa.dev/provenance/v1")) }, `contains a statement of type "https://slsa.dev/provenance/v1", not a signature`},
		{"error/no signature in it", keyRule(key), func(i *image) { i.simple(trusttest.Simple{Payload: trusttest.Payload(i.digest)}) }, "contains no signature"},
		{"error/not a bundle", keyRule(key), func(i *image) { i.bundle([]byte("<html>\x1b[31m")) }, "not a sigstore bundle"},
		{"error/identity wanted, key found", keylessRule(trusted.root), func(i *image) { i.simple(key.Simple(t, i.digest)) }, "signed with a key instead of a certificate"},
		{"error/key wanted, identity found", keyRule(key), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, "expected key signature, not certificate"},
		{"error/wrong identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, mallory)) }, "mallory@example.com"},
		{"error/wrong identity, simple", keylessRule(trusted.root), func(i *image) { i.simple(trusted.simple(t, i.digest, mallory)) }, "mallory@example.com"},
		{"error/pattern for a part", prefix, func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, `an identity matching "release"`},
		{"error/wrong issuer", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, elsewhere)) }, "https://accounts.example.org"},
		{"error/another authority", keylessRule(stranger.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, "the only one is not accepted"},
		{"error/expired, stamped later", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, late)) }, "leaf certificate"},
		{"error/expired, without timestamp", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, undated)) }, "timestamp"},
		{"error/expired, without timestamp, simple", keylessRule(trusted.root), func(i *image) { i.simple(trusted.simple(t, i.digest, undated)) }, "timestamp"},
		{"error/other digest, identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.other, trusttest.SignPredicate, usual)) }, "does not match"},
		{"error/attestation by identity", keylessRule(trusted.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, "https://spdx.dev/Document", usual)) }, "not a signature"},
		{"error/log, logged after the certificate expired", keylessRule(log.root), func(i *image) { i.bundle(log.bundle(t, i.digest, identity, issuer, now.Add(30*time.Minute))) }, "integrated time outside certificate validity"},
		{"error/log wanted, not logged", keylessRule(log.root), func(i *image) { i.bundle(trusted.bundle(t, i.digest, trusttest.SignPredicate, usual)) }, "log"},
		{"error/certificate in no log", keylessRule(log.rootWithCT), func(i *image) { i.bundle(log.bundle(t, i.digest, identity, issuer, now.Add(time.Minute))) }, "signed certificate timestamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, server := range []*ocitest.Server{ocitest.New(t), ocitest.NewReferring(t)} {
				im := newImage(t, server)
				c.sign(im)
				got, err := verify(t.Context(), im, c.rule)
				if strings.HasPrefix(c.name, "ok/") {
					if err != nil {
						t.Fatal(err)
					}
					if len(got.Identities) != 1 || !strings.HasPrefix(got.Identities[0], c.want) {
						t.Errorf("signed by %q, want %q", got.Identities, c.want)
					}
					continue
				}
				var e *trust.Error
				if !errors.As(err, &e) || e.Image != im.ref() {
					t.Fatalf("got %v, %v: want a *trust.Error about %s", got, err, im.ref())
				}
				if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "quayside.yaml:3:5") || strings.ContainsAny(text, "\n\x1b") {
					t.Errorf("got  %q\nwant %q", text, c.want)
				}
			}
		})
	}
}

// TestVerifyOffline verifies an image a second time, without the registry. It also checks the error for an
// image that was never verified.
func TestVerifyOffline(t *testing.T) {
	key := trusttest.NewKey(t)
	server := ocitest.NewReferring(t)
	im := newImage(t, server)
	im.client.Offline = true
	_, err := verify(t.Context(), im, keyRule(key))
	if err == nil || !strings.Contains(err.Error(), "--offline allows no download") {
		t.Errorf("got %v", err)
	}
	im.client.Offline = false
	im.simple(key.Simple(t, im.digest))
	im.bundle(key.Bundle(t, im.digest, trusttest.SignPredicate))
	if _, err := verify(t.Context(), im, keyRule(key)); err != nil {
		t.Fatal(err)
	}
	im.client.Offline = true
	server.Requests()
	got, err := verify(t.Context(), im, keyRule(key))
	if err != nil || len(got.Signatures) != 2 {
		t.Errorf("got %v, %v: want both signatures", got, err)
	}
	if n := server.Requests(); len(n) > 0 {
		t.Errorf("request to the registry: %s", n)
	}
	if _, err := verify(t.Context(), im, keyRule(trusttest.NewKey(t))); err == nil || !strings.Contains(err.Error(), "not signed with this key") {
		t.Errorf("stored signatures are accepted without verification: %v", err)
	}
}

// TestVerifyLooksUpAgain checks that the registry is contacted if the stored signatures are not
// sufficient.
func TestVerifyLooksUpAgain(t *testing.T) {
	key, next := trusttest.NewKey(t), trusttest.NewKey(t)
	im := newImage(t, ocitest.New(t))
	im.simple(key.Simple(t, im.digest))
	if _, err := verify(t.Context(), im, keyRule(key)); err != nil {
		t.Fatal(err)
	}
	im.simple(key.Simple(t, im.digest), next.Simple(t, im.digest))
	if _, err := verify(t.Context(), im, keyRule(next)); err != nil {
		t.Error(err)
	}
}

// TestVerifyRegistryFault checks that a failing registry is neither reported as a missing
// signature nor accepted.
func TestVerifyRegistryFault(t *testing.T) {
	im := newImage(t, ocitest.New(t))
	im.server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/v2/" {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	})
	_, err := verify(t.Context(), im, keyRule(trusttest.NewKey(t)))
	var e *oci.Error
	if !errors.As(err, &e) || e.Status != http.StatusForbidden || !strings.Contains(err.Error(), "looking up its signatures") {
		t.Errorf("got %v", err)
	}
}

// TestNew checks that rules which can never be met or have no effect are rejected.
func TestNew(t *testing.T) {
	key := trusttest.NewKey(t)
	with := func(match string) trust.SignerRule {
		r := keyRule(key)
		r.Match = match
		return r
	}
	badKey, private, badRoot := keyRule(key), keyRule(key), keylessRule([]byte("{}"))
	badKey.Keys = []trust.Key{{Name: "cosign.pub", PEM: []byte("no key")}}
	private.Keys = []trust.Key{{Name: "cosign.key", PEM: []byte("-----BEGIN PRIVATE KEY-----")}}
	for name, c := range map[string]struct {
		rule trust.SignerRule
		want string
	}{
		"ok/all":             {with("*"), ""},
		"ok/registry":        {with("docker.io/*"), ""},
		"ok/part of a name":  {with("quay.io/org/my-*"), ""},
		"ok/one":             {with("docker.io/library/busybox"), ""},
		"error/short name":   {with("docker.io/busybox"), `match "docker.io/busybox": no repository can match`},
		"error/upper case":   {with("quay.io/Org/*"), "no repository can match"},
		"error/no registry":  {with("org/*"), "no repository can match"},
		"error/trailing":     {with("quay.io/org/"), "no repository can match"},
		"error/key":          {badKey, "key cosign.pub: not a PEM public key"},
		"error/private key":  {private, "key cosign.key: this is a private key: use the public key"},
		"error/trust root":   {badRoot, "trust root: "},
		"error/broken root":  {keylessRule([]byte("<")), "trust root: "},
		"error/without root": {keylessRule(nil), "trust root: "},
	} {
		_, err := trust.New([]trust.SignerRule{c.rule})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "quayside.yaml:3:5: ") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestSpellings checks that the same rule applies to all spellings of a repository that clients
// accept, and to no other repository.
func TestSpellings(t *testing.T) {
	key := trusttest.NewKey(t)
	digest := "@sha256:" + strings.Repeat("1", 64)
	at := func(match, where string) trust.SignerRule {
		r := keyRule(key)
		r.Match, r.Where = match, where
		return r
	}
	spell := func(t *rapid.T, host string) string {
		if host == "docker.io" {
			host = rapid.SampledFrom([]string{"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}).Draw(t, "name")
		}
		b := []byte(host)
		for i := range b {
			if rapid.Bool().Draw(t, "upper") {
				b[i] = strings.ToUpper(string(b[i]))[0]
			}
		}
		return string(b) + rapid.SampledFrom([]string{"", ":443"}).Draw(t, "port")
	}
	rapid.Check(t, func(t *rapid.T) {
		quay, docker := spell(t, "quay.io"), spell(t, "docker.io")
		p, err := trust.New([]trust.SignerRule{at(quay+"/org/one", "one"), at(quay+"/org/*", "org"), at(docker+"/library/*", "library"), at(docker+"/my*", "my")})
		if err != nil {
			t.Fatal(err)
		}
		for repo, want := range map[string]string{
			"quay.io/org/one": "one", "quay.io/org/two": "org", "quay.io/org/one/more": "org", "quay.io/other/one": "",
			"docker.io/nginx": "library", "docker.io/library/nginx": "library", "docker.io/mynah/x": "my", "docker.io/other/x": "", "quay.com/org/one": "",
		} {
			host, under, _ := strings.Cut(repo, "/")
			ref := spell(t, host) + "/" + under + digest
			if got, err := trust.RuleFor(p, ref); err != nil || got != want {
				t.Errorf("%s: rule %q, %v, want %q", ref, got, err, want)
			}
		}
	})
}

// TestNoNormalForm checks that ambiguous references are rejected if a rule may match them, and
// accepted if there are no rules.
func TestNoNormalForm(t *testing.T) {
	r := keyRule(trusttest.NewKey(t))
	r.Match = "quay.io/org/*"
	p, err := trust.New([]trust.SignerRule{r})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"quay\u3002io/org/x", "\uff51uay.io/org/x", "quay.io/x/../org/x", "quay.io/./org/x", "quay.io//org/x", "quay..io/org/x", "quay.io./org/x", "quay.io:/org/x", "quay.io:00443/org/x"} {
		ref := name + "@sha256:" + strings.Repeat("1", 64)
		if demanded, err := p.RequiresSignature(ref); demanded || err == nil {
			t.Errorf("%s: %v, %v, want an error", ref, demanded, err)
		}
		if got, err := p.Verify(t.Context(), &oci.Client{}, ref); got != nil || err == nil {
			t.Errorf("%s is verified: %v, %v", ref, got, err)
		}
		var none *trust.Policy
		if demanded, err := none.RequiresSignature(ref); demanded || err != nil {
			t.Errorf("%s without rules: %v, %v", ref, demanded, err)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, repository string
		want                bool
	}{
		{"*", "quay.io/a", true},
		{"quay.io/org/*", "quay.io/org/a/b", true},
		{"quay.io/org/*", "quay.io/organisation/a", false},
		{"quay.io/org/a", "quay.io/org/a", true},
		{"quay.io/org/a", "quay.io/org/ab", false},
	} {
		if got := trust.Matches(c.pattern, c.repository); got != c.want {
			t.Errorf("%q, %q: %t", c.pattern, c.repository, got)
		}
	}
}

// TestVerifyHostileRegistry replaces parts of a valid signature. Verification must fail, and the
// error must name the cause.
func TestVerifyHostileRegistry(t *testing.T) {
	key := trusttest.NewKey(t)
	for name, c := range map[string]struct {
		part string // the part of the path whose response is replaced
		with string
		want string
	}{
		"other bytes for the payload":  {"/blobs/", strings.Repeat("not what the digest names", 20), "longer than "},
		"a page for the manifest":      {"/manifests/sha256-", "<html>", "invalid character"},
		"a huge manifest":              {"/manifests/sha256-", strings.Repeat(" ", 5<<20), "exceeds the limit of 4194304 bytes"},
		"a page for the referrers":     {"/referrers/", "<html>", ""},
		"many referrers":               {"/referrers/", referrers(65), "65 signatures"},
		"referrers that are not there": {"/referrers/", referrers(1), "listed as a signature, but missing"},
	} {
		t.Run(name, func(t *testing.T) {
			im := newImage(t, ocitest.NewReferring(t))
			im.simple(key.Simple(t, im.digest))
			im.server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, c.part) {
					_, _ = w.Write([]byte(c.with))
					return
				}
				next.ServeHTTP(w, r)
			})
			got, err := verify(t.Context(), im, keyRule(key))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v: want %q", got, err, c.want)
			}
		})
	}
}

// referrers returns a list of n sigstore bundles.
func referrers(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:%064x","artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`, i))
	}
	return `{"schemaVersion":2,"manifests":[` + strings.Join(list, ",") + `]}`
}

// FuzzCheck verifies arbitrary signatures: none may be accepted or cause a panic.
func FuzzCheck(f *testing.F) {
	digest := "sha256:" + strings.Repeat("1", 64)
	key, trusted := trusttest.NewKey(f), newAuthority(f)
	stranger := newAuthority(f)
	usual := signing{identity: identity, issuer: issuer, issued: time.Now(), stamped: time.Now().Add(time.Minute)}
	s := stranger.simple(f, digest, usual)
	f.Add(s.Payload, s.Annotations["dev.cosignproject.cosign/signature"], s.Annotations["dev.sigstore.cosign/certificate"], "{}", s.Annotations["dev.sigstore.cosign/rfc3161timestamp"], []byte(nil))
	f.Add([]byte(nil), "", "", "", "", stranger.bundle(f, digest, trusttest.SignPredicate, usual))
	f.Add([]byte(nil), "", "", "", "", trusttest.NewKey(f).Bundle(f, digest, trusttest.SignPredicate))
	var policies []*trust.Policy
	for _, r := range []trust.SignerRule{keyRule(key), keylessRule(trusted.root)} {
		p, err := trust.New([]trust.SignerRule{r})
		if err != nil {
			f.Fatal(err)
		}
		policies = append(policies, p)
	}
	f.Fuzz(func(t *testing.T, payload []byte, sig, cert, entry, stamp string, bundle []byte) {
		for _, p := range policies {
			for _, s := range []oci.Signature{
				{Payload: payload, Annotations: map[string]string{
					"dev.cosignproject.cosign/signature": sig, "dev.sigstore.cosign/certificate": cert,
					"dev.sigstore.cosign/bundle": entry, "dev.sigstore.cosign/rfc3161timestamp": stamp,
				}},
				{Bundle: append([]byte{}, bundle...)},
			} {
				if who, err := trust.Check(p, "quay.io/org/name", digest, s); err == nil {
					t.Errorf("signed by %q", who)
				}
			}
		}
	})
}
