package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/quayside/quayside/internal/testing/ocitest"
)

// chartSigner signs charts as 'helm package --sign' does.
type chartSigner struct {
	*testing.T
	provenance.Signatory
	public string
}

func newChartSigner(t *testing.T) *chartSigner {
	t.Helper()
	return newChartSignerWith(t, nil)
}

// newChartSignerWith returns a signer whose key has these settings.
func newChartSignerWith(t *testing.T, settings *packet.Config) *chartSigner {
	t.Helper()
	by, err := openpgp.NewEntity("Lamp", "", "lamp@example.com", settings)
	check(t, err)
	s := &chartSigner{T: t, Signatory: provenance.Signatory{Entity: by}}
	s.public = s.exported()
	return s
}

// exported returns the current public key, in armor.
func (s *chartSigner) exported() string {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	check(s.T, err)
	check(s.T, s.Entity.Serialize(w))
	check(s.T, w.Close())
	return b.String()
}

// sign returns the provenance file of an archive.
func (s *chartSigner) sign(archive []byte) string {
	text, err := s.ClearSign(archive, "lamp-1.0.0.tgz", []byte("name: lamp\nversion: 1.0.0\n"))
	check(s.T, err)
	return text
}

// TestSignedChartsOnTheWeb requires provenance files for the charts of a repository.
func TestSignedChartsOnTheWeb(t *testing.T) {
	signer, archive, site := newChartSigner(t), chartArchive(t, "1.0.0"), t.TempDir()
	put(t, site, "index.yaml", "entries:\n  lamp:\n  - {name: lamp, version: 1.0.0, urls: [files/lamp-1.0.0.tgz]}\n")
	put(t, site, "files/lamp-1.0.0.tgz", string(archive))
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	dir := t.TempDir()
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec:
  catalogs: [{name: charts, helm: "`+server.URL+`"}]
  trust: [{match: "`+strings.TrimPrefix(server.URL, "http://")+`/*", keys: [lamp.asc]}]
`)
	put(t, dir, "lamp.asc", signer.public)
	good := signer.sign(archive)
	for name, c := range map[string]struct{ file, want string }{
		"missing":         {"", "404 Not Found"},
		"unsigned":        {"name: lamp\n", "has no OpenPGP signature"},
		"altered":         {strings.Replace(good, "name: lamp", "name: desk", 1), "was not signed with this key, or was altered"},
		"another key":     {newChartSigner(t).sign(archive), "was not signed with this key, or was altered"},
		"another archive": {signer.sign([]byte("else")), "is about another archive"},
	} {
		check(t, os.RemoveAll(filepath.Join(site, "files/lamp-1.0.0.tgz.prov")))
		if c.file != "" {
			put(t, site, "files/lamp-1.0.0.tgz.prov", c.file)
		}
		got := quaysideIn(t, dir, t.TempDir(), "add", "lamp", "-n", "lights")
		if got.code != 2 || !strings.Contains(got.stderr, "lamp: quayside.yaml:6:11 requires a provenance file signed by key lamp.asc") || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: exit code %d\n%s", name, got.code, got.stderr)
		}
	}
	put(t, site, "files/lamp-1.0.0.tgz.prov", good)
	cache := t.TempDir()
	mustRunIn(t, dir, cache, "add", "lamp", "-n", "lights", "--render")
	mustRunIn(t, dir, cache, "verify", "--offline")
	mustRunIn(t, dir, cache, "vendor")
	mustRunIn(t, dir, t.TempDir(), "render", "--check", "--offline")

	// A rule that is added later also applies to stored content.
	settings := read(t, dir, "quayside.yaml")
	put(t, dir, "quayside.yaml", strings.Replace(settings, "[lamp.asc]", "[other.asc]", 1))
	put(t, dir, "other.asc", newChartSigner(t).public)
	for _, command := range []string{"resolve", "verify"} {
		if got := quaysideIn(t, dir, cache, command); got.code != 2 || !strings.Contains(got.stderr, "requires a provenance file signed by key other.asc") {
			t.Errorf("%s with a new rule: exit code %d\n%s", command, got.code, got.stderr)
		}
	}
	put(t, dir, "quayside.yaml", settings)

	// A good signature of another version is none.
	put(t, site, "index.yaml", "entries:\n  lamp:\n  - {name: lamp, version: 1.0.1, urls: [files/lamp-1.0.0.tgz]}\n")
	if got := quaysideIn(t, dir, t.TempDir(), "add", "lamp@1.0.1", "-n", "lights"); got.code != 2 || !strings.Contains(got.stderr, "the provenance file is about chart lamp 1.0.0") {
		t.Errorf("another version: exit code %d\n%s", got.code, got.stderr)
	}
}

// TestChartsSignedWithUnusableKeys requires provenance files by keys that have expired or are revoked. The
// signatures themselves are good.
func TestChartsSignedWithUnusableKeys(t *testing.T) {
	archive := chartArchive(t, "1.0.0")
	lastYear := &packet.Config{KeyLifetimeSecs: 3600, Time: func() time.Time { return time.Now().AddDate(-1, 0, 0) }}
	for name, c := range map[string]struct {
		settings *packet.Config
		change   func(*openpgp.Entity)
		want     string // "" if the key is usable
	}{
		"usable":  {nil, nil, ""},
		"expired": {lastYear, nil, "key expired"},
		"revoked": {nil, func(e *openpgp.Entity) { check(t, e.RevokeKey(packet.KeyCompromised, "stolen", nil)) }, "signature made by revoked key"},
	} {
		signer, site, dir := newChartSignerWith(t, c.settings), t.TempDir(), t.TempDir()
		file := signer.sign(archive)
		if c.change != nil {
			c.change(signer.Entity)
		}
		put(t, site, "index.yaml", "entries:\n  lamp:\n  - {name: lamp, version: 1.0.0, urls: [lamp-1.0.0.tgz]}\n")
		put(t, site, "lamp-1.0.0.tgz", string(archive))
		put(t, site, "lamp-1.0.0.tgz.prov", file)
		server := httptest.NewServer(http.FileServer(http.Dir(site)))
		defer server.Close()
		put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec:
  catalogs: [{name: charts, helm: "`+server.URL+`"}]
  trust: [{match: "`+strings.TrimPrefix(server.URL, "http://")+`/*", keys: [lamp.asc]}]
`)
		put(t, dir, "lamp.asc", signer.exported())
		got := quaysideIn(t, dir, t.TempDir(), "add", "lamp", "-n", "lights")
		if c.want == "" && got.code != 0 || c.want != "" && (got.code != 2 || !strings.Contains(got.stderr, c.want)) {
			t.Errorf("%s: exit code %d\n%s", name, got.code, got.stderr)
		}
	}
}

// TestSignedChartsInRegistry requires provenance files, which are in the images of charts.
func TestSignedChartsInRegistry(t *testing.T) {
	server, signer, archive := ocitest.New(t), newChartSigner(t), chartArchive(t, "1.0.0")
	repo, dir := server.Host+"/charts/lamp", t.TempDir()
	push := func(file string) {
		t.Helper()
		layers := []mutate.Addendum{{Layer: static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")}}
		if file != "" {
			layers = append(layers, mutate.Addendum{Layer: static.NewLayer([]byte(file), "application/vnd.cncf.helm.chart.provenance.v1.prov")})
		}
		im, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json"), layers...)
		check(t, err)
		ref, err := name.ParseReference(repo + ":1.0.0")
		check(t, err)
		check(t, remote.Write(ref, im))
	}
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec:
  catalogs: [{name: lamp, helm: "oci://`+repo+`"}]
  trust: [{match: "`+server.Host+`/*", keys: [lamp.asc]}]
`)
	put(t, dir, "lamp.asc", signer.public)
	for name, file := range map[string]string{
		"missing": "", "another key": newChartSigner(t).sign(archive), "another archive": signer.sign([]byte("else")),
	} {
		push(file)
		if got := quaysideIn(t, dir, t.TempDir(), "add", "lamp", "-n", "lights"); got.code != 2 || !strings.Contains(got.stderr, "requires a signature by key lamp.asc") {
			t.Errorf("%s: exit code %d\n%s", name, got.code, got.stderr)
		}
	}
	push(signer.sign(archive))
	cache := t.TempDir()
	mustRunIn(t, dir, cache, "add", "lamp", "-n", "lights", "--render")
	checkContains(t, read(t, dir, "quayside.lock"), "identity: key openpgp:")
	mustRunIn(t, dir, cache, "verify")
	mustRunIn(t, dir, cache, "vendor")
	mustRunIn(t, dir, t.TempDir(), "render", "--check", "--offline")
}
