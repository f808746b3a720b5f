package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// dropping is an operator whose next bundle drops versions in which its objects
// are stored.
type dropping struct {
	name     string         // of the package, and of its first kind
	kinds    []string       // more kinds
	versions []string       // of the old definition, as in "v1alpha1 served stored"
	cluster  bool           // its objects lie in no namespace
	schema   string         // of spec
	spec     map[string]any // of each object
	history  string         // the version in which objects are stored before the old bundle stores them in another one
	homes    []string       // install namespaces; nil: one
	store    bool           // it takes the state "store": the old definition stores in another version than the next
	converts bool           // the old bundle has a webhook that converts between its versions
}

// droppings returns ten operators. The next bundle of each has v1 alone.
func droppings() []dropping {
	plain := "{type: object, properties: {size: {type: integer}, colour: {type: string}}}"
	spec := map[string]any{"size": int64(3), "colour": "blue"}
	return []dropping{
		{name: "renamed", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, store: true},
		{name: "history", versions: []string{"v1beta1 served", "v1 served stored"}, schema: plain, spec: spec, history: "v1beta1"},
		{name: "unserved", versions: []string{"v1beta1", "v1 served stored"}, schema: plain, spec: spec, history: "v1beta1"},
		{name: "clusterwide", versions: []string{"v1alpha1 served stored", "v1 served"}, cluster: true, schema: plain, spec: spec, store: true},
		{name: "several", kinds: []string{"second", "third"}, versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, store: true},
		{name: "twice", versions: []string{"v1alpha1 served stored", "v1beta1 served", "v1 served"}, schema: plain, spec: spec, store: true},
		{name: "ancient", versions: []string{"v1alpha1", "v1alpha2 served stored", "v1 served"}, schema: plain, spec: spec, history: "v1alpha1", store: true},
		{name: "loose", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: "{type: object, x-kubernetes-preserve-unknown-fields: true}", spec: map[string]any{"any": map[string]any{"thing": "goes"}}, store: true},
		{name: "homes", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, homes: []string{"homes-a", "homes-b"}, store: true},
		{name: "defaulted", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: "{type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}", spec: map[string]any{"size": int64(1)}, store: true},
	}
}

func (d dropping) group() string { return d.name + ".example.com" }

func (d dropping) namespaces() []string {
	if d.homes != nil {
		return d.homes
	}
	return []string{d.name}
}

// definitions returns those of a bundle, with these versions.
func (d dropping) definitions(versions ...string) string {
	var out []string
	for _, kind := range append([]string{d.name}, d.kinds...) {
		scope := "Namespaced"
		if d.cluster {
			scope = "Cluster"
		}
		title := strings.ToUpper(kind[:1]) + kind[1:]
		text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %ss.%s}\nspec:\n  group: %[2]s\n  scope: %s\n  names: {kind: %s, listKind: %[4]sList, plural: %[1]ss, singular: %[1]s}\n  versions:\n", kind, d.group(), scope, title)
		for _, v := range versions {
			name, flags, _ := strings.Cut(v, " ")
			text += fmt.Sprintf("  - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}\n",
				name, strings.Contains(flags, "served"), strings.Contains(flags, "stored"), d.schema)
		}
		out = append(out, text)
	}
	return strings.Join(out, "---\n")
}

// bundle returns the files of a bundle, below the directory of its package.
func (d dropping) bundle(version, replaces string, versions ...string) map[string]string {
	mode := "AllNamespaces"
	if d.homes != nil {
		mode = "OwnNamespace"
	}
	dir := "catalog/" + d.name + "/" + version + "/"
	files := map[string]string{dir + "csv.yaml": fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s.v%[2]s}
spec:
  version: %[2]s
  %[3]s
  installModes: [{type: %[4]s, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: %[1]s
        spec:
          selector: {matchLabels: {app: %[1]s}}
          template:
            metadata: {labels: {app: %[1]s}}
            spec: {containers: [{name: operator, image: "example.com/%[1]s:%[2]s"}]}
`, d.name, version, replaces, mode)}
	if d.converts && len(versions) > 1 {
		files[dir+"csv.yaml"] += fmt.Sprintf("  customresourcedefinitions: {owned: [{name: %[1]ss.%[2]s, kind: %[3]s, version: v1}]}\n  webhookdefinitions:\n  - {type: ConversionWebhook, generateName: convert, deploymentName: %[1]s, containerPort: 443, webhookPath: /convert, conversionCRDs: [%[1]ss.%[2]s], sideEffects: None, admissionReviewVersions: [v1]}\n", d.name, d.group(), strings.ToUpper(d.name[:1])+d.name[1:])
	}
	for i, text := range strings.Split(d.definitions(versions...), "---\n") {
		files[fmt.Sprintf("%scrd%d.yaml", dir, i)] = text
	}
	return files
}

// objects returns two objects of each kind, at a version.
func (d dropping) objects(version string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range append([]string{d.name}, d.kinds...) {
		for i := range 2 {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": d.group() + "/" + version, "kind": strings.ToUpper(kind[:1]) + kind[1:],
				"metadata": map[string]any{"name": fmt.Sprintf("it-%d", i)}, "spec": d.spec,
			}}
			if !d.cluster {
				o.SetNamespace(d.namespaces()[0])
			}
			out = append(out, o)
		}
	}
	return out
}

// TestStoredVersions upgrades ten operators to bundles that drop versions in which
// their objects are stored. Applied plainly, the API server refuses each; in the
// states of the lock it takes all of them, and every object stays what it was.
func TestStoredVersions(t *testing.T) {
	t.Parallel() // it has servers of its own, and mostly waits
	cluster := harness.Start(t, harness.Options{Migrations: true})
	s := newStoring(t, cluster, droppings(), migrations+"  profile: plain\n")
	ctx := within(t, 8*time.Minute) // the controller waits for the next bookmark of a watch, about a minute
	s.install(ctx, t)
	before := s.read(ctx, t)
	s.refused(ctx, t)

	s.next(t, "store")
	s.move(ctx, t)
	s.next(t, "migrate")
	s.move(ctx, t)
	s.migrated(ctx, t)
	s.next(t, "")
	s.move(ctx, t)

	if d := cmp.Diff(before, s.read(ctx, t)); d != "" {
		t.Errorf("objects and their UIDs (-before +after):\n%s", d)
	}
}

// storing is a workspace with the operators, and the cluster that has them.
type storing struct {
	quayside
	cluster *harness.Cluster
	applier *harness.Applier
	all     []dropping
	now     []*unstructured.Unstructured // what is rendered, and applied
}

// migrations says that clusters have the API as a beta.
const migrations = "  storageMigration: v1beta1\n"

// newStoring returns a workspace with these operators, and with some settings.
func newStoring(t *testing.T, cluster *harness.Cluster, all []dropping, settings string) *storing {
	t.Helper()
	files := map[string]string{"quayside.yaml": `
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: made, namespace: olm, source: "package-manifests:catalog"}]
  kubernetesVersion: "1.36"
` + settings}
	for _, d := range all {
		files["catalog/"+d.name+"/"+d.name+".package.yaml"] = fmt.Sprintf("packageName: %s\nchannels: [{name: stable, currentCSV: %[1]s.v2.0.0}]\n", d.name)
		for _, b := range []map[string]string{d.bundle("1.0.0", "", d.versions...), d.bundle("2.0.0", "replaces: "+d.name+".v1.0.0", "v1 served stored")} {
			for name, text := range b {
				files[name] = text
			}
		}
		for _, ns := range d.namespaces() {
			watch := ""
			if d.homes != nil {
				watch = ns
			}
			files["subscriptions/"+ns+".yaml"] = fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: operator, namespace: %[1]s}\nspec: {name: %[2]s, channel: stable, source: made, sourceNamespace: olm, startingCSV: %[2]s.v1.0.0}\n---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: group, namespace: %[1]s}\nspec: {targetNamespaces: [%[3]s]}\n", ns, d.name, watch)
		}
	}
	return &storing{quayside: newWorkspace(t, build(t), files), cluster: cluster, applier: applier(t, cluster), all: all}
}

// install installs the old bundles, with objects that are stored in the old
// versions.
func (s *storing) install(ctx context.Context, t *testing.T) {
	t.Helper()
	s.must(t, "resolve", "--offline")
	list := s.rendered(t)
	for _, d := range s.all {
		if d.history == "" {
			continue
		}
		past := []string{d.history + " served stored"}
		for _, v := range d.versions {
			if name, _, _ := strings.Cut(v, " "); name != d.history {
				past = append(past, name+" served")
			}
		}
		if _, err := s.applier.Apply(ctx, objects(t, d.definitions(past...))); err != nil {
			t.Fatal(err)
		}
		s.create(ctx, t, append(only(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" && o.GetName() == d.name }), d.objects(d.history)...))
	}
	if _, err := s.applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	s.now = list
	for _, d := range s.all {
		if d.history == "" {
			version, _, _ := strings.Cut(d.versions[0], " ")
			s.create(ctx, t, d.objects(version))
		}
	}
	s.settle(ctx, t)
}

func (s *storing) create(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range list {
		if _, err := s.applier.Create(ctx, o); err != nil {
			t.Fatalf("%s: %v", harness.Name(o), err)
		}
	}
}

// settle waits until every operator is Ready.
func (s *storing) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := s.applier.Await(ctx, only(s.rendered(t), func(o *unstructured.Unstructured) bool { return o.GetKind() != "StorageVersionMigration" })); err != nil {
		t.Fatal(err)
	}
}

// read returns the objects at v1, by name, with their UIDs.
func (s *storing) read(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range s.all {
		for _, o := range d.objects("v1") {
			live, err := s.applier.Get(ctx, o)
			if err != nil {
				t.Fatalf("%s: %v", harness.Name(o), err)
			}
			out[d.group()+" "+harness.Name(o)] = fmt.Sprint(live.GetUID(), " ", live.Object["spec"])
		}
	}
	return out
}

// refused applies the next definitions as they are, of which the server takes
// none.
func (s *storing) refused(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, d := range s.all {
		for _, o := range objects(t, d.definitions("v1 served stored")) {
			_, err := s.applier.Apply(ctx, []*unstructured.Unstructured{o})
			if !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "status.storedVersions") {
				t.Errorf("%s, applied plainly: %v", harness.Name(o), err)
			}
		}
	}
}

// next takes the step that the cluster is ready for. Operators whose old bundle stores
// objects elsewhere go into a state, "" being the next bundle; those that have a step
// less to go may be ahead.
func (s *storing) next(t *testing.T, state string) {
	t.Helper()
	if _, stderr, code := s.run(t, "status", "--offline", "--kubeconfig", s.cluster.Kubeconfig, "--save", "observed.yaml"); code > 1 { // 1: a migration runs
		t.Fatalf("quayside status: exit code %d\n%s", code, stderr)
	}
	s.must(t, "resolve", "--offline", "--upgrade", "--observed", "observed.yaml")
	lock, err := os.ReadFile(filepath.Join(s.dir, "quayside.lock"))
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(lock), "\n- namespace: ") {
		i := slices.IndexFunc(s.all, func(d dropping) bool { return strings.Contains(block, "\n  package: "+d.name+"\n") })
		if i < 0 {
			continue
		}
		moved, waits := strings.Contains(block, "\n  version: 2.0.0\n"), strings.Contains(block, "\n    stage: "+state+"\n")
		if state == "" && !moved || state != "" && s.all[i].store && (moved || !waits) {
			t.Errorf("%s is not in state %q:\n%s", s.all[i].name, state, block)
		}
	}
}

// move applies what is rendered, and prunes what is no longer.
func (s *storing) move(ctx context.Context, t *testing.T) {
	t.Helper()
	list := s.rendered(t)
	if _, err := s.applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	there := names(list)
	for _, o := range s.now {
		if slices.Contains(there, harness.Name(o)) || holdsData(o) {
			continue
		}
		if err := s.applier.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	s.now = list
	s.settle(ctx, t)
}

// migrated waits until every migration has succeeded, after which no definition
// names a version that was left: the controller takes it out of the status.
func (s *storing) migrated(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, o := range only(s.rendered(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "StorageVersionMigration" }) {
		for {
			live, err := s.applier.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			if status, _, _ := harness.Condition(live, "Succeeded"); status == "True" {
				break
			}
			if status, message, _ := harness.Condition(live, "Failed"); status == "True" {
				t.Fatalf("%s: %s", harness.Name(o), message)
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %v", harness.Name(o), live.Object["status"])
			case <-time.After(time.Second):
			}
		}
	}
	for _, crd := range s.definitions(ctx, t) {
		stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		if diff := cmp.Diff([]string{"v1"}, stored); diff != "" {
			t.Errorf("%s: stored versions (-want +got):\n%s", harness.Name(crd), diff)
		}
	}
}

// definitions returns those of the operators as the cluster has them.
func (s *storing) definitions(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, d := range s.all {
		for _, o := range objects(t, d.definitions("v1 served stored")) {
			live, err := s.applier.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, live)
		}
	}
	return out
}
