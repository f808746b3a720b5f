package render

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

// installable fails unless a current API server would take the CRD.
func installable(t *testing.T, crd Object) {
	t.Helper()
	if crd.APIVersion() != "apiextensions.k8s.io/v1" {
		t.Errorf("%s is at %s", crd.Name(), crd.APIVersion())
		return
	}
	text, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	var in apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatalf("%s: %v", crd.Name(), err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&in)
	var out apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&in, &out, nil); err != nil {
		t.Fatalf("%s: %v", crd.Name(), err)
	}
	out.Status.StoredVersions = []string{}
	for _, v := range out.Spec.Versions {
		if v.Storage {
			out.Status.StoredVersions = append(out.Status.StoredVersions, v.Name)
		}
	}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &out) {
		t.Errorf("%s: %v", crd.Name(), err)
	}
}

func TestConvertedCRDsAreInstallable(t *testing.T) {
	installable(t, operatorConditionCRD())
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
		b := load(t, dir)
		objects, _, err := Manifests(b, pinOf(b, "op-ns"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if kobj.IsCRD(o) {
				installable(t, o)
			}
		}
	}
}

// TestPackageManifestsOfEtcd renders the etcd operator from the format before
// bundles: a CSV and v1beta1 CRDs, with no metadata.
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
			if kobj.IsCRD(r.Object) {
				installable(t, r.Object)
			}
			if strings.Contains(r.Object.APIVersion(), "beta") && !strings.HasPrefix(r.Object.Group(), "etcd.") {
				t.Errorf("%s: %s is at %s", version, r.Path, r.Object.APIVersion())
			}
		}
	}
}

func TestConvertCRDRefusesALoss(t *testing.T) {
	crd := func(schema map[string]any) Object {
		o := kobj.New("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "", "as.b.io")
		o["spec"] = map[string]any{
			"group": "b.io", "version": "v1", "names": map[string]any{"kind": "A", "plural": "as"},
			"preserveUnknownFields": false, "validation": map[string]any{"openAPIV3Schema": schema},
		}
		return o
	}
	cases := map[string]struct {
		schema map[string]any
		want   string
	}{
		"error/ref":      {map[string]any{"properties": map[string]any{"a": map[string]any{"$ref": "#/x"}}}, "$ref"},
		"error/untyped":  {map[string]any{"properties": map[string]any{"a": map[string]any{"oneOf": []any{map[string]any{"type": "string"}}}}}, "openAPIV3Schema.a: its type is not said"},
		"error/closed":   {map[string]any{"properties": map[string]any{"a": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}}}, "additionalProperties: false"},
		"error/no names": {nil, "spec.names is missing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := crd(c.schema)
			if c.schema == nil {
				delete(kobj.Map(o, "spec"), "names")
			}
			if _, err := convertCRD(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
