package cluster_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestFluxSigned pushes and signs artifacts with quayside. Flux must verify and apply these artifacts. It must
// reject artifacts without a signature or with another signer, replaced artifacts, and artifacts with a
// modified signature. docs/artifacts.md lists the modified artifacts that Flux accepts. quayside must reject
// them.
func TestFluxSigned(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	s := newSigned(t)
	key, public := keyPair(t)
	other, _ := keyPair(t)
	q := quickstart(t, gitops{profile: "flux", kind: "OCIRepository", path: "."})
	settings, err := os.ReadFile(filepath.Join(q.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	q.write(t, "quayside.yaml", fmt.Sprintf("%s  trust:\n  - {match: \"%s/*\", keys: [cosign.pub]}\n", settings, s.host))
	q.write(t, "cosign.pub", string(public))
	q.resolveAndRender(t)
	q.commit(t, "start")

	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	ctx, applier := within(t, 8*time.Minute), applier(t, cluster)
	list := append(objects(t, fmt.Sprintf(cosignKey, base64.StdEncoding.EncodeToString(public))), s.source(t, "fleet")...)
	list = append(list, manifests(t, filepath.Join(q.dir, "rendered", "flux", "default"))...)
	digest := s.push(t, q, "fleet", "--sign", key)
	if _, err := applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	reconcile(ctx, t, applier, list, digest)
	awaitRendered(ctx, t, applier, q.rendered(t), nil)

	const unmatched = "no matching signatures were found for"
	for _, c := range []struct {
		repository string
		sign       []string
		spoil      func(repository, digest string)
		flux       string // "" if Flux accepts it
		quayside   string
	}{
		// Source-controller 1.7.3 checks neither the digest of the layer nor the digest in the signature. This case is
		// first, because quayside caches layers.
		{repository: tampered, sign: []string{"--sign", key}, quayside: "digest"},
		{repository: "unsigned", flux: unmatched, quayside: "the image has none"},
		{repository: "other-key", sign: []string{"--sign", other}, flux: unmatched, quayside: "was not signed with this key"},
		{
			repository: "tampered-signature", sign: []string{"--sign", key}, flux: unmatched, // the bundle next to it is intact
			spoil: func(repository, digest string) { s.spoilSignature(t, repository, digest) },
		},
		{
			repository: "replaced", sign: []string{"--sign", key}, flux: unmatched, quayside: "the image has none",
			spoil: func(repository, _ string) { s.replace(t, repository) },
		},
		{
			repository: "moved-signature", sign: []string{"--sign", key}, quayside: "the signature is for another image",
			spoil: func(repository, digest string) {
				s.moveSignature(t, repository, digest, s.replace(t, repository))
			},
		},
	} {
		digest := s.push(t, q, c.repository, c.sign...)
		if c.spoil != nil {
			c.spoil(c.repository, digest)
		}
		source := s.source(t, c.repository)
		if _, err := applier.Apply(ctx, source); err != nil {
			t.Fatal(err)
		}
		taken, message := awaitVerdict(ctx, t, applier, source[0])
		if taken != (c.flux == "") || !strings.Contains(message, c.flux) {
			t.Errorf("%s: accepted by Flux: %t: %q, want %q", c.repository, taken, message, c.flux)
		}
		_, stderr, code := q.run(t, "verify", "oci://"+s.host+"/"+c.repository+":main")
		if (code == 0) != (c.quayside == "") || !strings.Contains(stderr, c.quayside) {
			t.Errorf("%s: quayside verify exits with %d, want %q\n%s", c.repository, code, c.quayside, stderr)
		}
	}
	q.must(t, "verify", "--strict", "oci://"+s.host+"/fleet:main")
}

// TestArgoCDOCI applies artifacts pushed by quayside, and an upgrade, with Argo CD's own
// controllers and an OCI source.
func TestArgoCDOCI(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	s := newSigned(t)
	cluster := harness.Start(t, harness.Options{})
	h := startArgoCD(t, cluster)
	q := quickstart(t, gitops{profile: "argocd", url: "oci://" + s.host + "/fleet", path: ".", namespace: "argocd", automated: true})
	q.resolveAndRender(t)
	q.commit(t, "start")
	key, _ := keyPair(t)
	ctx := within(t, 8*time.Minute)
	if _, err := h.Apply(ctx, objects(t, fmt.Sprintf(argoRegistry, s.host))); err != nil {
		t.Fatal(err)
	}
	digest := s.push(t, q, "fleet", "--sign", key)
	apps := manifests(t, filepath.Join(q.dir, "rendered", "argocd"))
	if _, err := h.Apply(ctx, apps); err != nil {
		t.Fatal(err)
	}
	settle := func(digest string) {
		t.Helper()
		for _, app := range apps {
			h.await(ctx, t, app.GetName(), digest, "settled", isSettled)
		}
		awaitRendered(ctx, t, h.Applier, q.rendered(t), nil)
	}
	settle(digest)
	q.must(t, "resolve", "--offline", "--upgrade")
	q.resolveAndRender(t)
	q.commit(t, "upgrade")
	next := s.push(t, q, "fleet", "--sign", key)
	if next == digest {
		t.Fatal("the upgrade has the same digest")
	}
	settle(next)
}

const cosignKey = `
apiVersion: v1
kind: Secret
metadata: {name: cosign-pub, namespace: flux-system}
data: {cosign.pub: %s}
`

const argoRegistry = `
apiVersion: v1
kind: Secret
metadata: {name: fleet, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {type: oci, name: fleet, url: "oci://%s/fleet", insecureOCIForceHttp: "true"}
`

// signed is a registry for signed artifacts.
type signed struct{ host string }

// tampered is a repository whose layers are served with one bit changed.
const tampered = "tampered-layer"

func newSigned(t *testing.T) *signed {
	t.Helper()
	s := &signed{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/"+tampered+"/blobs/") {
			inner.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) { // a layer, not a signature
			body[4] ^= 1 // in the time of its header, so that it can still be unpacked
		}
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

// source returns an OCIRepository with signature verification for a repository's tag main.
func (s *signed) source(t *testing.T, repository string) []*unstructured.Unstructured {
	t.Helper()
	return objects(t, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: %[1]s, namespace: flux-system}
spec:
  {interval: 1h, timeout: 20s, url: "oci://%[2]s/%[1]s", ref: {tag: main}, insecure: true, verify: {provider: cosign, secretRef: {name: cosign-pub}}}
`, repository, s.host))
}

// push pushes the workspace's last commit to a repository's tag main, and returns the digest.
func (s *signed) push(t *testing.T, q quayside, repository string, flags ...string) string {
	t.Helper()
	out := q.must(t, append([]string{"push", "oci://" + s.host + "/" + repository + ":main"}, flags...)...)
	_, digest, ok := strings.Cut(strings.TrimSpace(out), "@")
	if !ok {
		t.Fatalf("push printed %q", out)
	}
	return digest
}

// tag returns a reference to a tag of a repository.
func (s *signed) tag(t *testing.T, repository, tag string) name.Tag {
	t.Helper()
	out, err := name.NewTag(s.host+"/"+repository+":"+tag, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// signatures returns the tag for the signatures of a digest.
func signatures(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

// get returns the image of a tag, and its manifest.
func (s *signed) get(t *testing.T, tag name.Tag) (v1.Image, *v1.Manifest) {
	t.Helper()
	im, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	m, err := im.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return im, m
}

// spoilSignature changes a bit of a digest's signature.
func (s *signed) spoilSignature(t *testing.T, repository, digest string) {
	t.Helper()
	tag := s.tag(t, repository, signatures(digest))
	im, m := s.get(t, tag)
	layers, err := im.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d signatures, %v", len(layers), err)
	}
	const annotation = "dev.cosignproject.cosign/signature"
	raw, err := base64.StdEncoding.DecodeString(m.Layers[0].Annotations[annotation])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	spoilt, err := mutate.Append(mutate.MediaType(empty.Image, m.MediaType), mutate.Addendum{
		Layer: layers[0], MediaType: m.Layers[0].MediaType, Annotations: map[string]string{annotation: base64.StdEncoding.EncodeToString(raw)},
	})
	if err == nil {
		err = remote.Write(tag, spoilt)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replace moves the tag main to another artifact, and returns the digest of that artifact.
func (s *signed) replace(t *testing.T, repository string) string {
	t.Helper()
	tag := s.tag(t, repository, "main")
	_, m := s.get(t, tag)
	evil, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, m.MediaType), m.Config.MediaType), mutate.Addendum{
		Layer: static.NewLayer(packTar(t, map[string][]byte{"evil.yaml": []byte("{}")}), m.Layers[0].MediaType),
	})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := evil.Digest()
	if err == nil {
		err = remote.Write(tag, evil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// moveSignature copies the signature of one digest (from) to the signature tag of another digest (to).
func (s *signed) moveSignature(t *testing.T, repository, from, to string) {
	t.Helper()
	im, _ := s.get(t, s.tag(t, repository, signatures(from)))
	if err := remote.Write(s.tag(t, repository, signatures(to)), im); err != nil {
		t.Fatal(err)
	}
}

// commit commits the workspace, and creates the repository if necessary.
func (q quayside) commit(t *testing.T, message string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", message}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = q.dir
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
}

// keyPair returns a file with a private key, and the public key in PEM form.
func keyPair(t *testing.T) (file string, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// awaitVerdict waits until a source is ready or has failed. It returns whether the source is ready, and the message.
func awaitVerdict(ctx context.Context, t *testing.T, applier *harness.Applier, source *unstructured.Unstructured) (taken bool, message string) {
	t.Helper()
	for {
		live, err := applier.Get(ctx, source)
		if err != nil {
			t.Fatal(err)
		}
		ready, message, _ := harness.Condition(live, "Ready")
		_, has, _ := unstructured.NestedMap(live.Object, "status", "artifact")
		switch ready {
		case "True":
			return true, message
		case "False":
			if has {
				t.Errorf("%s is rejected, but has an artifact: %s", harness.Name(source), message)
			}
			return false, message
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: Ready is %q: %s", harness.Name(source), ready, message)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
