package cluster_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestFluxOCI applies four trees of the quickstart from a registry with Flux: a tree with an operator that
// cannot run, a repaired tree, an upgraded tree, and a tree without operators.
func TestFluxOCI(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	artifact := newArtifact(t)
	q := quickstart(t, gitops{profile: "flux", kind: "OCIRepository", path: "."})
	const subscription = "subscriptions/memcached.yaml"
	sound, err := os.ReadFile(filepath.Join(q.dir, subscription))
	if err != nil {
		t.Fatal(err)
	}
	q.write(t, subscription, string(sound)+"  config: {nodeSelector: {no: such-node}}\n")
	// The vault is omitted, because its dependency would remain after the vault is removed.
	q.remove(t, "quayside.lock", "subscriptions/vault.yaml")
	q.resolveAndRender(t)
	artifact.push(t, q)

	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	ctx, applier := within(t, 8*time.Minute), applier(t, cluster)
	list := append(objects(t, fmt.Sprintf(fleetImage, artifact.reference)), withShortTimeouts(manifests(t, filepath.Join(q.dir, "rendered", "flux", "default")))...)
	if _, err := applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	checkHeldBack(ctx, t, applier, list)

	q.write(t, subscription, string(sound))
	q.resolveAndRender(t)
	reconcile(ctx, t, applier, list, artifact.push(t, q))
	awaitRendered(ctx, t, applier, q.rendered(t), nil)
	if _, err := applier.Get(ctx, objects(t, database)[0]); err != nil {
		t.Errorf("objects that depend on ready operators: %v", err)
	}
	before := deployedImages(ctx, t, cluster, "memcached-operator-system")

	q.must(t, "resolve", "--offline", "--upgrade")
	q.resolveAndRender(t)
	reconcile(ctx, t, applier, list, artifact.push(t, q))
	upgraded := q.rendered(t)
	awaitRendered(ctx, t, applier, upgraded, nil)
	if after := deployedImages(ctx, t, cluster, "memcached-operator-system"); after == "" || after == before {
		t.Errorf("images after the upgrade: %q, before: %q; want different ones", after, before)
	}

	q.remove(t, "subscriptions/at.yaml", "subscriptions/etcd.yaml", subscription)
	q.resolveAndRender(t)
	if left := q.rendered(t); len(left) > 0 {
		t.Errorf("%v is rendered without declarations", names(left))
	}
	reconcile(ctx, t, applier, list, artifact.push(t, q))
	awaitRendered(ctx, t, applier, nil, only(upgraded, holdsData))
	if _, err := applier.Get(ctx, objects(t, database)[0]); err != nil {
		t.Errorf("the database after the last operator was uninstalled: %v", err)
	}
}

// resolveAndRender updates lock and tree for the declarations.
func (q quayside) resolveAndRender(t *testing.T) {
	t.Helper()
	q.must(t, "resolve", "--offline")
	q.must(t, "render", "--offline")
}

// fleetImage contains the source of the tree, and a database that the team adds. The database needs the operators.
const fleetImage = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: fleet, namespace: flux-system}
spec: {interval: 1h, url: "oci://%s", ref: {tag: main}, insecure: true}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: databases, namespace: flux-system}
spec:
  {interval: 1h, prune: true, wait: true, path: ./databases, sourceRef: {kind: OCIRepository, name: fleet}, dependsOn: [{name: quayside-default-operators}]}
`

// withShortTimeouts returns the Kustomizations with a short timeout for their health checks, in
// place of ten minutes.
func withShortTimeouts(list []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range list {
		o = o.DeepCopy()
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		spec["timeout"], spec["retryInterval"] = "15s", "5s"
		o.Object["spec"] = spec
		out = append(out, o)
	}
	return out
}

// checkHeldBack waits until the Kustomization of the operators without dependencies reports an unavailable
// Deployment. It then checks that the Kustomization of the CRDs is ready, and that the Kustomizations that
// depend on the operators have applied nothing.
func checkHeldBack(ctx context.Context, t *testing.T, applier *harness.Applier, list []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range list {
		want := map[string]struct{ ready, message string }{
			"quayside-default-crds":        {"True", ""},
			"quayside-default-independent": {"False", "Deployment/memcached-operator-system/"},
			"quayside-default-operators":   {"False", "dependency 'flux-system/quayside-default-independent' is not ready"},
			"databases":                    {"False", "dependency 'flux-system/quayside-default-operators' is not ready"},
		}[o.GetName()]
		for want.ready != "" {
			live, err := applier.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			ready, message, _ := harness.Condition(live, "Ready")
			if ready == want.ready && strings.Contains(message, want.message) {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s: Ready is %s: %s; want %s: %s", harness.Name(o), ready, message, want.ready, want.message)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	if _, err := applier.Get(ctx, objects(t, database)[0]); !apierrors.IsNotFound(err) {
		t.Errorf("objects that depend on unready operators: got error %v, want not found", err)
	}
}

// artifact is a tag in its own registry.
type artifact struct {
	reference string // "127.0.0.1:41234/fleet"
	tag       name.Tag
}

// newArtifact serves an empty registry until the test ends.
func newArtifact(t *testing.T) artifact {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	a := artifact{reference: strings.TrimPrefix(server.URL, "http://") + "/fleet"}
	var err error
	if a.tag, err = name.NewTag(a.reference+":main", name.Insecure); err != nil {
		t.Fatal(err)
	}
	return a
}

// push packs the workspace's tree and the team's database like `flux push artifact`, moves the tag to this
// artifact, and returns the digest of its manifest.
func (a artifact) push(t *testing.T, q quayside) string {
	t.Helper()
	files := map[string][]byte{"databases/database.yaml": []byte(database)}
	tree := os.DirFS(filepath.Join(q.dir, "rendered"))
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(tree, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.flux.config.v1+json")
	image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(packTar(t, files), "application/vnd.cncf.flux.content.v1.tar+gzip")})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(a.tag, image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// packTar returns the files as a gzipped tar archive.
func packTar(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for path, text := range files {
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
