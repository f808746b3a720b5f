package render

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// newWidgetBundle returns a bundle with two CRDs with the storage version v1alpha1.
func newWidgetBundle() fs.FS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	definition := func(plural, kind string) *fstest.MapFile {
		return file("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + ".example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n" +
			"  names: {kind: " + kind + ", listKind: " + kind + "List, plural: " + plural + ", singular: " + strings.ToLower(kind) + "}\n  versions:\n" +
			"  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n" +
			"  - {name: v1alpha2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n" +
			"  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n")
	}
	return fstest.MapFS{
		"manifests/widgets.yaml": definition("widgets", "Widget"),
		"manifests/gadgets.yaml": definition("gadgets", "Gadget"),
		"manifests/csv.yaml": file("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: widget.v1.0.0}\nspec:\n  version: 1.0.0\n" +
			"  installModes: [{type: AllNamespaces, supported: true}]\n  install:\n    strategy: deployment\n    spec:\n      deployments:\n      - name: widget\n        spec:\n" +
			"          selector: {matchLabels: {app: widget}}\n          template: {metadata: {labels: {app: widget}}, spec: {containers: [{name: widget, image: 'example.com/widget:1'}]}}\n"),
		"metadata/annotations.yaml": file("annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n" +
			"  operators.operatorframework.io.bundle.metadata.v1: metadata/\n  operators.operatorframework.io.bundle.package.v1: widget\n"),
	}
}

// newStorageLock returns a lock with the operator in two namespaces, in a stage of storage migration.
func newStorageLock(state lockfile.StorageStage, objects ...lockfile.StoredVersions) *lockfile.File {
	pin := lockfile.Pin{Package: "widget", Version: "1.0.0", Bundle: "widget.v1.0.0", InstallMode: "AllNamespaces"}
	a, b := pin, pin
	a.Namespace, b.Namespace = "a", "b"
	b.Storage = &lockfile.Storage{Stage: state, Objects: objects} // one pin suffices, because a CRD is cluster-scoped
	return lockfile.New([]lockfile.Pin{a, b})
}

func newStoredVersions(definition, from string) lockfile.StoredVersions {
	return lockfile.StoredVersions{Definition: definition + ".example.com", From: from, To: "v1"}
}

// TestStorageStages renders an operator in each stage of storage migration.
func TestStorageStages(t *testing.T) {
	both := []lockfile.StoredVersions{newStoredVersions("widgets", "v1alpha1"), newStoredVersions("widgets", "v1alpha2"), newStoredVersions("gadgets", "v1alpha1")}
	names := []string{"gadgets.example.com-without-v1alpha1", "widgets.example.com-without-v1alpha1-v1alpha2"}
	one := []profile.Cluster{{Name: "one"}}
	for about, c := range map[string]struct {
		state   lockfile.StorageStage
		objects []lockfile.StoredVersions
		opt     Options
		stores  map[string]string // storage version by CRD
		want    []string          // StorageVersionMigrations
		api     string
	}{
		"stored in the other version": {lockfile.StorageStore, both, Options{KubernetesVersion: "1.37", Clusters: one}, map[string]string{"widgets.example.com": "v1", "gadgets.example.com": "v1"}, nil, ""},
		"one of two definitions":      {lockfile.StorageStore, both[:1], Options{}, map[string]string{"widgets.example.com": "v1", "gadgets.example.com": "v1alpha1"}, nil, ""},
		"migrated":                    {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.37", Clusters: one}, map[string]string{"widgets.example.com": "v1", "gadgets.example.com": "v1"}, names, "v1"},
		"newer Kubernetes":            {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.40.1", Clusters: one}, nil, names, "v1"},
		"version of the cluster":      {lockfile.StorageMigrate, both, Options{Clusters: []profile.Cluster{{Name: "one", KubernetesVersion: "1.37"}}}, nil, names, "v1"},
		"a cluster without the API":   {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.37", Clusters: []profile.Cluster{{Name: "one"}, {Name: "two", KubernetesVersion: "1.36"}}}, nil, nil, ""},
		"Kubernetes too old":          {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.36", Clusters: one}, nil, nil, ""},
		"Kubernetes unknown":          {lockfile.StorageMigrate, both, Options{Clusters: one}, nil, nil, ""},
		"API set to none":             {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.37", StorageMigration: "none", Clusters: one}, nil, nil, ""},
		"API set to the beta":         {lockfile.StorageMigrate, both, Options{KubernetesVersion: "1.36", StorageMigration: "v1beta1", Clusters: one}, nil, names, "v1beta1"},
	} {
		t.Run(about, func(t *testing.T) {
			res, err := All(newStorageLock(c.state, c.objects...), c.opt, func(lockfile.Pin) (fs.FS, error) { return newWidgetBundle(), nil })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range res.Objects {
				o := r.Object
				if k8s.IsCRD(o) && c.stores[o.Name()] != "" {
					checkInstallable(t, o)
					if v, _ := k8s.ParseCRD(o).Stored(); v.Name != c.stores[o.Name()] {
						t.Errorf("the storage version of %s is %s", o.Name(), v.Name)
					}
				}
				if o.Kind() != "StorageVersionMigration" {
					continue
				}
				got = append(got, o.Name())
				plural, _, _ := strings.Cut(o.Name(), ".")
				if want := map[string]any{"group": "example.com", "resource": plural}; !cmp.Equal(want, k8s.Map(o, "spec", "resource")) || o.APIVersion() != "storagemigration.k8s.io/"+c.api {
					t.Errorf("got %v", o)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("migrations (-want +got):\n%s", d)
			}
		})
	}
}

// TestStorageOfMissingCRDs checks the error for CRDs or versions that the bundle does not have.
func TestStorageOfMissingCRDs(t *testing.T) {
	for _, s := range []lockfile.StoredVersions{
		newStoredVersions("others", "v1alpha1"), newStoredVersions("widgets", "v0"), {Definition: "widgets.example.com", From: "v1alpha1", To: "v2"},
	} {
		_, err := All(newStorageLock(lockfile.StorageStore, s), Options{}, func(lockfile.Pin) (fs.FS, error) { return newWidgetBundle(), nil })
		if err == nil || !strings.Contains(err.Error(), "storage: the bundle has no CustomResourceDefinition") {
			t.Errorf("%v: %v", s, err)
		}
	}
}
