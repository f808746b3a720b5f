package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
)

// checkInstallable checks that a current API server accepts the CRD.
func checkInstallable(t *testing.T, crd Object) {
	t.Helper()
	if crd.APIVersion() != "apiextensions.k8s.io/v1" {
		t.Errorf("%s is at %s", crd.Name(), crd.APIVersion())
		return
	}
	for _, f := range admit.CheckCRD(crd) {
		t.Errorf("%s: %s: %s", crd.Name(), f.Field, f.Message)
	}
}

func TestConvertedCRDsAreInstallable(t *testing.T) {
	checkInstallable(t, operatorConditionCRD())
	dirs := []string{filepath.Join("testdata", "lantern", "bundle"), filepath.Join("testdata", "beacon", "bundle")}
	if root := os.Getenv("QUAYSIDE_CORPUS"); root != "" {
		for _, glob := range []string{"etcd/*", "apicurio-registry/*", "registry-operator/*", "dbaas-operator/*"} {
			more, err := filepath.Glob(filepath.Join(root, "bundles", glob))
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, more...)
		}
	}
	for _, dir := range dirs {
		b := loadBundle(t, dir)
		objects, _, err := Manifests(b, pinOf(b, "op-ns"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if k8s.IsCRD(o) {
				checkInstallable(t, o)
			}
		}
	}
}

// TestPackageManifestsOfEtcd renders the etcd operator in the package manifest format, the predecessor
// of bundles: a CSV and v1beta1 CRDs without metadata.
func TestPackageManifestsOfEtcd(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	for _, version := range []string{"0.6.1", "0.9.0", "0.9.2", "0.9.4", "0.9.4-clusterwide"} {
		files, err := filepath.Glob(filepath.Join(root, "package-manifests", "etcd", version, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", version, err)
		}
		var manifests [][]byte
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			manifests = append(manifests, data)
		}
		fsys, err := bundle.FSFromObjects(manifests, "etcd")
		if err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Load(fsys)
		if err != nil {
			t.Fatal(err)
		}
		lock := &lockfile.File{Pins: []lockfile.Pin{pinOf(b, "my-etcd")}}
		res, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return fsys, nil })
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		for _, r := range res.Objects {
			if k8s.IsCRD(r.Object) {
				checkInstallable(t, r.Object)
			}
			if strings.Contains(r.Object.APIVersion(), "beta") && !strings.HasPrefix(r.Object.Group(), "etcd.") {
				t.Errorf("%s: %s is at %s", version, r.Path, r.Object.APIVersion())
			}
		}
	}
}

// TestOldCRD converts a CRD of 2019 with fields that v1 no longer has.
func TestOldCRD(t *testing.T) {
	crd := func(schema map[string]any) *bundle.Bundle {
		return &bundle.Bundle{Package: "keda", CSV: &bundle.CSV{Name: "keda.v1.0.0", Version: "1.0.0"}, Objects: []bundle.ManifestObject{{File: "manifests/a.yaml", Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "as.keda.k8s.io", "odd": "removed"},
			"spec": map[string]any{
				"group": "keda.k8s.io", "version": "v1", "names": map[string]any{"kind": "A", "plural": "as"},
				"validation": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"spec": schema}}},
			},
			"status": map[string]any{"storedVersions": []any{}},
		}}}}
	}
	b := crd(map[string]any{"type": "array", "x-one": "1", "x-two": "2", "x-three": "3", "x-four": "4"})
	for _, version := range []string{"1.16", "1.21"} { // versions that serve v1beta1 and v1
		objects, _, err := Manifests(b, pinOf(b, "op-ns"), Options{KubernetesVersion: version})
		if err != nil {
			t.Fatalf("Kubernetes %s: %v", version, err)
		}
		checkInstallable(t, objects[slices.IndexFunc(objects, k8s.IsCRD)])
	}
	objects, warnings, err := Manifests(b, pinOf(b, "op-ns"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := objects[slices.IndexFunc(objects, k8s.IsCRD)]
	checkInstallable(t, got)
	if approval := k8s.Text(got, "metadata", "annotations", "api-approved.kubernetes.io"); !strings.HasPrefix(approval, "unapproved, ") {
		t.Errorf("approval %q", approval)
	}
	if k8s.Text(got, "metadata", "odd") != "" || got["status"] != nil {
		t.Errorf("outside of the spec: got %v", got)
	}
	const at = "spec.validation.openAPIV3Schema.properties.spec."
	want := "CustomResourceDefinition as.keda.k8s.io: fields without an equivalent in apiextensions.k8s.io/v1 omitted: " +
		at + "x-four; " + at + "x-one; " + at + "x-three; and 1 more"
	removed := "CustomResourceDefinition.apiextensions.k8s.io as.keda.k8s.io: removed fields that apiextensions.k8s.io/v1 does not have: metadata.odd"
	for _, want := range []string{want, removed} {
		if !slices.ContainsFunc(warnings, func(w diag.Warning) bool { return w.Msg == want && w.Pos.File == "manifests/a.yaml" }) {
			t.Errorf("got %v, want %q", warnings, want)
		}
	}
	b = crd(map[string]any{"anyOf": []any{map[string]any{"type": "array"}, map[string]any{"type": "object"}}})
	if _, _, err := Manifests(b, pinOf(b, "op-ns"), Options{}); err == nil || !strings.Contains(err.Error(), "manifests/a.yaml") || !strings.Contains(err.Error(), "without loss: spec: type array inside anyOf") {
		t.Errorf("got %v", err)
	}
}
