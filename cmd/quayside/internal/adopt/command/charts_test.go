package command_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/lockfile"
)

// pushChart pushes a version of the chart lamp as 'helm push' does, and returns its digest.
func pushChart(t *testing.T, repository, version string) string {
	t.Helper()
	text := "apiVersion: v2\nname: lamp\nversion: " + version + "\n"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	check(t, w.WriteHeader(&tar.Header{Name: "lamp/Chart.yaml", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
	_, err := w.Write([]byte(text))
	check(t, errors.Join(err, w.Close(), z.Close()))
	p, err := oci.Artifact{
		ConfigType: "application/vnd.cncf.helm.config.v1+json", Config: []byte(`{"name":"lamp","version":"` + version + `","apiVersion":"v2"}`),
		LayerType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Layer: b.Bytes(),
	}.Pack()
	check(t, err)
	check(t, new(oci.Client).Push(t.Context(), repository+":"+version, p))
	return p.Digest()
}

// TestImportChartVersions imports releases of a chart, installed by Flux or by Argo CD from a registry. It
// combines every installed version with every digest and version range. Each release must be pinned at exactly
// the installed version, or not be imported.
func TestImportChartVersions(t *testing.T) {
	type object = map[string]any
	server := ocitest.New(t)
	repository := server.Host + "/charts/lamp"
	digests := map[string]string{}
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		digests[version] = pushChart(t, repository, version)
	}
	wrong := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	cluster := []object{
		{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": object{"name": "charts", "namespace": "flux-system"}, "spec": object{"type": "oci", "url": "oci://" + server.Host + "/charts"}},
	}
	want := map[string]string{} // bundle and digest by namespace; empty: not imported
	add := func(kind, version, digest, within string, status object) {
		namespace := fmt.Sprintf("n%d", len(want))
		in, err := semver.NewConstraint(within)
		check(t, err)
		want[namespace] = ""
		if known := digests[version]; known != "" && (digest == "" || digest == known) && in.Check(semver.MustParse(version)) {
			want[namespace] = "lamp-" + version + " " + known
		}
		meta := object{"name": "lamp", "namespace": namespace, "generation": 1, "labels": object{"quayside.dev/operator": "true"}}
		spec := object{"chart": object{"spec": object{"chart": "lamp", "version": within, "sourceRef": object{"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}}}}
		apiVersion := "helm.toolkit.fluxcd.io/v2"
		switch kind {
		case "OCIRepository":
			cluster = append(cluster, object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind, "metadata": object{"name": "lamp", "namespace": namespace}, "spec": object{"url": "oci://" + repository, "ref": object{"semver": within}}})
			kind, spec = "HelmRelease", object{"chartRef": object{"kind": kind, "name": "lamp"}}
		case "Application":
			apiVersion, meta["namespace"], meta["name"] = "argoproj.io/v1alpha1", "argocd", namespace
			spec = object{"destination": object{"namespace": namespace}, "source": object{"repoURL": server.Host + "/charts", "chart": "lamp", "targetRevision": within}}
		}
		if history, ok := status["history"].([]object); ok && kind == "HelmRelease" {
			history[0]["name"], history[0]["namespace"] = "lamp", namespace
		}
		cluster = append(cluster, object{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "spec": spec, "status": status})
	}
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0", "1.2.0"} {
		for _, within := range []string{"*", "1.x", "1.0.0", ">=1.1"} {
			installed := object{"chartName": "lamp", "chartVersion": version, "status": "deployed"}
			add("HelmRelease", version, "", within, object{"observedGeneration": 1, "history": []object{installed, {"chartVersion": "1.0.0", "status": "superseded"}}})
			for _, digest := range []string{digests[version], wrong} {
				if digest != "" {
					installed := object{"chartName": "lamp", "chartVersion": version + "+" + digest[7:19], "ociDigest": digest, "status": "deployed"}
					add("OCIRepository", version, digest, within, object{"history": []object{installed}})
				}
			}
			add("Application", version, "", within, object{"sync": object{"status": "Synced", "revision": version}, "history": []object{{"revision": "1.0.0"}}})
			add("Application", version, "", within, object{"sync": object{"status": "OutOfSync", "revision": "2.0.0"}, "history": []object{{"revision": "1.0.0"}, {"revision": version}}})
		}
	}
	dir, cache := t.TempDir(), t.TempDir()
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": cluster})
	check(t, err)
	put(t, dir, "cluster.json", string(text))
	code, said := quayside(t, dir, cache, "import", "cluster.json")
	if code != 1 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	data, err := os.ReadFile(filepath.Join(dir, "quayside.lock"))
	check(t, err)
	lock, err := lockfile.Parse("quayside.lock", data)
	check(t, err)
	imported := 0
	for namespace, bundle := range want {
		pin, _ := lock.Pin(namespace, "lamp")
		if _, digest, _ := strings.Cut(pin.Image, "@"); strings.TrimSpace(pin.Bundle+" "+digest) != bundle {
			t.Errorf("%s: pinned at %s, installed %q", namespace, pin.Bundle, bundle)
		}
		if bundle != "" {
			imported++
		}
	}
	if imported == 0 || imported == len(want) || len(lock.Pins) != imported {
		t.Errorf("imported %d of %d, with %d pins", imported, len(want), len(lock.Pins))
	}
	if t.Failed() {
		t.Log(said)
	}
	mustRun(t, dir, cache, "resolve", "--check", "--offline")
	mustRun(t, dir, cache, "render", "--offline")

	// If the workspace has a catalog with the same location but another name, the import uses this catalog.
	other := t.TempDir()
	put(t, other, "cluster.json", string(text))
	put(t, other, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {catalogs: [{name: own, helm: \"oci://"+repository+"\"}]}\n")
	if code, said := quayside(t, other, cache, "import", "cluster.json"); code != 1 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	data, err = os.ReadFile(filepath.Join(other, "quayside.lock"))
	check(t, err)
	lock, err = lockfile.Parse("quayside.lock", data)
	check(t, err)
	for _, pin := range lock.Pins {
		if pin.Catalog.ID.Name != "own" {
			t.Errorf("%s: pinned from catalog %s", pin.Key(), pin.Catalog.ID)
		}
	}
	if len(lock.Pins) != imported {
		t.Errorf("imported %d, with %d pins", imported, len(lock.Pins))
	}
}
