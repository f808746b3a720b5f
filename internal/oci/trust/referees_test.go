package trust_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
)

// refereeDifferences returns the cases that sigstore-conformance accepts and quayside rejects, each with
// the reason. quayside must never accept a case that sigstore-conformance rejects.
func refereeDifferences() map[string]string {
	return map[string]string{}
}

// TestReferees verifies the bundles of sigstore-conformance as described in its README: by a key
// if the case has one, otherwise by identity with the trust root of the case or of the public
// instance.
func TestReferees(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is not set")
	}
	root = filepath.Join(root, "referees", "sigstore")
	dirs, err := filepath.Glob(filepath.Join(root, "*", "bundle.sigstore.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases in %s: %v", root, err)
	}
	public := publicRoot(t)
	unseen := refereeDifferences()
	var refused, verified, differs int
	for _, file := range dirs {
		name := filepath.Base(filepath.Dir(file))
		why, listed := refereeDifferences()[name]
		delete(unseen, name)
		_, err := refereeCase(t, filepath.Dir(file), filepath.Join(root, "a.txt"), public)
		fails := strings.HasSuffix(name, "_fail")
		switch {
		case fails && err == nil:
			t.Errorf("%s: accepted, want rejected", name)
		case fails && listed:
			t.Errorf("%s: an invalid signature must not be in refereeDifferences", name)
		case fails:
			refused++
		case err == nil && listed:
			t.Errorf("%s: accepted: remove it from refereeDifferences (%q)", name, why)
		case err == nil:
			verified++
		case listed:
			differs++
			t.Logf("%s: rejected as expected: %s (%v)", name, why, err)
		default:
			t.Errorf("%s: rejected, want accepted: %v", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unseen)) {
		t.Errorf("%s is not among the cases", name)
	}
	t.Logf("%d cases: %d rejected and %d accepted like in the conformance suite, %d known differences", len(dirs), refused, verified, differs)
}

// publicRoot returns the trust root of sigstore's public instance, from the test data of
// sigstore-go.
func publicRoot(t *testing.T) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/sigstore/sigstore-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "testing", "data", "trusted-roots", "public-good.json"))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// refereeCase verifies the artifact of a case and returns its signer.
func refereeCase(t *testing.T, dir, artifact string, public []byte) (string, error) {
	t.Helper()
	read := func(name string, otherwise []byte) []byte {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return otherwise
		}
		return content
	}
	if _, err := os.Stat(filepath.Join(dir, "artifact")); err == nil {
		artifact = filepath.Join(dir, "artifact")
	}
	content, err := os.ReadFile(artifact)
	if err != nil {
		t.Fatal(err)
	}
	const repository = "example.com/org/a"
	rule := trust.SignerRule{Match: repository, Where: "the case"}
	if key := read("key.pub", nil); key != nil {
		rule.Keys = []trust.Key{{Name: "key.pub", PEM: key}}
	} else {
		rule.TrustRoot = read("trusted_root.json", public)
		rule.Identity = strings.TrimSpace(string(read("identity", []byte("https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"))))
		rule.Issuer = strings.TrimSpace(string(read("issuer", []byte("https://token.actions.githubusercontent.com"))))
	}
	policy, err := trust.New([]trust.SignerRule{rule})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return trust.Check(policy, repository, "sha256:"+hex.EncodeToString(sum[:]), oci.Signature{Manifest: "the bundle", Bundle: read("bundle.sigstore.json", nil)})
}
