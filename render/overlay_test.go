package render

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestEveryLevelBuilds builds each kustomization of the golden trees with
// kustomize's own library.
func TestEveryLevelBuilds(t *testing.T) {
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		files := withUserFiles(res.Tree, nil)
		for name := range files {
			if path.Base(name) != kustomizationFile {
				continue
			}
			docs, err := build(files, path.Dir(name))
			if err != nil || len(docs) == 0 {
				t.Errorf("%s: %s: %d objects, %v", dir, name, len(docs), err)
			}
		}
		if _, ok := files["crds/"+kustomizationFile]; ok {
			t.Errorf("%s: the CRDs' directory has a kustomization", dir)
		}
	}
}

// TestOwnerLabels looks at every object of every level: owner labels on
// all, the version on Deployments and CRDs alone, none in a selector or a pod
// template.
func TestOwnerLabels(t *testing.T) {
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Objects {
			labels := kobj.Map(r.Object, "metadata", "labels")
			for _, key := range []string{kobj.LabelPackage, kobj.LabelNamespace, kobj.LabelVersion, kobj.LabelManagedBy} {
				global := kobj.IsCRD(r.Object) && key == kobj.LabelNamespace ||
					!kobj.IsCRD(r.Object) && !r.Object.Is("apps", "Deployment") && key == kobj.LabelVersion
				if global != (kobj.Text(labels, key) == "") || global && labels[key] != nil {
					t.Errorf("%s: label %s is %q", r.Path, key, kobj.Text(labels, key))
				}
			}
			if labels["app.kubernetes.io/instance"] != nil {
				t.Errorf("%s: has app.kubernetes.io/instance", r.Path)
			}
			if bytes.Contains(yamlnode.Encode(kobj.Map(r.Object, "spec")), []byte("quayside.dev/")) {
				t.Errorf("%s: an owner label inside spec", r.Path)
			}
		}
	}
}

func TestStreamOverlay(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "beacon", "all-argocd"))
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	disk := treeOf(t, map[string]string{
		"clusters/lab/kustomization.yaml": "resources: [generated]\npatches: [{path: more.yaml}]\n",
		"clusters/lab/more.yaml":          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: beacon-controller, namespace: beacon-system}\nspec: {replicas: 3}\n",
		"operators/stray.yaml":            "not: ours",
	})
	data, err := StreamOverlay(res, builder(res, disk), "lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replicas: 3", "mirror.example.com/lamps@sha256:0", "memory: 1Gi", "kind: CustomResourceDefinition", "mirror.example.com/ex/beacon:1.2.0"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%q is not in the stream", want)
		}
	}
	crd, deployment := bytes.Index(data, []byte("\nkind: CustomResourceDefinition")), bytes.Index(data, []byte("\nkind: Deployment"))
	if crd > deployment {
		t.Error("the CRDs come after the Deployments")
	}
	prod, err := StreamOverlay(res, builder(res, nil), "prod")
	if err != nil || bytes.Contains(prod, []byte("1Gi")) {
		t.Errorf("prod has what is lab's, %v", err)
	}
	if _, err := StreamOverlay(res, builder(res, nil), "dev"); err == nil || !strings.Contains(err.Error(), `no cluster "dev" (have lab, prod)`) {
		t.Errorf("got %v", err)
	}
}

func treeOf(t *testing.T, files map[string]string) *filetree.Tree {
	t.Helper()
	out := filetree.New()
	for name, data := range files {
		if err := out.Add(name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestUserPatchSurvives renders over a tree that the user has patched, at
// another version.
func TestUserPatchSurvives(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "lantern", "own-plain"))
	out := filepath.Join(t.TempDir(), "rendered")
	write := func() {
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		if err := filetree.Write(out, res.Tree); err != nil {
			t.Fatal(err)
		}
	}
	write()
	mine := []byte("resources: [generated]\nnameSuffix: -mine\n")
	file := filepath.Join(out, "clusters", "default", kustomizationFile)
	if err := os.WriteFile(file, mine, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range lock.Pins {
		lock.Pins[i].Version = "0.9.5"
	}
	write()
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, mine) {
		t.Errorf("the user's file is now %q, %v", got, err)
	}
	have, err := filetree.Read(os.DirFS(out))
	if err != nil {
		t.Fatal(err)
	}
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	if changes := filetree.Diff(have, res.Tree); len(changes) > 0 {
		t.Errorf("out of step: %v", changes)
	}
}
