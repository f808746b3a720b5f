package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
)

// chartArchive returns the archive of a version of the chart lamp.
func chartArchive(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: lamp\nversion: " + version + "\n", "templates/a.yaml": "a: b\n"} {
		check(t, w.WriteHeader(&tar.Header{Name: "lamp/" + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(text))
		check(t, err)
	}
	check(t, errors.Join(w.Close(), z.Close()))
	return b.Bytes()
}

// openCatalog opens a catalog, and checks its content.
func openCatalog(t *testing.T, at source.Resolver, ref source.Ref) (*source.OpenedCatalog, catalog.Content) {
	t.Helper()
	check(t, ref.Check())
	c, err := source.Open(t.Context(), at, ref)
	check(t, err)
	content, err := c.Content(t.Context())
	check(t, err)
	_, err = catalog.New(content)
	check(t, err)
	return c, content
}

// TestCharts opens the same charts in a repository and in a directory.
func TestCharts(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "charts"), map[string]string{
		"lamp-1.0.0.tgz": string(chartArchive(t, "1.0.0")), "source/Chart.yaml": "apiVersion: v2\nname: lamp\nversion: 1.1.0\n", "source/templates/a.yaml": "a: b\n",
	})
	first, second := chartArchive(t, "1.0.0"), chartArchive(t, "1.1.0")
	mux := http.NewServeMux()
	serve := func(path string, data []byte) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	serve("/repo/index.yaml", fmt.Appendf(nil, "entries:\n  lamp:\n  - {name: lamp, version: 1.0.0, urls: [missing.tgz, lamp-1.0.0.tgz], digest: %x}\n  - {name: lamp, version: 1.1.0, urls: [lamp-1.1.0.tgz], digest: 'sha256:%x'}\n  - {name: lamp, version: 2.0.0, urls: [lamp-1.0.0.tgz], digest: f%063d}\n  - {name: lamp, version: 3.0.0, urls: ['http://example.com/x.tgz']}\n  - {name: lamp, version: 4.0.0, urls: [lamp-1.0.0.tgz], digest: 1}\n  - {name: lamp, version: 5.0.0, urls: [one.tgz, two.tgz]}\n  - {name: lamp, version: 6.0.0}\n",
		sha256.Sum256(first), sha256.Sum256(second), 1))
	serve("/repo/lamp-1.0.0.tgz", first)
	serve("/repo/lamp-1.1.0.tgz", second)
	server := httptest.NewServer(mux)
	defer server.Close()
	kept, err := store.Open(t.TempDir())
	check(t, err)
	client := &oci.Client{Store: kept}
	at := newResolver(dir)
	at.Download = client.Download

	for _, ref := range []source.Ref{source.ChartRef("dir:charts"), source.ChartRef(server.URL + "/repo"), source.ChartRef(server.URL + "/repo/")} {
		c, _ := openCatalog(t, at, ref)
		for _, bundle := range []string{"lamp-1.0.0", "lamp-1.1.0"} {
			files, err := c.Bundle(t.Context(), "lamp", bundle, nil)
			if err != nil {
				t.Errorf("%s of %s: %v", bundle, ref, err)
				continue
			}
			check(t, fstest.TestFS(files, "Chart.yaml", "templates/a.yaml"))
		}
		if _, err := c.Bundle(t.Context(), "lamp", "lamp-9.0.0", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing version of %s: %v", ref, err)
		}
		digest, err := c.Digest()
		check(t, err)
		if _, err := catalog.ParseDigest(string(digest)); err != nil {
			t.Error(err)
		}
		if ref.IsServed() {
			checkFaultyCharts(t, c)
		}
		c.Close()
	}
	for _, bad := range []source.Ref{"helm:", "helm:x", "helm:oci:", "helm:ftp://host/x", "helm:https:", "helm:dir:"} {
		if bad.Check() == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, bad := range []source.Ref{"helm:https:x", "helm:oci:host/x", "helm:oci://host", "helm:oci://host/x:v1", "helm:https://", "helm:https://host/x?a=b", "helm:http://example.com/x", source.ChartRef(server.URL + "/nowhere"), "helm:dir:nowhere"} {
		if _, err := source.Find(context.Background(), at, bad); err == nil {
			t.Errorf("%q is found", bad)
		}
	}
}

// TestChartReferrals checks that the index of a public repository cannot refer to a private network.
func TestChartReferrals(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "entries: {lamp: [{name: lamp, version: 1.0.0, urls: ['https://10.0.0.1/lamp.tgz']}]}")
	}))
	defer server.Close()
	kept, err := store.Open(t.TempDir())
	check(t, err)
	client := &oci.Client{Store: kept}
	at := newResolver(t.TempDir())
	at.Download = func(ctx context.Context, url, digest string, limit int64) (*oci.Downloaded, error) {
		if strings.HasSuffix(url, "/index.yaml") {
			url = server.URL
		}
		return client.Download(ctx, url, digest, limit)
	}
	c, _ := openCatalog(t, at, source.ChartRef("https://203.0.113.1/charts"))
	defer c.Close()
	if _, err := c.Bundle(t.Context(), "lamp", "lamp-1.0.0", nil); err == nil || !strings.Contains(err.Error(), "203.0.113.1 refers to the private address 10.0.0.1") {
		t.Errorf("got %v", err)
	}
}

// TestReleases opens the same manifests in a directory and at URLs.
func TestReleases(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "releases"), map[string]string{
		"lamp/1.0.0/a.yaml": "kind: A\n", "lamp/v1.1.0/b/c.yaml": "kind: B\n", "lamp/latest/a.yaml": "kind: A\n", "lamp/README.md": "text", ".git/1.0.0/x": "",
	})
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "releases"))))
	defer server.Close()
	kept, err := store.Open(t.TempDir())
	check(t, err)
	at := newResolver(dir)
	at.Download = (&oci.Client{Store: kept}).Download
	inDir, err := source.Releases{Location: "dir:releases"}.Ref()
	check(t, err)
	atURL, err := source.Releases{Package: "lamp", URL: server.URL + "/lamp/{version}/a.yaml", Versions: []string{"1.0.0", "v1.1.0"}}.Ref()
	check(t, err)
	for _, ref := range []source.Ref{inDir, atURL} {
		c, content := openCatalog(t, at, ref)
		if b := content.Packages[0].Bundles; len(content.Packages) != 1 || len(b) != 2 || b[1].Name != "lamp-v1.1.0" || b[0].Format != "manifests" || b[0].Templated {
			t.Errorf("%s: %+v", ref, content.Packages)
		}
		files, err := c.Bundle(t.Context(), "lamp", "lamp-1.0.0", nil)
		check(t, err)
		check(t, fstest.TestFS(files, "a.yaml"))
		if _, err := c.Bundle(t.Context(), "lamp", "lamp-9.0.0", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing version of %s: %v", ref, err)
		}
		if _, err := c.Bundle(t.Context(), "lamp", "lamp-v1.1.0", nil); (err != nil) != ref.IsServed() {
			t.Errorf("a missing file of %s: %v", ref, err)
		}
		_, err = c.Digest()
		check(t, err)
		c.Close()
	}
	for _, bad := range []source.Releases{{}, {Location: "releases"}, {Location: "dir:x", Package: "a"}, {Package: "a", URL: "https://host/x", Versions: []string{"1"}}, {Package: "a", URL: "https://host/{version}"}} {
		if ref, err := bad.Ref(); err == nil && ref.Check() == nil {
			t.Errorf("%+v is accepted: %s", bad, ref)
		}
	}
	for _, bad := range []source.Ref{"manifests:https://host/x", "manifests:https://host/{version}#package=a", "manifests:dir:nowhere"} {
		if _, err := source.Find(context.Background(), at, bad); err == nil {
			t.Errorf("%q is found", bad)
		}
	}
}

// checkFaultyCharts opens charts with a wrong digest, and with a URL that is not encrypted.
func checkFaultyCharts(t *testing.T, c *source.OpenedCatalog) {
	t.Helper()
	for bundle, want := range map[string]string{"lamp-2.0.0": "has digest", "lamp-3.0.0": "http", "lamp-4.0.0": "only sha256", "lamp-5.0.0": "one.tgz: .*; downloading .*two.tgz: ", "lamp-6.0.0": "has no URL"} {
		if _, err := c.Bundle(t.Context(), "lamp", bundle, nil); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %q", bundle, err, want)
		}
	}
}

// TestReleaseTags chooses the files of releases in a Git repository.
func TestReleaseTags(t *testing.T) {
	commit := fstest.MapFS{
		"config/install/kustomization.yaml": {Data: []byte("resources: [../base]\n")},
		"config/base/kustomization.yaml":    {Data: []byte("resources: [a.yaml]\n")},
		"config/base/a.yaml":                {Data: []byte("kind: A\n")},
		"config/remote/kustomization.yaml":  {Data: []byte("resources: [https://example.com/a.yaml]\n")},
		"plain/b.yaml":                      {Data: []byte("kind: B\n")},
		"plain/b.go":                        {Data: []byte("package b\n")},
	}
	at := source.Resolver{
		GitTags: func(context.Context, string) (map[string]string, error) {
			return map[string]string{"lamp-v1.0.0": strings.Repeat("a", 40), "lamp-1.1.0": strings.Repeat("b", 40), "lamp-vague": strings.Repeat("c", 40), "v1.2.0": strings.Repeat("d", 40)}, nil
		},
		GitFiles: func(_ context.Context, _, _, _, _ string, choose func(fs.FS) (map[string][]byte, error)) (fs.FS, error) {
			files, err := choose(commit)
			out := fstest.MapFS{}
			for name, data := range files {
				out[name] = &fstest.MapFile{Data: data}
			}
			return out, err
		},
	}
	for dir, want := range map[string]string{
		"config/install":     "kustomization.yaml repository/config/base/a.yaml repository/config/base/kustomization.yaml repository/config/install/kustomization.yaml",
		"config/base":        "a.yaml kustomization.yaml",
		"plain":              "b.yaml",
		"plain/b.yaml":       "b.yaml",
		"config/base/a.yaml": "a.yaml",
		"":                   "config/base/a.yaml config/base/kustomization.yaml config/install/kustomization.yaml config/remote/kustomization.yaml plain/b.yaml",
		"config/remote":      "error",
		"nowhere":            "error",
	} {
		ref, err := source.Releases{Git: "https://example.com/lamp.git", Path: dir, Tags: "lamp-*"}.Ref()
		check(t, err)
		c, content := openCatalog(t, at, ref)
		if b := content.Packages[0].Bundles; len(b) != 2 || b[0].Name != "lamp-v1.0.0" || b[1].Commit != strings.Repeat("b", 40) {
			t.Fatalf("%+v", b)
		}
		files, err := c.Bundle(t.Context(), "lamp", "lamp-1.1.0", nil)
		got := "error"
		if err == nil {
			var names []string
			check(t, fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					names = append(names, name)
				}
				return err
			}))
			got = strings.Join(names, " ")
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", dir, got, err, want)
		}
		c.Close()
	}
	for _, bad := range []source.Releases{{Git: "git@example.com:lamp"}, {Git: "https://u:p@example.com/lamp"}, {Git: "https://example.com/lamp", Path: "../x"}, {Git: "https://example.com/lamp", Tags: "v"}, {Git: "https://example.com/lamp", URL: "https://example.com/{version}"}, {Path: "x"}} {
		if ref, err := bad.Ref(); err == nil && ref.Check() == nil {
			t.Errorf("%+v is accepted: %s", bad, ref)
		}
	}
}
