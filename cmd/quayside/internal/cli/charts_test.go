package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
	"github.com/quayside/quayside/lockfile"
)

// chartArchive returns the archive of a version of the chart lamp. Its Chart.yaml also has the lines in more.
func chartArchive(t *testing.T, version string, more ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: lamp\nversion: " + version + "\n" + strings.Join(more, "\n"),
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp}\ndata: {version: {{ .Chart.Version | quote }}}\n",
	} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: "lamp/" + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}), writeAll(w, text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pushChart pushes a version of the chart lamp as 'helm push' does, and returns its digest.
func pushChart(t *testing.T, ref, version string, more ...string) string {
	t.Helper()
	p, err := oci.Artifact{
		ConfigType: "application/vnd.cncf.helm.config.v1+json", Config: []byte(`{"name":"lamp","version":"` + version + `","apiVersion":"v2"}`),
		LayerType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Layer: chartArchive(t, version, more...),
	}.Pack()
	if err == nil {
		err = new(oci.Client).Push(t.Context(), ref, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Digest()
}

func writeAll(w *tar.Writer, text string) error {
	_, err := w.Write([]byte(text))
	return err
}

// TestHelmRelease installs the chart of a Flux HelmRelease that spec.declarations lists.
func TestHelmRelease(t *testing.T) {
	server := ocitest.New(t)
	dir, cache := t.TempDir(), t.TempDir()
	pushChart(t, server.Host+"/charts/lamp:1.0.0", "1.0.0")
	pushChart(t, server.Host+"/charts/lamp:2.0.0", "2.0.0")
	put(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: flux}\nspec: {declarations: [flux.yaml]}\n")
	put(t, dir, "flux.yaml", `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: lights}
spec: {type: oci, url: "oci://`+server.Host+`/charts", interval: 1h}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: lamp, namespace: lights}
spec:
  interval: 1h
  chart: {spec: {chart: lamp, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}
`)
	mustRunIn(t, dir, cache, "resolve", "--render")
	if got := read(t, dir, "rendered/operators/lights.lamp/configmap-lamp.yaml"); !strings.Contains(got, `version: "1.0.0"`) {
		t.Error(got)
	}
	mustRunIn(t, dir, cache, "verify", "--offline")
}

// TestKubeVersionInRegistry chooses the newest version of a chart that supports the clusters. The supported
// Kubernetes versions are only in the charts, not in the registry's list of tags.
func TestKubeVersionInRegistry(t *testing.T) {
	server := ocitest.New(t)
	dir, cache, repo := t.TempDir(), t.TempDir(), server.Host+"/charts/lamp"
	pushChart(t, repo+":1.0.0", "1.0.0", "kubeVersion: '<1.36.0-0'")
	pushChart(t, repo+":1.1.0", "1.1.0", "kubeVersion: '>=1.31.0-0'")
	for _, version := range []string{"1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0", "1.7.0", "1.8.0", "1.9.0", "1.10.0", "1.11.0", "1.12.0", "1.13.0"} {
		pushChart(t, repo+":"+version, version, "kubeVersion: '>=1.35.0-0'")
	}
	settings := `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec: {kubernetesVersion: "1.34", catalogs: [{name: lamp, helm: "oci://` + repo + `"}], clusters: [{name: a}]}
`
	put(t, dir, "quayside.yaml", settings)
	mustRunIn(t, dir, cache, "add", "lamp", "-n", "lights", "--render")
	checkContains(t, read(t, dir, "quayside.lock"), "bundle: lamp-1.1.0")
	mustRunIn(t, dir, cache, "verify", "--offline")

	// An existing pin is kept although it does not support the older cluster. A new pin must support all clusters.
	put(t, dir, "quayside.yaml", strings.Replace(settings, "{name: a}", "{name: a}, {name: old, kubernetesVersion: '1.30'}", 1))
	checkContains(t, mustRunIn(t, dir, cache, "resolve").stderr, `lamp-1.1.0 needs Kubernetes >=1.31.0-0, cluster "old" has 1.30 [requirement]`)
	check(t, os.Remove(filepath.Join(dir, "quayside.lock")))
	mustRunIn(t, dir, cache, "resolve")
	checkContains(t, read(t, dir, "quayside.lock"), "bundle: lamp-1.0.0")
	put(t, dir, "subscriptions/lamp.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: lamp, namespace: lights}\nspec: {package: lamp, version: '>=1.2'}\n")
	put(t, dir, "quayside.yaml", settings)
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 3 || !strings.Contains(got.stderr, "needs Kubernetes >=1.35.0-0") {
		t.Errorf("without a version that supports the cluster: exit code %d\n%s", got.code, got.stderr)
	}
}

// TestChartApplication installs the chart of an Argo CD Application whose values are a file of the repository.
func TestChartApplication(t *testing.T) {
	server := ocitest.New(t)
	dir, cache := t.TempDir(), t.TempDir()
	pushChart(t, server.Host+"/charts/lamp:1.0.0", "1.0.0")
	pushChart(t, server.Host+"/charts/lamp:2.0.0", "2.0.0")
	put(t, dir, "envs/a/quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: argo}\nspec: {declarations: [../../argo]}\n")
	put(t, dir, "values/lamp.yaml", "token: plain\n")
	put(t, dir, "argo/lamp.yaml", `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: lamp, namespace: argocd, labels: {quayside.dev/operator: "true"}}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: lights}
  sources:
  - {repoURL: "`+server.Host+`/charts", chart: lamp, targetRevision: 1.x, helm: {valueFiles: [$here/values/lamp.yaml], parameters: [{name: replicas, value: "2"}]}}
  - {repoURL: "https://git.example.com/x.git", ref: here}
`)
	gittest.Run(t, dir, "init", "--quiet", "--initial-branch=main")
	got := mustRunIn(t, filepath.Join(dir, "envs/a"), cache, "resolve", "--render")
	checkContains(t, got.stderr, `../../argo/lamp.yaml:8:`, "the value token looks like a secret")
	checkContains(t, read(t, dir, "envs/a/rendered/operators/lights.lamp/configmap-lamp.yaml"), `version: "1.0.0"`)
	checkContains(t, read(t, dir, "envs/a/quayside.lock"), "token: plain", "replicas: 2")
	mustRunIn(t, filepath.Join(dir, "envs/a"), cache, "verify", "--offline")
}

// TestChartsInRegistry pins, verifies, vendors and mirrors a chart in a registry.
func TestChartsInRegistry(t *testing.T) {
	server, key := ocitest.New(t), trusttest.NewKey(t)
	dir, cache, repo := t.TempDir(), t.TempDir(), server.Host+"/charts/lamp"
	pushChart(t, repo+":1.0.0", "1.0.0")
	first := pushChart(t, repo+":1.0.1_build.1", "1.0.1+build.1")
	pushChart(t, repo+":2.0.0-rc.1", "2.0.0-rc.1")
	pushChart(t, repo+":latest", "1.0.0")
	put(t, dir, "cosign.pub", string(key.Public))
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec:
  catalogs: [{name: lamp, helm: "oci://`+repo+`"}]
  trust: [{match: "`+server.Host+`/*", keys: [cosign.pub]}]
`)
	if got := quaysideIn(t, dir, cache, "add", "lamp", "-n", "lights"); got.code != 2 || !strings.Contains(got.stderr, "signature") {
		t.Fatalf("without a signature: exit code %d\n%s", got.code, got.stderr)
	}
	trusttest.PushSimple(t, repo, first, key.Simple(t, first))
	mustRunIn(t, dir, cache, "add", "lamp", "-n", "lights", "--render")
	lock := read(t, dir, "quayside.lock")
	checkContains(t, lock, "bundle: lamp-1.0.1+build.1", "image: "+repo+"@"+first, "format: helm", "identity: key sha256:", "source: helm:oci://"+repo)
	checkContains(t, read(t, dir, "rendered/operators/lights.lamp/configmap-lamp.yaml"), "version: 1.0.1+build.1")
	mustRunIn(t, dir, cache, "verify")
	checkContains(t, mustRunIn(t, dir, cache, "images").stdout, repo+"@"+first)

	// A new version is found by its tag. Without the registry, the last list of tags is used.
	second := pushChart(t, repo+":1.1.0", "1.1.0")
	checkContains(t, mustRunIn(t, dir, cache, "outdated").stdout, "1.0.1+build.1\t1.1.0\t1.1.0\t1.1.0")
	checkContains(t, mustRunIn(t, dir, cache, "outdated", "--offline").stdout, "1.1.0")
	trusttest.PushSimple(t, repo, second, key.Simple(t, second))
	mustRunIn(t, dir, cache, "resolve", "--upgrade")
	mustRunIn(t, dir, cache, "render")
	checkContains(t, read(t, dir, "rendered/operators/lights.lamp/configmap-lamp.yaml"), `version: "1.1.0"`)

	// The vendored chart renders without the registry and the cache.
	mustRunIn(t, dir, cache, "vendor")
	mustRunIn(t, dir, t.TempDir(), "verify", "--offline")
	far := ocitest.New(t)
	mustRunIn(t, dir, cache, "mirror", far.Host+"/far")
	if !strings.Contains(strings.Join(far.Requests(), "\n"), "/charts/lamp/") {
		t.Error("the chart is not mirrored")
	}

	put(t, dir, "quayside.yaml", strings.Replace(read(t, dir, "quayside.yaml"), repo, repo+":1.0.0", 1))
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 2 || !strings.Contains(got.stderr, "without a version") {
		t.Errorf("a catalog with a tag: exit code %d\n%s", got.code, got.stderr)
	}
}

// servedCatalog returns a file-based catalog with one embedded bundle.
func servedCatalog(t *testing.T) string {
	t.Helper()
	csv, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(read(t, lamp, "1.0.0/lamp.clusterserviceversion.yaml"), "lamp", "torch")))
	check(t, err)
	object, err := json.Marshal(csv)
	check(t, err)
	return `{"schema": "olm.package", "name": "torch", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "torch", "name": "stable", "entries": [{"name": "torch.v1.0.0"}]}
{"schema": "olm.bundle", "package": "torch", "name": "torch.v1.0.0", "relatedImages": [{"image": "example.com/torch:1.0.0"}], "properties": [{"type": "olm.package", "value": {"packageName": "torch", "version": "1.0.0"}}, {"type": "olm.bundle.object", "value": {"data": ` + string(object) + `}}]}
`
}

// TestVendorCharts vendors a chart, manifests and an embedded bundle from a web server. The vendored files must
// render offline with an empty cache.
func TestVendorCharts(t *testing.T) {
	dir, cache, site := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, site, "index.yaml", "entries:\n  lamp:\n  - {name: lamp, version: 1.0.0, urls: [lamp-1.0.0.tgz]}\n")
	put(t, site, "lamp-1.0.0.tgz", string(chartArchive(t, "1.0.0")))
	put(t, site, "desk-1.0.0.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: desk}\n")
	put(t, site, "all", servedCatalog(t))
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: charts}
spec:
  catalogs:
  - {name: served, source: "`+server.URL+`/all"}
  - {name: charts, helm: "`+server.URL+`"}
  - {name: releases, manifests: {package: desk, url: "`+server.URL+`/desk-{version}.yaml", versions: [1.0.0]}}
`)
	mustRunIn(t, dir, cache, "add", "lamp", "desk", "torch", "-n", "lights", "--render")
	checkContains(t, mustRunIn(t, dir, cache, "catalog", "list", "--catalog", server.URL+"/all").stdout, "torch")
	if got := quaysideIn(t, dir, t.TempDir(), "render", "--check", "--offline"); got.code != 2 {
		t.Errorf("without vendored contents: exit code %d\n%s", got.code, got.stderr)
	}
	mustRunIn(t, dir, cache, "vendor")
	mustRunIn(t, dir, t.TempDir(), "render", "--check", "--offline")
	mustRunIn(t, dir, t.TempDir(), "vendor", "--check", "--offline")

	// Without the catalogs, verify compares the lock with the vendored contents.
	checkContains(t, mustRunIn(t, dir, t.TempDir(), "verify", "--offline").stderr, "not checked: lights/lamp is from a catalog that was not read: channel, content digest")
	lock, err := lockfile.Parse("quayside.lock", []byte(read(t, dir, "quayside.lock")))
	check(t, err)
	for field, change := range map[string]func(*lockfile.Pin){
		"bundle":     func(p *lockfile.Pin) { p.Bundle = "lamp-1.0.1" },
		"version":    func(p *lockfile.Pin) { p.Version = "1.0.1" },
		"properties": func(p *lockfile.Pin) { p.Properties = []catalog.Property{catalog.PackageProperty("lamp", "1.0.1")} },
	} {
		pins := slices.Clone(lock.Pins)
		change(&pins[slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Package == "lamp" })])
		put(t, dir, "quayside.lock", string(lockfile.Format(lock.With(pins))))
		got := quaysideIn(t, dir, t.TempDir(), "verify", "--offline")
		if want := "lights/lamp differs from its bundle: " + field; got.code != 1 || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("another %s: exit code %d\n%s%s", field, got.code, got.stdout, got.stderr)
		}
	}
}

// TestChartIdentity installs an archive that is another version than the index says.
func TestChartIdentity(t *testing.T) {
	dir, cache, site := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, site, "index.yaml", "entries:\n  lamp:\n  - {name: lamp, version: v1.0.0, urls: [lamp.tgz]}\n  - {name: lamp, version: 1.0.1, urls: [lamp.tgz]}\n")
	put(t, site, "lamp.tgz", string(chartArchive(t, "1.0.0")))
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	put(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: charts}\nspec: {catalogs: [{name: charts, helm: \""+server.URL+"\"}]}\n")
	if got := mustRunIn(t, dir, cache, "add", "lamp@1.0.0", "-n", "lights", "--render"); strings.Contains(got.stderr, "chart-identity") {
		t.Errorf("the same version:\n%s", got.stderr)
	}
	checkContains(t, mustRunIn(t, dir, cache, "add", "lamp@1.0.1", "-n", "lights", "--render").stderr,
		"warning: the content is chart lamp 1.0.0, but the catalog lists it as lamp 1.0.1 [chart-identity]")
}

// TestReleasesInGit pins, renders, upgrades and vendors releases in a Git repository.
func TestReleasesInGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	root, dir, cache := t.TempDir(), t.TempDir(), t.TempDir()
	server := httptest.NewServer(&cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	defer server.Close()
	repo := filepath.Join(root, "lamp-operator")
	put(t, repo, "config/installation/kustomization.yaml", "resources: [../base]\n")
	put(t, repo, "config/base/kustomization.yaml", "resources: [a.yaml]\n")
	put(t, repo, "plain/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: desk}\n")
	put(t, repo, "main.go", "package main\n")
	gittest.Run(t, repo, "init", "--quiet", "--initial-branch=main")
	release := func(version string) string {
		put(t, repo, "config/base/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp}\ndata: {version: v"+version+"}\n")
		gittest.Run(t, repo, "add", "--all")
		gittest.Run(t, repo, "commit", "--quiet", "-m", version)
		gittest.Run(t, repo, "tag", "-f", "-a", "-m", version, "v"+version)
		return strings.TrimSpace(gittest.Run(t, repo, "rev-parse", "HEAD"))
	}
	first := release("1.0.0")
	gittest.Run(t, repo, "tag", "verse")
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: releases}
spec:
  catalogs:
  - {name: lamp, manifests: {git: "`+server.URL+`/lamp-operator/.git", package: lamp, path: config/installation}}
  - {name: desk, manifests: {git: "`+server.URL+`/lamp-operator/.git", package: desk, path: plain/b.yaml, tags: "v*"}}
`)
	mustRunIn(t, dir, cache, "add", "lamp", "desk", "-n", "lights", "--render")
	checkContains(t, read(t, dir, "quayside.lock"), "bundle: lamp-1.0.0", "commit: "+first, "format: manifests", `source: "manifests:git+http://`)
	checkContains(t, read(t, dir, "rendered/operators/lights.lamp/configmap-lamp.yaml"), "version: v1.0.0")
	mustRunIn(t, dir, cache, "verify")
	mustRunIn(t, dir, cache, "resolve", "--check", "--offline")

	// A new tag is a new version.
	second := release("1.1.0")
	checkContains(t, mustRunIn(t, dir, cache, "outdated").stdout, "1.0.0\t1.1.0")
	mustRunIn(t, dir, cache, "resolve", "--upgrade")
	mustRunIn(t, dir, cache, "render")
	checkContains(t, read(t, dir, "quayside.lock"), "commit: "+second)
	checkContains(t, read(t, dir, "rendered/operators/lights.lamp/configmap-lamp.yaml"), "version: v1.1.0")

	// The vendored files render without the server and the cache.
	mustRunIn(t, dir, cache, "vendor")
	mustRunIn(t, dir, t.TempDir(), "verify", "--offline")

	// If a tag moves to another commit, no pin changes.
	before := read(t, dir, "quayside.lock")
	put(t, repo, "main.go", "package lamp\n")
	moved := release("1.1.0")
	if moved == second {
		t.Fatal("the tag has not moved")
	}
	mustRunIn(t, dir, cache, "resolve")
	if after := read(t, dir, "quayside.lock"); strings.Contains(after, moved) || !strings.Contains(before, second) {
		t.Errorf("the pin is at the moved tag:\n%s", after)
	}

	put(t, dir, "quayside.yaml", strings.Replace(read(t, dir, "quayside.yaml"), "http://", "ssh://", 1))
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 2 || !strings.Contains(got.stderr, "is not an https:// URL") {
		t.Errorf("another protocol: exit code %d\n%s", got.code, got.stderr)
	}
}
