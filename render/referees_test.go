package render

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// refereeCase is a golden case of operator-controller, from its
// test/regression/convert/generate-manifests.go.
type refereeCase struct {
	bundle, options  string
	namespace, watch string
	config           string // deploymentConfig, in JSON
}

func refereeCases() []refereeCase {
	const argocd = "argocd-operator.v0.6.0"
	return []refereeCase{
		{bundle: argocd, options: "all-namespaces", namespace: "argocd-system"},
		{bundle: argocd, options: "single-namespace", namespace: "argocd-system", watch: "argocd-watch"},
		{bundle: argocd, options: "own-namespace", namespace: "argocd-system", watch: "argocd-system"},
		{bundle: "webhook-operator.v0.0.5", options: "all-webhook-types", namespace: "webhook-system"},
		{bundle: argocd, options: "with-empty-affinity", namespace: "argocd-system", config: `{"affinity":{}}`},
		{bundle: argocd, options: "with-empty-affinity-subtype", namespace: "argocd-system", config: `{"affinity":{"nodeAffinity":{}}}`},
		{bundle: argocd, options: "with-deploymentconfig-options", namespace: "argocd-system", config: `{
			"nodeSelector": {"kubernetes.io/os": "linux"},
			"tolerations": [
				{"key": "some/key", "operator": "Equal", "effect": "NoSchedule"},
				{"key": "someother/key", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120}],
			"resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
			"env": [{"name": "CUSTOM_ENV_VAR", "value": "custom-value"}, {"name": "LOG_LEVEL", "value": "debug"}],
			"envFrom": [{"prefix": "test"}, {"configMapRef": {"name": "configmapForTest"}}, {"secretRef": {"name": "secretForTest"}}],
			"volumes": [{"name": "test-configmap-volume", "configMap": {"name": "testVolumeConfigMap"}}, {"name": "test-emptydir-volume", "emptyDir": {}}],
			"volumeMounts": [{"name": "test-configmap-volume", "mountPath": "/test-volume-mount", "readOnly": true}],
			"affinity": {
				"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
					"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
					"matchFields": [{"key": "key", "operator": "In", "values": ["val1", "val2"]}]}]}},
				"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
					"labelSelector": {"matchLabels": {"app.kubernetes.io/name": "test-app"}}, "topologyKey": "topKey", "namespaces": ["test", "test2"]}]},
				"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": {
					"labelSelector": {"matchLabels": {"app.kubernetes.io/name": "test-app-2"}}, "topologyKey": "topKey2"}}]}},
			"annotations": {"foo": "bar", "testkey": "testval"}}`},
	}
}

// TestGoldensOfV1 compares rendered objects with OLM v1's own golden files, field by field, as TestConformsToV1
// does. testdata/conformance/goldens.tsv lists the accepted differences, each with its rule.
func TestGoldensOfV1(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no golden files to compare with")
	}
	dir := unpackArchive(t, filepath.Join(root, "referees", "render-v1.tar.zst"))
	listed := expectedDifferences(t, "goldens")
	found, err := filepath.Glob(filepath.Join(dir, "render-v1", "expected-manifests", "*", "*"))
	if err != nil || len(found) != len(refereeCases()) {
		t.Errorf("%d golden directories, but %d cases: %v", len(found), len(refereeCases()), err)
	}
	var objects, differ, agreed int
	for _, c := range refereeCases() {
		name := c.bundle + "/" + c.options
		t.Run(name, func(t *testing.T) {
			b := loadBundle(t, filepath.Join(dir, "render-v1", "bundles", c.bundle))
			var watch []string
			if c.watch != "" {
				watch = []string{c.watch}
			}
			got, _, err := Manifests(b, lockfile.Pin{
				Namespace: c.namespace, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name,
				InstallMode: catalog.ModeFor(c.namespace, watch), WatchNamespaces: watch, Config: []byte(c.config),
			}, Options{CSVAnnotations: true})
			if err != nil {
				t.Fatal(err)
			}
			var want []Object
			files, err := filepath.Glob(filepath.Join(dir, "render-v1", "expected-manifests", c.bundle, c.options, "*.yaml"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no objects: %v", err)
			}
			for _, file := range files {
				want = append(want, readObjects(t, file)...)
			}
			shipped := map[string]bool{}
			for _, o := range b.Objects {
				shipped[o.Kind()+" "+o.Name()] = true
			}
			generated := func(o Object) bool { return o.Is(k8s.OLMGroup, "OperatorCondition") || hasGeneratedName(o, shipped) }
			differences := compareObjects(
				normalise(slices.DeleteFunc(slices.Clone(got), generated)),
				normalise(slices.DeleteFunc(slices.Clone(want), generated)))
			objects, differ = objects+len(want), differ+len(differences)
			if len(differences) == 0 {
				agreed++
			}
			reportDifferences(t, differences, listed[name])
			delete(listed, name)
			compareGrants(t, c.namespace, got, want)
		})
	}
	for name := range listed {
		t.Errorf("goldens.tsv: there is no case %s", name)
	}
	cases := len(refereeCases())
	row := fmt.Sprintf("| %d | %d | %d | `render/testdata/conformance/goldens.tsv` |", cases, agreed, cases-agreed)
	if page, err := os.ReadFile("../docs/contributing/developing.md"); err != nil || !strings.Contains(string(page), row) {
		t.Errorf("docs/contributing/developing.md does not contain %q: %v", row, err)
	}
	t.Logf("%d cases with %d objects; %d fields differ for a reason", len(refereeCases()), objects, differ)
}

// unpackArchive unpacks an archive and returns the directory.
func unpackArchive(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	dir := t.TempDir()
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) || strings.HasPrefix(filepath.Base(h.Name), "._") {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		data, err := io.ReadAll(files)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
