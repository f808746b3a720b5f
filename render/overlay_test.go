package render

import (
	"bytes"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestEveryLevelBuilds builds each kustomization of the golden trees with kustomize's library.
func TestEveryLevelBuilds(t *testing.T) {
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		files := filesOf(res.Tree, nil)
		for name := range files {
			if path.Base(name) != layout.Kustomization {
				continue
			}
			docs, err := build(files, path.Dir(name))
			if err != nil || len(docs) == 0 {
				t.Errorf("%s: %s: %d objects, %v", dir, name, len(docs), err)
			}
		}
		if _, ok := files["crds/"+layout.Kustomization]; ok {
			t.Errorf("%s: the directory of CRDs has a kustomization", dir)
		}
	}
}

// TestOwnerLabels checks every object of every kustomization. All objects have owner labels. Only Deployments
// and CRDs have the version label. Selectors and pod templates have none of these labels.
func TestOwnerLabels(t *testing.T) {
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Objects {
			labels := k8s.Map(r.Object, "metadata", "labels")
			for _, key := range []string{k8s.LabelPackage, k8s.LabelNamespace, k8s.LabelVersion, k8s.LabelManagedBy} {
				global := k8s.IsCRD(r.Object) && key == k8s.LabelNamespace ||
					!k8s.IsCRD(r.Object) && !r.Object.Is("apps", "Deployment") && key == k8s.LabelVersion
				if global != (k8s.Text(labels, key) == "") || global && labels[key] != nil {
					t.Errorf("%s: label %s is %q", r.Path, key, k8s.Text(labels, key))
				}
			}
			if labels["app.kubernetes.io/instance"] != nil {
				t.Errorf("%s: has app.kubernetes.io/instance", r.Path)
			}
			if bytes.Contains(yamlnode.Encode(k8s.Map(r.Object, "spec")), []byte("quayside.dev/")) {
				t.Errorf("%s: an owner label inside spec", r.Path)
			}
		}
	}
}

// TestPodLabels checks that Options.PodLabels adds the labels of the operator to the pod templates, and changes
// nothing else.
func TestPodLabels(t *testing.T) {
	labeled := 0
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		without, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		opt.PodLabels = true
		with, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range with.Objects {
			o := r.Object
			labels := k8s.Map(o, "spec", "template", "metadata", "labels")
			if o.Is("apps", "Deployment") && k8s.Text(o, "metadata", "labels", k8s.LabelPackage) != reporterName {
				labeled++
				for _, key := range []string{k8s.LabelPackage, k8s.LabelNamespace} {
					if want := k8s.Text(o, "metadata", "labels", key); k8s.Text(labels, key) != want || want == "" {
						t.Errorf("%s: label %s of the pods is %q", r.Path, key, k8s.Text(labels, key))
					}
					o = k8s.Without(o, "spec", "template", "metadata", "labels", key)
				}
			}
			if !bytes.Equal(yamlnode.Encode(o), yamlnode.Encode(without.Objects[i].Object)) {
				t.Errorf("%s: another change", r.Path)
			}
		}
	}
	if labeled == 0 {
		t.Error("no Deployments")
	}
}

func TestStreamOverlay(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "beacon", "all-argocd"))
	opt.Clusters[1].Overlays = []string{""}
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	team := map[string]string{
		"lab/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: more.yaml, target: {kind: Deployment, name: beacon-controller}}]\n",
		"lab/more.yaml":          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: beacon-controller, namespace: beacon-system}\nspec: {replicas: 3}\n",
	}
	stream, err := StreamOverlay(res, builder(res, team), "lab")
	if err != nil {
		t.Fatal(err)
	}
	data := stream.YAML()
	for _, want := range []string{"replicas: 3", "mirror.example.com/lamps@sha256:0", "memory: 1Gi", "kind: CustomResourceDefinition", "mirror.example.com/ex/beacon:1.2.0"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%q is not in the stream", want)
		}
	}
	crd, deployment := bytes.Index(data, []byte("\nkind: CustomResourceDefinition")), bytes.Index(data, []byte("\nkind: Deployment"))
	if crd > deployment {
		t.Error("the CRDs are after the Deployments")
	}
	prod, err := StreamOverlay(res, builder(res, nil), "prod")
	if err != nil || bytes.Contains(prod.YAML(), []byte("1Gi")) {
		t.Errorf("prod has the changes of lab, %v", err)
	}
	if _, err := StreamOverlay(res, builder(res, nil), "dev"); err == nil || !strings.Contains(err.Error(), `no cluster "dev" (available: lab, prod)`) {
		t.Errorf("got %v", err)
	}
}

// TestStreamParts splits a stream into files, and selects the objects of an operator. The names of the files
// sort in the order of application.
func TestStreamParts(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "beacon", "all-argocd"))
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := StreamOverlay(res, builder(res, nil), "lab")
	if err != nil {
		t.Fatal(err)
	}
	files, err := stream.Files()
	if err != nil || files.Len() != len(stream) {
		t.Fatalf("%d files for %d objects: %v", files.Len(), len(stream), err)
	}
	var phases []int
	for _, data := range files.All() { // in alphabetical order
		text, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		phases = append(phases, profile.Phase(d.head))
	}
	if !slices.IsSorted(phases) {
		t.Errorf("the phases of the files are %v", phases)
	}
	pin := lock.Pins[0]
	own := stream.Of(pin.Namespace, pin.Package)
	if len(own) == 0 || len(own) >= len(stream) {
		t.Fatalf("%d of %d objects are of %s", len(own), len(stream), pin.Key())
	}
	for _, d := range own {
		if d.head.Kind() != "Namespace" && k8s.Text(k8s.Map(d.head, "metadata", "labels"), k8s.LabelPackage) != pin.Package {
			t.Errorf("%s is not of %s", d.head.Key(), pin.Key())
		}
	}
	if none := stream.Of("other", pin.Package); slices.ContainsFunc(none, func(d document) bool { return !k8s.IsCRD(d.head) }) {
		t.Errorf("in another namespace there are %d objects", len(none))
	}
}
