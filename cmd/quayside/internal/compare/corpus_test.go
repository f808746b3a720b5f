package compare_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

var wholeCorpus = flag.Bool("whole", false, "take every bundle of the corpus, not a few") //nolint:gochecknoglobals // a flag

// TestWhatAClusterGetsOfRealOperators draws random overlays for the trees of real operators: of three
// operators, or with -whole of all. The report of diff must list exactly the differences between the kustomize
// builds of two overlays.
func TestWhatAClusterGetsOfRealOperators(t *testing.T) {
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" || testing.Short() {
		t.Skip("QUAYSIDE_CORPUS is not set, or the tests are to be short")
	}
	names, steps := []string{"rabbitmq-cluster-operator/2.22.3", "cert-manager/1.16.5", "prometheus/0.56.3"}, 3
	if *wholeCorpus {
		names, steps = nil, 12
		dirs, err := filepath.Glob(filepath.Join(corpus, "bundles", "*", "*"))
		check(t, err)
		for _, dir := range dirs {
			names = append(names, filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir))
		}
	}
	trees := t.TempDir()
	p := open(t, t.TempDir(), &noteLogger{})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(trees, filepath.FromSlash(name))
			dirs := [2]string{filepath.Join(root, "before"), filepath.Join(root, "after")}
			for _, dir := range dirs {
				renderBundle(t, os.DirFS(filepath.Join(corpus, "bundles", filepath.FromSlash(name))), dir)
			}
			var builds [2]map[string][]byte
			var err error
			builds[0], err = buildCluster(dirs[0], "one")
			check(t, err)
			overlays, checked := overlayGenerator(builds[0]), 0
			for i := range steps {
				text := overlays.Example(i)
				check(t, os.WriteFile(filepath.Join(dirs[1], "clusters", "one", "all", "kustomization.yaml"), []byte(text), 0o600))
				if builds[1], err = buildCluster(dirs[1], "one"); err != nil {
					t.Logf("kustomize does not build it: %v\n%s", err, text)
					continue
				}
				checkReported(t, p, dirs, builds)
				if checked++; t.Failed() {
					t.Fatalf("by\n%s", text)
				}
				dirs[0], dirs[1], builds[0] = dirs[1], dirs[0], builds[1]
			}
			if checked == 0 {
				t.Error("kustomize builds none of the overlays")
			}
		})
	}
}

// renderBundle writes the tree of one bundle, for one cluster.
func renderBundle(t *testing.T, content fs.FS, dir string) {
	t.Helper()
	b, err := bundle.Load(content)
	check(t, err)
	pin := lockfile.Pin{Namespace: "op-ns", Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: "og", InstallMode: catalog.AllNamespaces}
	if !slices.Contains(b.CSV.Modes, catalog.AllNamespaces) {
		pin.InstallMode, pin.WatchNamespaces = catalog.OwnNamespace, []string{pin.Namespace}
	}
	res, err := render.All(lockfile.New([]lockfile.Pin{pin}), render.Options{Clusters: []profile.Cluster{{Name: "one"}}}, func(lockfile.Pin) (fs.FS, error) { return content, nil })
	if err != nil {
		t.Skipf("not rendered: %v", err)
	}
	for name, data := range res.Tree.All() {
		name = filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(name), 0o700))
		check(t, os.WriteFile(name, data, 0o600))
	}
	// A cluster with an overlay has its own directory.
	check(t, os.WriteFile(filepath.Join(dir, "clusters.yaml"), []byte("- {cluster: one, prefix: clusters/one/}\n"), 0o600))
	check(t, os.MkdirAll(filepath.Join(dir, "clusters", "one", "all"), 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "clusters", "one", "all", "kustomization.yaml"), []byte("resources: [../../../all]\n"), 0o600))
}

// overlayGenerator returns a generator of kustomizations for the objects of a build. The
// kustomizations contain patches of single objects, and fields that change many objects.
func overlayGenerator(built map[string][]byte) *rapid.Generator[string] {
	var targets, images []string
	for _, data := range built {
		var o map[string]any
		if json.Unmarshal(data, &o) != nil {
			continue
		}
		targets = append(targets, fmt.Sprintf("{kind: %s, name: %q}", k8s.Text(o, "kind"), strings.ReplaceAll(k8s.Text(o, "metadata", "name"), ".", `\.`)))
		for _, c := range k8s.Items(k8s.Map(o, "spec", "template", "spec"), "containers") {
			image, _, _ := strings.Cut(k8s.Text(c, "image"), "@")
			if slash, colon := strings.LastIndex(image, "/"), strings.LastIndex(image, ":"); colon > slash {
				image = image[:colon]
			}
			images = append(images, image)
		}
	}
	slices.Sort(targets)
	slices.Sort(images)
	return rapid.Custom(func(t *rapid.T) string {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		var k strings.Builder
		k.WriteString("resources: [../../../all]\n")
		if n := rapid.IntRange(0, 4).Draw(t, "patches"); n > 0 {
			k.WriteString("patches:\n")
			for range n {
				fmt.Fprintf(&k, "- target: %s\n  patch: %q\n", pick("target", targets...), pick("patch",
					"{apiVersion: v1, kind: Any, metadata: {name: any, annotations: {note: a}}}",
					"{apiVersion: v1, kind: Any, metadata: {name: any, labels: {team: a}}}",
					"{apiVersion: v1, kind: Any, metadata: {name: any}, $patch: delete}",
					"- {op: add, path: /metadata/finalizers, value: [example.com/kept]}",
					"- {op: remove, path: /metadata/labels}"))
			}
		}
		if len(images) > 0 {
			fmt.Fprintf(&k, "images: [{name: %q, %s}]\n", pick("image", images...), pick("to", "newTag: '9'", "newName: evil.example.com/i", "digest: 'sha256:"+strings.Repeat("0", 64)+"'"))
		}
		k.WriteString(pick("prefix", "", "", "", "namePrefix: x-\n") + pick("labels", "", "", "labels: [{pairs: {team: b}}]\n", "labels: [{pairs: {team: b}, includeSelectors: true}]\n"))
		k.WriteString(pick("annotations", "", "", "commonAnnotations: {note: b}\n") + pick("namespace", "", "", "", "namespace: other\n"))
		k.WriteString(pick("generator", "", "", "configMapGenerator: [{name: made, literals: [a=1]}]\n"))
		return k.String()
	})
}
