package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// signedArtifact is a signed artifact without provenance.
type signedArtifact struct {
	testing.TB
	client *oci.Client
	ref    string // "127.0.0.1:…/fleet@sha256:…"
	other  string // an older artifact of the same repository
	origin inventory.Provenance
}

func (s *signedArtifact) attest(with *sign.Signer, ref string, predicate any) {
	s.Helper()
	_, err := with.Attest(s.Context(), s.client, ref, trust.Provenance, predicate)
	check(s, err)
}

// statements returns the sigstore bundles with provenance that are attached to an artifact.
func (s *signedArtifact) statements(ref string) [][]byte {
	s.Helper()
	all, err := s.client.Signatures(s.Context(), ref)
	check(s, err)
	var out [][]byte
	for _, sig := range all {
		var b struct {
			Envelope struct{ Payload []byte } `json:"dsseEnvelope"`
		}
		if sig.Bundle != nil && json.Unmarshal(sig.Bundle, &b) == nil && strings.Contains(string(b.Envelope.Payload), trust.Provenance) {
			out = append(out, sig.Bundle)
		}
	}
	return out
}

func (s *signedArtifact) attach(bundle []byte) {
	s.Helper()
	_, _, err := s.client.Attach(s.Context(), s.ref, oci.Attachment{Type: oci.BundleType, Data: bundle})
	check(s, err)
}

// TestProvenanceAttacks attaches missing, altered, foreign or false provenance to a signed artifact.
// verify and diff must reject it with the reason.
func TestProvenanceAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("runs two commands for every attack")
	}
	pair, stranger := trusttest.NewKey(t), trusttest.NewKey(t)
	signer := func(k *trusttest.Key) *sign.Signer {
		s, err := sign.NewKey(k.Private(t, "secret"), "secret")
		check(t, err)
		return s
	}
	owner, mallory := signer(pair), signer(stranger)
	dir, server := quickstart(t), ocitest.NewReferring(t)
	put(t, dir, "cosign.pub", string(pair.Public))
	put(t, dir, "quayside.yaml", read(t, dir, "quayside.yaml")+"  trust:\n  - {match: \""+server.Host+"/*\", keys: [cosign.pub]}\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "start"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	for name, c := range map[string]struct {
		do     func(s *signedArtifact)
		verify string // message with exit code 2, or with exit code 1 after "1:"; empty: exit code 0
		diff   string
	}{
		"the truth": {do: func(s *signedArtifact) { s.attest(owner, s.ref, s.origin.Predicate()) }},
		"the truth, among lies": {do: func(s *signedArtifact) {
			s.attest(mallory, s.ref, s.origin.Predicate())
			s.attest(owner, s.ref, s.origin.Predicate())
			s.attest(owner, s.ref, map[string]any{"buildDefinition": map[string]any{"buildType": "https://ci.example.com"}})
		}},
		"missing":     {func(*signedArtifact) {}, "requires provenance signed by key cosign.pub, but the image has none", "but the image has none"},
		"another key": {func(s *signedArtifact) { s.attest(mallory, s.ref, s.origin.Predicate()) }, "the only one is not accepted:", "the only one is not accepted:"},
		"replayed": {func(s *signedArtifact) {
			s.attest(owner, s.other, s.origin.Predicate())
			s.attach(s.statements(s.other)[0])
		}, "does not match", "does not match"},
		"altered": {func(s *signedArtifact) {
			s.attest(owner, s.other, s.origin.Predicate())
			bundle := string(s.statements(s.other)[0])
			var b struct {
				Envelope struct{ Payload []byte } `json:"dsseEnvelope"`
			}
			check(s, json.Unmarshal([]byte(bundle), &b))
			_, from, _ := strings.Cut(s.other, "@sha256:")
			_, to, _ := strings.Cut(s.ref, "@sha256:")
			altered := strings.ReplaceAll(string(b.Envelope.Payload), from, to)
			s.attach([]byte(strings.Replace(bundle, base64.StdEncoding.EncodeToString(b.Envelope.Payload), base64.StdEncoding.EncodeToString([]byte(altered)), 1)))
		}, "the only one is not accepted:", "the only one is not accepted:"},
		"another builder's": {func(s *signedArtifact) {
			s.attest(owner, s.ref, map[string]any{"buildDefinition": map[string]any{"buildType": "https://ci.example.com"}})
		}, `not the provenance of a tree that quayside pushed: its build type is "https://ci.example.com"`, ": its build type is"},
		"of another commit": {func(s *signedArtifact) {
			s.origin.Revision = "main@sha1:" + strings.Repeat("1", 40)
			s.attest(owner, s.ref, s.origin.Predicate())
		}, "the provenance does not match the artifact: the provenance has main@sha1:1111", "but the artifact has main@sha1:"},
		"of a cluster": {func(s *signedArtifact) {
			s.origin.Clusters = []string{"default"}
			s.attest(owner, s.ref, s.origin.Predicate())
		}, "the provenance is for clusters default", "the provenance is for clusters default"},
		"without an operator": {func(s *signedArtifact) {
			s.origin.Operators = s.origin.Operators[1:]
			s.attest(owner, s.ref, s.origin.Predicate())
		}, "the artifact has operator at-operator/at-operator, but the provenance does not", "but the provenance does not"},
		"of another lock": {func(s *signedArtifact) {
			s.origin.Lock = "sha256:" + strings.Repeat("1", 64)
			s.attest(owner, s.ref, s.origin.Predicate())
		}, "1:the provenance has lock sha256:1111", ""},
		"of another bundle": {func(s *signedArtifact) {
			s.origin.Operators[0].Digest = "sha256:" + strings.Repeat("1", 64)
			s.attest(owner, s.ref, s.origin.Predicate())
		}, "1:the provenance has operator at-operator/at-operator 0.1.1 (sha256:1111", ""},
	} {
		t.Run(name, func(t *testing.T) {
			repo := "oci://" + server.Host + "/" + strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)
			run := func(code int, args ...string) string {
				t.Helper()
				got := quaysideIn(t, dir, t.TempDir(), args...)
				if got.code != code {
					t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
				}
				return got.stdout + got.stderr
			}
			other, _ := parsePushResult(t, run(0, "push", repo+":older", "--branch", "older", "-o", "json"))
			ref, revision := parsePushResult(t, run(0, "push", repo+":main", "-o", "json"))
			kept, err := store.Open(t.TempDir())
			check(t, err)
			s := &signedArtifact{TB: t, client: &oci.Client{Store: kept}, ref: ref, other: other}
			_, err = owner.Sign(t.Context(), s.client, s.ref)
			check(t, err)
			lock := parseLock(t, read(t, dir, "quayside.lock"))
			s.origin = inventory.Provenance{Revision: revision, Workspace: ".", Lock: store.DigestOf([]byte(read(t, dir, "quayside.lock")))}
			s.origin.Catalogs, s.origin.Operators = inventory.NewProvenanceInputs(lock)
			c.do(s)

			code, want := 2, c.verify
			if rest, is := strings.CutPrefix(want, "1:"); is {
				code, want = 1, rest
			} else if want == "" {
				code, want = 0, "signed by key sha256:"
			}
			checkContains(t, run(code, "verify", repo+":main"), want)
			if c.diff == "" {
				run(0, "diff", repo+":main")
			} else {
				checkContains(t, run(2, "diff", repo+":main"), c.diff)
			}
		})
	}
}

// parsePushResult returns the reference by digest and the revision that push prints.
func parsePushResult(t *testing.T, text string) (reference, revision string) {
	t.Helper()
	var v struct{ Reference, Revision string }
	check(t, json.NewDecoder(strings.NewReader(text)).Decode(&v))
	return strings.TrimPrefix(v.Reference, "oci://"), v.Revision
}
