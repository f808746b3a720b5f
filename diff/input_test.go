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
	"github.com/quayside/quayside/internal/k8s"
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
	pins := []lockfile.Pin{{Namespace: "ops", Package: "demo"}}
	for name, edit := range map[string][2]string{
		"plain": {}, "quoted": {"  name: widgets.demo.io", `  name: "widgets.demo.io"`}, "flow": {"  names:\n    kind: Widget\n    plural: widgets\n", "  names: {kind: Widget, plural: widgets}\n"},
	} {
		o, ok := parseHead(File{Path: "x.yaml", Data: []byte(strings.Replace(blockCRD, edit[0], edit[1], 1))}, pins)
		if want := (Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "widgets.demo.io"}); !ok || o.Ref() != want || o.Operator != "ops/demo" || o.Path != "x.yaml" {
			t.Errorf("%s: got %+v, %v", name, o, ok)
		}
		if o.definedKind() != (k8s.Key{Group: "demo.io", Kind: "Widget"}) || k8s.At(o.Content, "spec", "versions") != nil {
			t.Errorf("%s: the parsed head is %v", name, o.Content)
		}
		if len(k8s.ParseCRD(o.Whole()).Versions) != 1 {
			t.Errorf("%s: the full object cannot be loaded", name)
		}
	}
	for name, edit := range map[string][2]string{
		"two documents": {"spec:\n  group", "---\nspec:\n  group"}, "an end": {"      schema:", "...\n"}, "alias": {"kind: Widget", "kind: *x"},
		"no group": {"  group: demo.io\n", ""}, "no name": {"  name: widgets.demo.io\n", ""}, "no versions": {"  versions:\n", "  Versions:\n"},
		"in a text": {"metadata:\n", "metadata:\n  x: \"\n  versions:\n  \"\n"}, "other kind": {"CustomResourceDefinition\n", "Custom # kind: CustomResourceDefinition\n"},
	} {
		if o, ok := parseHead(File{Path: "x.yaml", Data: []byte(strings.Replace(blockCRD, edit[0], edit[1], 1))}, pins); ok {
			t.Errorf("%s: accepted as %+v", name, o)
		}
	}
}

// TestReadAgreesWithObjects checks that parsing only the heads of CRDs does not change a report.
func TestReadAgreesWithObjects(t *testing.T) {
	side := func(name, crd, resource string) Input {
		return Input{Name: name, Revision: name, KubernetesVersion: "1.34", Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: "1"}}, Tree: []File{
			{Path: "rendered/crds/demo/widgets.yaml", Data: []byte(crd)},
			{Path: "rendered/operators/ops/demo/serviceaccount-demo.yaml", Data: []byte(account)},
		}, Own: []File{
			{Path: "team/widget.yaml", Data: []byte(custom("v1", resource))},
			{Path: "team/broken.yaml", Data: []byte("demo.io/v1: [")},
		}}
	}
	tight := strings.Replace(blockCRD, "maxLength: 3", "maxLength: 2", 1)
	broken := "invalid YAML files were not compared: team/broken.yaml"
	for name, c := range map[string]struct {
		before, after Input
		cut           bool
		want          []string
	}{
		"the resource":   {side("main", blockCRD, "{x: abc}"), side("HEAD", blockCRD, "{x: abcd}"), true, []string{"high resources.rejected spec.x: abcd → -"}},
		"the definition": {side("main", blockCRD, "{x: abc}"), side("HEAD", tight, "{x: abc}"), false, []string{"high resources.rejected spec.x: abc → -", "medium crd.bound-tightened v1 spec.x: 3 → 2"}},
		"nothing":        {side("main", blockCRD, "{x: abc}"), side("HEAD", blockCRD, "{x: abc}"), true, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, err := Read(c.before, c.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []State{before, after} {
				if o := s.Objects[0]; o.headOnly != c.cut || o.Operator != "ops/demo" {
					t.Errorf("%s: the CRD is %+v", s.Name, o)
				}
			}
			r, err := Compare(before, after, CompareOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, lines(r)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff([]string{broken}, r.Notes); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			for s, from := range map[*State]Input{&before: c.before, &after: c.after} {
				if s.Objects, err = Objects(from.Tree, from.Pins); err != nil {
					t.Fatal(err)
				}
			}
			whole, err := Compare(before, after, CompareOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := indentJSON(r.Document())
			want, _ := indentJSON(whole.Document())
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("-parsed in full +parsed heads\n%s", d)
			}
		})
	}
	_, _, err := Read(side("main", blockCRD, "{}"), side("HEAD", "a: [", "{}"))
	if err == nil || !strings.HasPrefix(err.Error(), "HEAD: rendered/crds/demo/widgets.yaml:1") {
		t.Errorf("got %v", err)
	}
}

// workspace renders the operators of the corpus that can be installed together, each in its newest
// version. Only argocd-operator has the given version.
func workspace(b *testing.B, argocd string) Input {
	b.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		b.Skip("QUAYSIDE_CORPUS is not set")
	}
	out := Input{Name: argocd, KubernetesVersion: "1.34"}
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
		got, err := render.All(lockfile.New([]lockfile.Pin{pin}), render.Options{}, func(lockfile.Pin) (fs.FS, error) { return dir, nil })
		if err != nil {
			continue
		}
		out.Pins = append(out.Pins, pin)
		for path, data := range got.Tree.All() {
			if !seen[path] {
				seen[path] = true
				out.Tree = append(out.Tree, File{path, data})
			}
		}
	}
	out.Tree = BaseFiles(".", out.Tree)
	return out
}

// BenchmarkWorkspace compares a large workspace with itself, and with one large upgrade.
func BenchmarkWorkspace(b *testing.B) {
	before, after := workspace(b, "0.14.0"), workspace(b, "0.18.0")
	bytes := 0
	for _, f := range after.Tree {
		bytes += len(f.Data)
	}
	run := func(name string, x, y Input) {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(y.Pins)), "operators")
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportAllocs()
			for b.Loop() {
				old, now, err := Read(x, y)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Compare(old, now, CompareOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("unchanged", after, after)
	run("upgrade", before, after)
}
