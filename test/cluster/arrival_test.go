package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// storedOtherwise lists the rendered fields that the API server stores with another value.
var storedOtherwise = []struct{ object, field, reason string }{}

// TestArrival applies all objects of real bundles and charts as rendered for Argo CD, one bundle or chart after
// the other. The API server must accept every object whose API it has. The stored object must have every
// rendered field unchanged, except the fields in storedOtherwise, and a second apply must change nothing. The
// test applies a tenth of the bundles and charts, or all of them if QUAYSIDE_ARRIVAL is "all".
func TestArrival(t *testing.T) {
	t.Parallel() // has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	part := uint32(10)
	if os.Getenv("QUAYSIDE_ARRIVAL") == "all" {
		part = 1
	}
	cluster := harness.Start(t, harness.Options{APIOnly: true, NoWebhooks: true})
	a := arrival{applier: applier(t, cluster), seen: map[string]int{}}
	program := build(t)
	buildIn(t, "quayside-charts", "./cmd/quayside-charts")
	a.kept = names(prerequisites(t, cluster, program, corpus))
	bundles, charts := corpusBundles(t, corpus, part), corpusCharts(t, corpus, part)
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		t.Run("bundles/"+name, func(t *testing.T) { a.test(t, bundleAlone(t, newWorkspace(t, program, nil), bundles[name], name)) })
	}
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		t.Run("charts/"+name, func(t *testing.T) { a.test(t, chartAlone(t, newWorkspace(t, program, nil), charts[name], name)) })
	}
	t.Logf("%d operators with %d objects, of which %d need an API that the cluster lacks; exceptions:", a.operators, a.objects, a.unserved)
	for _, line := range slices.Sorted(maps.Keys(a.seen)) {
		t.Logf("%5d %s", a.seen[line], line)
	}
}

// arrival applies operators one after the other, and counts exceptions.
type arrival struct {
	applier                      *harness.Applier
	kept                         []string // objects that the cluster had before
	operators, objects, unserved int
	seen                         map[string]int // exceptions, by their lines in the report
}

// test applies the objects of an operator twice, and deletes them.
func (a *arrival) test(t *testing.T, q quayside) {
	objects, stderr := q.renderedWithNeeds(t)
	a.operators++
	ctx := within(t, 3*time.Minute)
	i := installation{applier: a.applier, kept: a.kept}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		err := i.remove(ctx)
		if err == nil { // the next operator may have the same CRDs
			crds := only(i.objects, func(o *unstructured.Unstructured) bool { return isCRD(o) && !slices.Contains(a.kept, harness.Name(o)) })
			err = a.applier.AwaitGone(ctx, crds)
		}
		if err != nil {
			t.Errorf("removing it: %v", err)
		}
	})
	a.createNamespaces(ctx, t, objects)
	for _, o := range objects {
		a.objects++
		if isCRD(o) || a.served(t, o) {
			if a.apply(ctx, t, o, objects, stderr) {
				i.objects = append(i.objects, o)
			}
		} else {
			a.unserved++
		}
	}
	for _, o := range i.objects {
		i.checkUnchanged(ctx, t, o)
	}
}

// createNamespaces creates the namespaces of the objects, unless the objects include the Namespace.
func (a *arrival) createNamespaces(ctx context.Context, t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(o.GetNamespace())
		if o.GetNamespace() == "" || slices.Contains(names(objects), harness.Name(namespace)) {
			continue
		}
		if _, err := a.applier.Apply(ctx, []*unstructured.Unstructured{namespace}); err != nil {
			t.Fatal(err)
		}
	}
}

// served reports whether the cluster has the API of an object.
func (a *arrival) served(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	err := a.applier.Serves(o)
	if err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

// apply applies an object and compares it with the stored object. It returns false if the API server rejects
// the object.
func (a *arrival) apply(ctx context.Context, t *testing.T, o *unstructured.Unstructured, all []*unstructured.Unstructured, stderr string) bool {
	done, err := a.applier.Apply(ctx, []*unstructured.Unstructured{o})
	if err != nil && strings.Contains(err.Error(), "field not declared in schema") && !strings.HasSuffix(o.GroupVersionKind().Group, ".k8s.io") && strings.Contains(o.GroupVersionKind().Group, ".") && !slices.ContainsFunc(all, func(crd *unstructured.Unstructured) bool { return isCRD(crd) && defines(crd, o) }) {
		a.seen["objects of an API of which the cluster has the CRD of another operator, in another version"]++
		return false
	}
	for range 120 { // the API server learns the fields of a changed CRD after it serves it
		if err == nil || !strings.Contains(err.Error(), "field not declared in schema") {
			break
		}
		time.Sleep(500 * time.Millisecond)
		done, err = a.applier.Apply(ctx, []*unstructured.Unstructured{o})
	}
	if err != nil && strings.Contains(err.Error(), "could not find the requested resource") {
		a.applier.Forget() // the API of an operator before this one
		if !a.served(t, o) {
			a.unserved++
			return false
		}
	}
	if err != nil {
		if strings.Contains(stderr, "will reject "+harness.Name(o)+",") {
			a.seen["objects that their own CRD does not permit, as render reports"]++
		} else {
			t.Errorf("%v\n%s", err, stderr)
		}
		return false
	}
	for _, d := range storedDifferences("", o.Object, done[0].Object.Object) {
		if field, _, _ := strings.Cut(d, ":"); !a.isException(o, field) {
			t.Errorf("%s: stored otherwise than rendered: %s", harness.Name(o), d)
		}
	}
	return true
}

// defines reports whether a CRD defines the kind of an object.
func defines(crd, o *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: group, Kind: kind}
}

// isException reports whether storedOtherwise lists a field of an object, and counts the exception if it does.
func (a *arrival) isException(o *unstructured.Unstructured, field string) bool {
	for _, e := range storedOtherwise {
		if regexp.MustCompile("^("+e.object+")$").MatchString(harness.Name(o)) && regexp.MustCompile("^("+e.field+")$").MatchString(field) {
			a.seen[fmt.Sprintf("%s: %s: %s", e.object, e.field, e.reason)]++
			return true
		}
	}
	return false
}

// storedDifferences returns the fields of a rendered value that are missing or different in the stored value,
// as "field: difference". It ignores additional fields in stored mappings.
func storedDifferences(at string, rendered, stored any) []string {
	switch r := rendered.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		if !ok {
			break
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(r)) {
			field := strings.TrimPrefix(at+"."+strings.ReplaceAll(key, ":", "_"), ".")
			if v, has := s[key]; has {
				out = append(out, storedDifferences(field, r[key], v)...)
			} else {
				out = append(out, fmt.Sprintf("%s: not stored, rendered %v", field, r[key]))
			}
		}
		return out
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) != len(r) {
			break
		}
		var out []string
		for i := range r {
			out = append(out, storedDifferences(at+"[]", r[i], s[i])...)
		}
		return out
	}
	if reflect.DeepEqual(rendered, stored) || fmt.Sprint(rendered) == fmt.Sprint(stored) && reflect.TypeOf(rendered).Kind() != reflect.String {
		return nil
	}
	return []string{fmt.Sprintf("%s: rendered %T %.200v, stored %T %.200v", at, rendered, rendered, stored, stored)}
}

// corpusBundles maps about one in n bundles ("package/version") to a catalog directory with only this bundle.
func corpusBundles(t *testing.T, corpus string, n uint32) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, dir := range unpack(t, filepath.Join(corpus, "latest.tar.zst"), n) {
		out[name] = filepath.Join(dir, "bundles")
	}
	dirs, err := filepath.Glob(filepath.Join(corpus, "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles in %q: %v", corpus, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
		if !inSample(name, n) {
			continue
		}
		out[name] = t.TempDir()
		if err := os.CopyFS(filepath.Join(out[name], name), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// bundleAlone makes q a workspace that is resolved to the only bundle of a catalog. It removes the bundle's
// requirements.
func bundleAlone(t *testing.T, q quayside, dir, name string) quayside {
	t.Helper()
	dropRequirements(t, filepath.Join(dir, name))
	pkg, _, _ := strings.Cut(name, "/")
	q.declareOnly(t, fmt.Sprintf("namespace: olm, source: %q", "bundles:"+filepath.Join(dir, pkg)), packageOf(t, filepath.Join(dir, name), pkg), namespaceOf(name), "")
	if _, stderr, code := q.run(t, "resolve", "--offline"); code != 0 {
		t.Skipf("refused: exit code %d\n%s", code, stderr)
	}
	return q
}

// declareOnly writes settings with a catalog, and a Subscription to a package. more contains further fields of the
// Subscription. Each operator has its own namespace: without controllers, a deleted namespace is never removed.
func (q quayside) declareOnly(t *testing.T, catalog, pkg, namespace, more string) {
	t.Helper()
	q.write(t, "quayside.yaml", fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: corpus, %s}]
  kubernetesVersion: "1.36"
  requirements: warn
  provides: {apis: [cert-manager.io/v1, monitoring.coreos.com/v1]}
  profile: argocd
`, catalog))
	q.write(t, "subscriptions/operator.yaml", fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: operator, namespace: %q}
spec: {package: %q%s}
`, namespace, pkg, more))
}

// namespaceOf returns a namespace for an operator.
func namespaceOf(name string) string {
	return "n-" + strings.NewReplacer("/", "-", ".", "-", "+", "-").Replace(strings.ToLower(name))
}

// packageOf returns the package of a bundle, which may differ from the name of its directory.
func packageOf(t *testing.T, bundle, directory string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundle, "metadata", "annotations.yaml"))
	if err != nil {
		return directory
	}
	var file struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(text, &file); err != nil || file.Annotations["operators.operatorframework.io.bundle.package.v1"] == "" {
		return directory
	}
	return file.Annotations["operators.operatorframework.io.bundle.package.v1"]
}

// dropRequirements removes the requirements of a bundle, which do not change its objects.
func dropRequirements(t *testing.T, bundle string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(bundle, "m*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "dependencies.yaml" || filepath.Base(file) == "properties.yaml" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var csv map[string]any
		if !strings.Contains(string(text), "ClusterServiceVersion") || yaml.Unmarshal(text, &csv) != nil || csv["kind"] != "ClusterServiceVersion" {
			continue
		}
		for _, list := range []string{"customresourcedefinitions", "apiservicedefinitions"} {
			unstructured.RemoveNestedField(csv, "spec", list, "required")
		}
		if text, err = yaml.Marshal(csv); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// corpusCharts returns about one in n charts of the corpus. The result maps "chart-version" to a directory with
// the chart's archive and the files of values to try with the chart.
func corpusCharts(t *testing.T, corpus string, n uint32) map[string]string {
	t.Helper()
	dir := t.TempDir()
	eachFile(t, filepath.Join(corpus, "charts", "charts.tar.zst"), func(name, text string) {
		if path.Ext(name) == ".tgz" || strings.HasSuffix(name, ".values.yaml") || path.Base(name) == "provenance.tsv" {
			quayside{dir: dir}.write(t, name, text)
		}
	})
	provenance, err := os.ReadFile(filepath.Join(dir, "charts", "provenance.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(provenance)) {
		columns := strings.Split(line, "\t") // operator, chart, version, file
		name := strings.TrimSuffix(columns[3], ".tgz")
		if name == "file" || !inSample(name, n) {
			continue
		}
		out[name] = t.TempDir()
		if err := os.Rename(filepath.Join(dir, "charts", "repo", columns[3]), filepath.Join(out[name], columns[3])); err != nil {
			t.Fatal(err)
		}
		for _, values := range []string{"required", "alt"} {
			text, err := os.ReadFile(filepath.Join(dir, "charts", "golden", columns[0], columns[2], values+".values.yaml"))
			if err == nil {
				quayside{dir: out[name]}.write(t, values+".yaml", string(text))
			}
		}
	}
	return out
}

// chartAlone makes q a workspace that is resolved to the only chart in a directory. It tries the required
// values, no values and the alternative values, in this order, until the chart can be rendered.
func chartAlone(t *testing.T, q quayside, dir, name string) quayside {
	t.Helper()
	catalog := fmt.Sprintf("helm: %q", "dir:"+dir)
	pkg := name[:regexp.MustCompile(`-v?[0-9]+\.`).FindStringIndex(name)[0]]
	var faults string
	for _, values := range []string{"required", "", "alt"} {
		more := ", catalog: corpus"
		if values != "" {
			text, err := os.ReadFile(filepath.Join(dir, values+".yaml"))
			if err != nil {
				continue
			}
			more += fmt.Sprintf(", values: %s", asJSON(t, text))
		}
		q.declareOnly(t, catalog, pkg, namespaceOf("chart-"+name), more)
		_, stderr, code := q.run(t, "resolve", "--offline")
		if code == 0 {
			_, stderr, code = q.run(t, "render", "--offline")
		}
		if code == 0 || strings.Contains(stderr, "[missing-") || strings.Contains(stderr, "[pod-security]") {
			return q
		}
		faults += stderr
	}
	t.Skipf("refused:\n%s", faults)
	return q
}

// TestFortyOperators installs forty real operators at once, each as a piece, with Argo CD and with Flux. It
// runs only if QUAYSIDE_ARRIVAL is "all". Five minutes after all objects are applied, no object is out of sync
// in Argo CD, and neither tool has written an object again.
func TestFortyOperators(t *testing.T) {
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" || os.Getenv("QUAYSIDE_ARRIVAL") != "all" {
		t.Skip("QUAYSIDE_CORPUS is not set, or QUAYSIDE_ARRIVAL is not all")
	}
	for name, engine := range map[string]pieceEngine{"argocd": argoEngine{}, "flux": fluxEngine{}} {
		t.Run(name, func(t *testing.T) {
			cluster := harness.Start(t, harness.Options{NoWebhooks: true})
			if name == "argocd" {
				startResyncing(t, cluster, time.Minute)
			} else {
				startFlux(t, cluster, harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller"))
			}
			f := newPieceFleet(t, cluster, nil, engine, "lab")
			prerequisites(t, cluster, f.tree.program, corpus)
			if n := f.declareCorpus(t, corpus); n < 40 {
				t.Fatalf("%d operators are installed", n)
			}
			ctx := within(t, 20*time.Minute)
			go simulateCertManager(ctx, hub{f.live})
			f.commit, f.lastCommitTime = f.repository.commit(t, f.dir, "install"), time.Now()
			f.engine.follow(ctx, t, f)
			f.applyParents(ctx, t)
			f.await(ctx, t, "applied", func() string { return f.unapplied(ctx, t) })
			f.logDuration(t, "first sync")
			time.Sleep(time.Minute) // retries of pieces that waited for others
			writes := f.writes(ctx, t)
			time.Sleep(5 * time.Minute)
			f.await(ctx, t, "in sync", func() string { return f.unapplied(ctx, t) })
			if d := cmp.Diff(writes, f.writes(ctx, t)); d != "" {
				t.Errorf("objects were written again (-before +after):\n%s", d)
			}
			t.Logf("%d objects in sync", len(writes))
		})
	}
}

// declareCorpus declares operators of the corpus, renders them, and returns their number. It omits operators
// with missing requirements, and operators with objects that every cluster rejects.
func (f *pieceFleet) declareCorpus(t *testing.T, corpus string) int {
	t.Helper()
	without := []string{
		"awss3-operator-registry", "dbaas-operator", "pelorus-operator", "special-resource-operator", // requirements
		"ack-ecs-controller", "ecr-secret-operator", // knownRejections
	}
	dirs, err := filepath.Glob(filepath.Join(corpus, "bundles", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var catalogs []string
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if slices.Contains(without, name) {
			continue
		}
		versions, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(versions) == 0 {
			t.Fatalf("no versions of %s: %v", name, err)
		}
		catalogs = append(catalogs, fmt.Sprintf("{name: %s, namespace: olm, source: %q}", name, "bundles:"+dir))
		f.tree.write(t, "subscriptions/"+name+".yaml", fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[2]s}\n", name, packageOf(t, versions[0], name)))
	}
	text := strings.ReplaceAll(settings(f.state, f.engine.settings(f)), `{name: bundles, source: "bundles:bundles"}`, strings.Join(catalogs, ", "))
	f.tree.write(t, "quayside.yaml", strings.ReplaceAll(text, "openshift-service-ca", "cert-manager")+provided)
	f.tree.must(t, "resolve", "--offline")
	f.tree.renderedWithNeeds(t)
	f.tree.must(t, "render", "--offline")
	return len(catalogs)
}

// unapplied describes the rendered objects that are missing in the cluster and, with Argo CD, the objects that
// are out of sync. It returns "" if there are none. It ignores objects whose API no operator serves.
func (f *pieceFleet) unapplied(ctx context.Context, t *testing.T) string {
	t.Helper()
	out := ""
	for _, o := range f.tree.manifestsOf(t, "operators", "crds") {
		if _, err := f.live.Get(ctx, o); err != nil && (isCRD(o) || f.live.Serves(o) == nil) {
			out += fmt.Sprintf("%s: %v\n", harness.Name(o), err)
		}
	}
	for _, o := range f.engineObjects(ctx, t) {
		resources, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
		for _, r := range resources {
			if m, _ := r.(map[string]any); m["status"] != "Synced" {
				out += fmt.Sprintf("%s: %v %v/%v: %v\n", o.GetName(), m["kind"], m["namespace"], m["name"], m["status"])
			}
		}
	}
	return out
}

// writes returns the time at which the GitOps tool last wrote each rendered object, by the object's name.
func (f *pieceFleet) writes(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range f.tree.manifestsOf(t, "operators", "crds") {
		live, err := f.live.Get(ctx, o)
		if err != nil {
			continue // reported by unapplied, or not served
		}
		for _, entry := range live.GetManagedFields() {
			if (strings.HasPrefix(entry.Manager, "argocd") || entry.Manager == "kustomize-controller") && entry.Time != nil {
				out[harness.Name(o)] = max(out[harness.Name(o)], entry.Time.UTC().Format(time.RFC3339))
			}
		}
	}
	return out
}

func asJSON(t *testing.T, text []byte) string {
	t.Helper()
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
