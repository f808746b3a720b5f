package diff

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

const blockCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    note: |
      spec:
        group: not.this
  labels:
    quayside.dev/package: demo
  name: widgets.demo.io
spec:
  group: demo.io
  names:
    kind: Widget
    plural: widgets
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                x:
                  type: string
                  maxLength: 3
`

func TestReadHead(t *testing.T) {
	h, ok := readHead([]byte(blockCRD))
	want := head{
		ref:    Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "widgets.demo.io"},
		serves: key{group: "demo.io", kind: "Widget"}, labels: map[string]string{"quayside.dev/package": "demo"},
	}
	if !ok || h.ref != want.ref || h.serves != want.serves || !cmp.Equal(h.labels, want.labels) {
		t.Errorf("got %+v, %v", h, ok)
	}
	for name, edit := range map[string][2]string{
		"two documents": {"spec:\n  group", "---\nspec:\n  group"}, "quoted": {"  name: widgets", `  name: "widgets`}, "flow": {"  names:\n", "  names: {a: b}\n"},
		"alias": {"kind: Widget", "kind: *x"}, "no group": {"  group: demo.io\n", ""}, "old": {"k8s.io/v1\n", "k8s.io/v1beta1\n"},
	} {
		if h, ok := readHead([]byte(strings.Replace(blockCRD, edit[0], edit[1], 1))); ok {
			t.Errorf("%s: took %+v", name, h)
		}
	}
}

// TestReadAgreesWithObjects: reading heads only changes no report.
func TestReadAgreesWithObjects(t *testing.T) {
	side := func(name, crd, resource string) Source {
		return Source{Name: name, KubernetesVersion: "1.34", Dir: "rendered", Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: "1"}}, Files: []File{
			{Path: "rendered/crds/demo/widgets.yaml", Data: []byte(crd)},
			{Path: "rendered/operators/ops/demo/serviceaccount-demo.yaml", Data: []byte(account)},
			{Path: "rendered/clusters/prod/generated/patch.yaml", Data: []byte(account + "\nsecrets: []")},
			{Path: "team/widget.yaml", Data: []byte(custom("v1", resource))},
			{Path: "team/broken.yaml", Data: []byte("demo.io/v1: [")},
		}}
	}
	before, after, err := Read(side("main", blockCRD, "{x: abc}"), side("HEAD", blockCRD, "{x: abcd}"))
	if err != nil {
		t.Fatal(err)
	}
	if before.Objects[0].head == nil || before.Objects[0].Operator != "ops/demo" {
		t.Errorf("the definition was parsed, or lost its operator: %+v", before.Objects[0])
	}
	r := compare(t, before, after)
	if d := cmp.Diff([]string{"high resources.rejected spec.x: abcd → -"}, lines(r)); d != "" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "team/broken.yaml") {
		t.Errorf("-want +got\n%s%v", d, r.Notes)
	}
	before, after, err = Read(side("main", blockCRD, "{x: abc}"), side("HEAD", strings.Replace(blockCRD, "maxLength: 3", "maxLength: 2", 1), "{x: abc}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"high resources.rejected spec.x: abc → -", "medium crd.bound-tightened v1 spec.x: 3 → 2"}
	if d := cmp.Diff(want, lines(compare(t, before, after))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	_, _, err = Read(side("main", blockCRD, "{}"), side("HEAD", "a: [", "{}"))
	if err == nil || !strings.HasPrefix(err.Error(), "reading HEAD: rendered/crds/demo/widgets.yaml:1") {
		t.Errorf("got %v", err)
	}
}

// workspace renders the newest version of every bundle of the corpus that
// installs beside the others, but argocd-operator at the given one.
func workspace(b *testing.B, argocd string) Source {
	b.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		b.Skip("QUAYSIDE_CORPUS is not set")
	}
	out := Source{Name: argocd, KubernetesVersion: "1.34", Dir: "."}
	packages, err := os.ReadDir(filepath.Join(root, "bundles"))
	if err != nil {
		b.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range packages {
		versions, err := os.ReadDir(filepath.Join(root, "bundles", p.Name()))
		if err != nil {
			b.Fatal(err)
		}
		version := versions[len(versions)-1].Name()
		if p.Name() == "argocd-operator" {
			version = argocd
		}
		dir := os.DirFS(filepath.Join(root, "bundles", p.Name(), version))
		content, err := bundle.Load(dir)
		if err != nil {
			continue
		}
		pin := lockfile.Pin{Namespace: "ops-" + p.Name(), Package: p.Name(), Version: version, Bundle: content.CSV.Name, InstallMode: catalog.OwnNamespace, WatchNamespaces: []string{"ops-" + p.Name()}}
		got, err := render.All(lockfile.New(nil, []lockfile.Pin{pin}), render.Options{}, func(lockfile.Pin) (fs.FS, error) { return dir, nil })
		if err != nil {
			continue
		}
		out.Pins = append(out.Pins, pin)
		for path, data := range got.Tree.All() {
			if !seen[path] {
				seen[path] = true
				out.Files = append(out.Files, File{path, data})
			}
		}
	}
	return out
}

// BenchmarkWorkspace compares whole workspaces: first one with itself, then one
// large upgrade in it.
func BenchmarkWorkspace(b *testing.B) {
	before, after := workspace(b, "0.14.0"), workspace(b, "0.18.0")
	bytes := 0
	for _, f := range after.Files {
		bytes += len(f.Data)
	}
	run := func(name string, x, y Source) {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(y.Pins)), "operators")
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportAllocs()
			for b.Loop() {
				old, now, err := Read(x, y)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Compare(old, now, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("unchanged", after, after)
	run("upgrade", before, after)
}
