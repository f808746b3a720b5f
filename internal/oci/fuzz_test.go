package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// echoOrigin returns the same bytes for every manifest and blob.
type echoOrigin []byte

func (m echoOrigin) manifest(context.Context, string) ([]byte, error) { return m, nil }
func (m echoOrigin) blob(context.Context, string, int64) (*store.Verifier, error) {
	return store.NewUnverified(io.NopCloser(bytes.NewReader(m))), nil
}

const zeroDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// FuzzManifest loads any bytes as manifest, index and configuration. Loading must end, and
// accepted images must be within the limits.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"config":{"digest":"` + zeroDigest + `","size":1},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"` + zeroDigest + `","size":1}]}`))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"` + zeroDigest + `","size":1,"platform":{"os":"linux","architecture":"amd64"}}]}`))
	f.Add([]byte(`{"schemaVersion":2,"config":{"digest":"` + zeroDigest + `","size":2,"Labels":{"a":"b"}},"layers":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		im := &Image{name: "fuzz"}
		c := &Client{Limits: Limits{Layers: 5, LayerBytes: 1000, ImageBytes: 2000}}
		if c.loadImage(t.Context(), im, echoOrigin(data), store.DigestOf(data), data) != nil {
			return
		}
		var sum int64
		for _, l := range im.layers {
			if !imageref.IsDigest(l.Digest) || l.Size < 0 || l.Size > 1000 {
				t.Errorf("layer %+v", l)
			}
			sum += l.Size
		}
		if len(im.layers) > 5 || sum > 2000 {
			t.Errorf("%d layers of %d bytes", len(im.layers), sum)
		}
	})
}

// FuzzLogins reads any bytes as a login file of docker or podman. Errors must not contain the content of
// the file.
func FuzzLogins(f *testing.F) {
	f.Add([]byte(`{"auths":{"quay.io":{"auth":"YWxpY2U6aHVudGVyMg=="},"quay.io/org":{"username":"bob","password":"hunter2"}}}`))
	f.Add([]byte(`{"auths":{"quay.io":{"identitytoken":"hunter2"}},"credHelpers":{"quay.io":"missing"},"credsStore":"missing"}`))
	f.Add([]byte(`{"auths":{"quay.io":{"auth":"hunter2hunter2"}}}`))
	f.Add([]byte(`{"auths":[`))
	f.Setenv("PATH", f.TempDir()) // no helper is found
	dir := f.TempDir()
	repo, err := (&Client{}).repository("quay.io/org/name")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "auth.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		login := (&Credentials{Files: []string{path}}).find(repo)
		if login.found() != (login.origin == path) || login.found() && login.config == (authn.AuthConfig{}) {
			t.Errorf("found %v in %q", login.found(), login.origin)
		}
		said := strings.ReplaceAll(login.note, path, "")
		if strings.Contains(said, "hunter2") || len(data) > 20 && strings.Contains(said, string(data)) {
			t.Errorf("the error contains the secret: %s", said)
		}
	})
}

// anyFiles returns the same bytes for every path.
type anyFiles []byte

func (a anyFiles) open(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(a)), nil }
func (a anyFiles) Close() error                       { return nil }

// FuzzLayout reads any bytes as the index of a layout, and of the vendored layout.
func FuzzLayout(f *testing.F) {
	entry := `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + zeroDigest + `","size":1,"annotations":{"` + refName + `":"quay.io/a/b:v1"}}`
	f.Add([]byte(`{"schemaVersion":2,"manifests":[`+entry+`]}`), "")
	f.Add([]byte(`{"schemaVersion":2,"manifests":[`+entry+`,`+entry+`]}`), "quay.io/a/b:v1")
	f.Add([]byte(`{"manifests":[{"digest":"sha256:../../x"}]}`), "v1")
	f.Fuzz(func(t *testing.T, data []byte, tag string) {
		l := &layout{files: anyFiles(data), limit: 1 << 16}
		if digest, text, err := l.root(t.Context(), Reference{Tag: tag}); err == nil && store.DigestOf(text) != digest {
			t.Errorf("%s has %d bytes of other content", digest, len(text))
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "index.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := &Client{Vendored: dir}
		if got := c.VendoredDigest("quay.io/a/b:v1"); got != "" && !imageref.IsDigest(got) {
			t.Errorf("digest %q", got)
		}
	})
}

// FuzzSignatures reads any bytes as a manifest of signatures and as the blobs that it lists.
func FuzzSignatures(f *testing.F) {
	layer := func(kind string) string {
		return `{"mediaType":"` + kind + `","digest":"` + zeroDigest + `","size":2,"annotations":{"dev.cosignproject.cosign/signature":"x"}}`
	}
	f.Add([]byte(`{"schemaVersion":2,"config":`+layer("application/vnd.oci.image.config.v1+json")+`,"layers":[`+layer(simpleSigningType)+`]}`), `</v2/a/referrers/x?n=1>; rel="next"`)
	f.Add([]byte(`{"schemaVersion":2,"config":`+layer("application/vnd.oci.empty.v1+json")+`,"layers":[`+layer(bundleType+".v0.3+json")+`]}`), `<?last=1>;rel=next, <x>`)
	f.Add([]byte(`{"layers":[`+layer(bundleType)+`]}`), "<%zz>; rel=next")
	f.Fuzz(func(t *testing.T, data []byte, link string) {
		sigs, err := readSignatures(t.Context(), echoOrigin(data), VendoredImage{Name: "x", Digest: zeroDigest})
		if err == nil && len(sigs) > maxSignatures {
			t.Errorf("%d signatures", len(sigs))
		}
		if next, err := nextPage(http.Header{"Link": {link}}, "/v2/a/referrers/", zeroDigest); err == nil && next != "" && !strings.HasPrefix(next, zeroDigest+"?") {
			t.Errorf("%q leads to %q", link, next)
		}
	})
}

// FuzzStream decompresses any bytes as a layer.
func FuzzStream(f *testing.F) {
	var gz, zs bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := w.Write([]byte("layer"))
	z, zerr := zstd.NewWriter(&zs)
	if err := errors.Join(err, w.Close(), zerr); err != nil {
		f.Fatal(err)
	}
	if _, err := z.Write([]byte("layer")); err != nil || z.Close() != nil {
		f.Fatal(err)
	}
	f.Add(gz.Bytes())
	f.Add(zs.Bytes())
	f.Add([]byte("layer"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := newTarStream(store.NewVerifier(io.NopCloser(bytes.NewReader(data)), store.DigestOf(data), int64(len(data))), Layer{image: "x"})
		if err != nil {
			return
		}
		if n, err := io.Copy(io.Discard, io.LimitReader(r, 8<<20)); err == nil && n > 1<<20*int64(1+len(data)) {
			t.Errorf("%d bytes of %d", n, len(data))
		}
		_ = r.Close()
	})
}

// FuzzMirrors parses any bytes as each form of mirror file. Each accepted rule must have a prefix, and each
// of the rule's mirrors must have a location.
func FuzzMirrors(f *testing.F) {
	names := []string{"registries.conf", "hosts.toml", "registries.yaml"}
	for _, seed := range []string{
		"[[registry]]\nprefix = \"quay.io/a\"\nlocation = \"b.example.com\"\n[[registry.mirror]]\nlocation = \"c.example.com/d\"\npull-from-mirror = \"digest-only\"\n",
		"server = \"https://quay.io\"\n[host.\"https://a.example.com/v2/b\"]\ncapabilities = [\"pull\"]\noverride_path = true\n",
		"mirrors:\n  quay.io: {endpoint: [\"https://a.example.com/v2\"], rewrite: {\"^a/(.*)\": \"b/$1\"}}\n  \"*\": {endpoint: [b.example.com]}\n",
		"apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: quay.io/a, mirrors: [b.example.com]}]}\n",
		"apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: quay.io/a, mirrors: [b.example.com], mirrorSourcePolicy: NeverContactSource}]}\n",
		"apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata: {name: a}\nspec: {repositoryDigestMirrors: [{source: quay.io/a, mirrors: [b.example.com]}]}\n",
	} {
		for i := range names {
			f.Add([]byte(seed), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, form uint8) {
		m, err := ParseMirrors(names[int(form)%len(names)], data)
		if err != nil {
			return
		}
		if len(m.rules) == 0 {
			t.Error("accepted without a rule")
		}
		for _, r := range m.Rewrites() {
			if r.Prefix == "" || r.Mirror == "" {
				t.Errorf("rewrite %+v", r)
			}
		}
	})
}
