package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// orderAnnotations returns the annotations for the order of application. Their values are different for separate
// pieces and for a cluster as one unit.
func orderAnnotations() []string {
	return []string{"argocd.argoproj.io/sync-wave", "quayside.dev/stage"}
}

// withoutOrder returns the objects of documents as text, by key, without their orderAnnotations.
func withoutOrder(t testingT, docs []document) map[Key]string {
	t.Helper()
	out := map[Key]string{}
	for _, d := range docs {
		data, err := canonicalObject(d)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if _, twice := out[d.head.Key()]; twice {
			t.Errorf("duplicate object %s", d.head.Key())
		}
		out[d.head.Key()] = data
	}
	return out
}

func canonicalObject(d document) (string, error) {
	o := d.head
	for _, key := range orderAnnotations() {
		o = k8s.Without(o, "metadata", "annotations", key)
	}
	if len(k8s.Map(o, "metadata", "annotations")) == 0 {
		o = k8s.Without(o, "metadata", "annotations")
	}
	data, err := json.Marshal(o)
	return string(data), err
}

// checkUnion renders a lock with separate pieces, and with each cluster as one unit. The pieces of a cluster
// together must have the same objects as its single build. The reporter is a separate piece in both cases.
func checkUnion(t testingT, lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error), overlays map[string]string) {
	t.Helper()
	pieces, err := All(lock, opt, open)
	if err != nil {
		t.Fatalf("%v", err)
	}
	whole, err := All(lock, asOneUnit(opt), open)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, c := range pieces.tree.opt.Clusters {
		parted, one := partsOf(t, pieces, overlays, c.Name), partsOf(t, whole, overlays, c.Name)
		if dirs := slices.DeleteFunc(slices.Collect(maps.Keys(one.pieces)), func(dir string) bool { return path.Base(dir) == layout.Reporter }); len(dirs) != 1 {
			t.Errorf("cluster %s: the single build has several pieces: %v", c.Name, slices.Sorted(maps.Keys(one.pieces)))
		}
		if d := cmp.Diff(withoutOrder(t, one.operators()), withoutOrder(t, parted.operators())); d != "" {
			t.Errorf("cluster %s: the pieces differ from the single build (-one +pieces):\n%s", c.Name, d)
		}
	}
}

// drawOverlays draws a user's overlays of a cluster: a Component for all pieces, Components for single pieces,
// and additional resources. It returns the names of the overlays, and their files.
func drawOverlays(t *rapid.T, cluster string, pieces []string, targets []Object) ([]string, map[string]string) {
	files := map[string]string{}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{"", "resources"}, pieces...)), 0, 3, rapid.ID).Draw(t, "overlays of "+cluster)
	for _, name := range names {
		dir := path.Join(cluster, name)
		if name == "resources" {
			files[path.Join(dir, layout.Kustomization)] = "resources: [mine.yaml]\n"
			files[path.Join(dir, "mine.yaml")] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: team, labels: {of: us}}, data: {a: b}}\n"
			continue
		}
		var of []Object
		for _, o := range targets {
			if name == "" || pieceOf(o) == name {
				of = append(of, o)
			}
		}
		files[path.Join(dir, layout.Kustomization)] = drawComponent(t, name, of)
	}
	return names, files
}

// pieceOf returns the name of the piece of an object, by its labels.
func pieceOf(o Object) string {
	return k8s.Text(o, "metadata", "labels", k8s.LabelNamespace) + "." + k8s.Text(o, "metadata", "labels", k8s.LabelPackage)
}

// drawComponent draws a Component that changes some objects. Its selectors may also match other objects.
func drawComponent(t *rapid.T, of string, objects []Object) string {
	fields := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
	var patches []any
	for i := range rapid.IntRange(0, 3).Draw(t, "patches") {
		o := rapid.SampledFrom(objects).Draw(t, "target")
		target := map[string]any{"kind": o.Kind()}
		for key, value := range map[string]any{
			"name": o.Name(), "group": o.Group(), "labelSelector": k8s.LabelPackage + "=" + k8s.Text(o, "metadata", "labels", k8s.LabelPackage),
		} {
			if value != "" && rapid.Bool().Draw(t, key) {
				target[key] = value
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "any kind") == 0 {
			target = map[string]any{"labelSelector": k8s.LabelManagedBy + "=" + k8s.Manager}
		}
		value, _ := json.Marshal(fmt.Sprintf("%s %d", of, i))
		patches = append(patches, map[string]any{"target": target, "patch": rapid.SampledFrom([]string{
			`[{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]`,
			`{"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "annotations": {"note": ` + string(value) + `}}}`,
			`{"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "labels": {"` + k8s.LabelVersion + `": null}}}`,
		}).Draw(t, "patch")})
	}
	if patches != nil {
		fields["patches"] = patches
	}
	if rapid.Bool().Draw(t, "images") {
		fields["images"] = []any{map[string]any{"name": rapid.SampledFrom([]string{"i", "j", "none"}).Draw(t, "image"), "newName": "mirror.example.com/" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "new"), "newTag": "v2"}}
	}
	if rapid.Bool().Draw(t, "labels") {
		// Each Component has its own key. kustomize uses one value for all occurrences of a label, so a second
		// transformer with the same key would also change selectors.
		fields["labels"] = []any{map[string]any{"pairs": map[string]any{"team" + strings.ReplaceAll(of, ".", "-"): "of"}, "includeSelectors": rapid.Bool().Draw(t, "selectors"), "includeTemplates": rapid.Bool().Draw(t, "templates")}}
	}
	if len(fields) == 2 || rapid.Bool().Draw(t, "annotations") { // kustomize rejects an empty Component
		fields["commonAnnotations"] = map[string]any{"contact": "team of " + of}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newOverlappingBundles returns bundles with a common object, and a bundle that ships its own Namespace.
func newOverlappingBundles() map[string]fstest.MapFS {
	shared := "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: shared}, value: 1}"
	settings := "{kind: ConfigMap, apiVersion: v1, metadata: {name: settings}, data: {a: '${b}'}}"
	return map[string]fstest.MapFS{
		"a/x": newBundle("x", "1.0.0", "v1", shared, settings), "a/y": newNeighborBundle("y"), "b/x": newBundle("x", "1.1.0", "v1"),
		"c/z": newBundle("z", "1.0.0", "v1", shared, "{kind: Namespace, apiVersion: v1, metadata: {name: c}}", "{kind: Service, apiVersion: v1, metadata: {name: s}, spec: {selector: {a: b}, ports: [{port: 80}]}}"),
	}
}

// TestUnionOfPieces draws operators with requirements, and the overlays, configs and operators of clusters, and
// calls checkUnion.
func TestUnionOfPieces(t *testing.T) {
	bundles := newOverlappingBundles()
	names := slices.Sorted(maps.Keys(bundles))
	rapid.Check(t, func(t *rapid.T) {
		lock := newLock(bundles, nil, nil)
		for i := range lock.Pins {
			for _, other := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 1, rapid.ID).Draw(t, "needs") {
				if other != lock.Pins[i].Key() {
					lock.Pins[i].Requires = []lockfile.Requirement{{Pin: other, Requirement: "olm.package.required"}}
				}
			}
		}
		opt := engineOptions(rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux}).Draw(t, "profile"))
		opt.GitOps.Clusters = nil
		opt.Reporter = rapid.SampledFrom([]*Reporter{nil, reporterOptions()}).Draw(t, "reporter")
		opt.Mirrors = rapid.SampledFrom([][]Mirror{nil, {{Source: "i", Mirror: "j"}}}).Draw(t, "mirrors")
		plain, err := All(lock, opt, openBundles(bundles))
		if err != nil {
			t.Fatal(err)
		}
		overlays := map[string]string{}
		for i := range rapid.IntRange(1, 2).Draw(t, "clusters") {
			c := profile.Cluster{Name: fmt.Sprintf("c%d", i), ArgoCDCluster: profile.ArgoCDCluster{Server: fmt.Sprintf("https://c%d", i)}, FluxCluster: profile.FluxCluster{KubeConfig: fmt.Sprintf("c%d", i)}}
			c.Operators = rapid.SampledFrom([][]string{nil, {"*/x"}, {"a/*"}, {"b/x", "c/*"}, {"q/q"}}).Draw(t, "operators")
			c.Config = []byte(rapid.SampledFrom([]string{"", `{"env":[{"name":"A","value":"b"}]}`, `{"nodeSelector":{"a":"b"},"annotations":{"a":"b"}}`}).Draw(t, "config"))
			var targets []Object
			var pieces []string
			for _, r := range plain.Objects {
				if gets, _ := c.Gets(strings.Replace(pieceOf(r.Object), ".", "/", 1)); gets && strings.HasPrefix(r.Path, layout.Operators) {
					targets = append(targets, r.Object)
				}
			}
			for _, name := range names {
				if gets, _ := c.Gets(name); gets {
					pieces = append(pieces, strings.Replace(name, "/", ".", 1))
				}
			}
			if targets != nil {
				var files map[string]string
				c.Overlays, files = drawOverlays(t, c.Name, pieces, targets)
				maps.Copy(overlays, files)
			}
			opt.Clusters = append(opt.Clusters, c)
		}
		checkUnion(t, lock, opt, openBundles(bundles), overlays)
	})
}

// TestUnionOfPiecesInCorpus is like TestUnionOfPieces, but with real operators that can be rendered together.
// It also draws overlays.
func TestUnionOfPiecesInCorpus(t *testing.T) {
	every := 10
	if *whole {
		every = 1
	}
	lock, open := corpusLock(t, every)
	opt := engineOptions(profile.ArgoCD)
	opt.GitOps.Clusters = nil
	plain, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	var targets []Object
	var pieces []string
	for _, r := range plain.Objects {
		if strings.HasPrefix(r.Path, layout.Operators) {
			targets = append(targets, r.Object)
		}
	}
	for _, p := range lock.Pins {
		pieces = append(pieces, pieceName(p))
	}
	once := false
	rapid.Check(t, func(r *rapid.T) { // one check
		if once {
			return
		}
		once = true
		overlays := map[string]string{}
		for i, c := range []profile.Cluster{{Name: "a"}, {Name: "b", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://b"}, Operators: []string{"ns1*/*"}, Config: []byte(`{"env":[{"name":"A","value":"b"}]}`)}} {
			overlays["a/kustomization.yaml"] = drawComponent(r, "", targets)
			overlays["a/resources/kustomization.yaml"] = "resources: [mine.yaml]\n"
			overlays["a/resources/mine.yaml"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: team, labels: {of: us}}}\n"
			c.Overlays = []string{"", "resources"}[:2*(1-i)]
			for _, name := range pieces {
				var of []Object
				for _, o := range targets {
					if pieceOf(o) == name {
						of = append(of, o)
					}
				}
				if gets, _ := c.Gets(strings.Replace(name, ".", "/", 1)); gets && len(of) > 0 && rapid.Bool().Draw(r, name) {
					c.Overlays = append(c.Overlays, name)
					overlays[path.Join(c.Name, name, layout.Kustomization)] = drawComponent(r, name, of)
				}
			}
			opt.Clusters = append(opt.Clusters, c)
		}
		checkUnion(r, lock, opt, open, overlays)
	})
	t.Logf("%d operators, %d objects", len(lock.Pins), len(plain.Objects))
}

// corpusLock returns a lock with the newest bundle of every nth package of the corpus, each in its own
// namespace. It omits a bundle that cannot be rendered together with the earlier bundles.
func corpusLock(tb testing.TB, nth int) (*lockfile.File, func(lockfile.Pin) (fs.FS, error)) {
	tb.Helper()
	newest := map[string]string{}
	for _, dir := range corpusBundles(tb) {
		newest[filepath.Base(filepath.Dir(dir))] = dir
	}
	dirs := map[string]string{}
	open := func(p lockfile.Pin) (fs.FS, error) { return os.DirFS(dirs[p.Namespace]), nil }
	lock := &lockfile.File{}
	known := map[string]bool{}
	for i, name := range slices.Sorted(maps.Keys(newest)) {
		if i%nth != 0 {
			continue
		}
		b, err := bundle.Load(os.DirFS(newest[name]))
		if err != nil {
			continue
		}
		pin := pinOf(b, fmt.Sprintf("ns%d", i))
		dirs[pin.Namespace] = newest[name]
		more := lockfile.New(append(slices.Clone(lock.Pins), pin))
		if res, err := All(more, Options{ObjectsOnly: true, AcceptedCRDs: known}, open); err == nil {
			addAccepted(known, res)
			lock = more
		}
	}
	return lock, open
}
