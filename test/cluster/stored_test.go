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

// droppingOperator is an operator whose next bundle removes API versions in which the cluster stores objects.
type droppingOperator struct {
	name              string         // of the package and of its first kind
	kinds             []string       // more kinds
	versions          []string       // of the old CRD, as in "v1alpha1 served stored"
	clusterScoped     bool           // its objects are cluster-scoped
	schema            string         // of spec
	spec              map[string]any // of each object
	firstStored       string         // version in which objects are stored first, before the old bundle stores them in another one
	installNamespaces []string       // install namespaces; nil means one
	hasStoreState     bool           // it passes the stage "store": the storage version of the old CRD differs from that of the next one
	hasConversion     bool           // the old bundle has a conversion webhook
}

// droppingOperators returns ten operators. The next bundle of each has only the API version v1.
func droppingOperators() []droppingOperator {
	plain := "{type: object, properties: {size: {type: integer}, colour: {type: string}}}"
	spec := map[string]any{"size": int64(3), "colour": "blue"}
	return []droppingOperator{
		{name: "renamed", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, hasStoreState: true},
		{name: "history", versions: []string{"v1beta1 served", "v1 served stored"}, schema: plain, spec: spec, firstStored: "v1beta1"},
		{name: "unserved", versions: []string{"v1beta1", "v1 served stored"}, schema: plain, spec: spec, firstStored: "v1beta1"},
		{name: "clusterwide", versions: []string{"v1alpha1 served stored", "v1 served"}, clusterScoped: true, schema: plain, spec: spec, hasStoreState: true},
		{name: "several", kinds: []string{"second", "third"}, versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, hasStoreState: true},
		{name: "twice", versions: []string{"v1alpha1 served stored", "v1beta1 served", "v1 served"}, schema: plain, spec: spec, hasStoreState: true},
		{name: "ancient", versions: []string{"v1alpha1", "v1alpha2 served stored", "v1 served"}, schema: plain, spec: spec, firstStored: "v1alpha1", hasStoreState: true},
		{name: "loose", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: "{type: object, x-kubernetes-preserve-unknown-fields: true}", spec: map[string]any{"any": map[string]any{"thing": "goes"}}, hasStoreState: true},
		{name: "homes", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: plain, spec: spec, installNamespaces: []string{"homes-a", "homes-b"}, hasStoreState: true},
		{name: "defaulted", versions: []string{"v1alpha1 served stored", "v1 served"}, schema: "{type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}", spec: map[string]any{"size": int64(1)}, hasStoreState: true},
	}
}

func (d droppingOperator) group() string { return d.name + ".example.com" }

func (d droppingOperator) namespaces() []string {
	if d.installNamespaces != nil {
		return d.installNamespaces
	}
	return []string{d.name}
}

// definitions returns the CRDs of the operator, each with the given API versions, as YAML.
func (d droppingOperator) definitions(versions ...string) string {
	var out []string
	for _, kind := range append([]string{d.name}, d.kinds...) {
		scope := "Namespaced"
		if d.clusterScoped {
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

// bundle returns the files of a bundle, relative to the directory of its package.
func (d droppingOperator) bundle(version, replaces string, versions ...string) map[string]string {
	mode := "AllNamespaces"
	if d.installNamespaces != nil {
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
	if d.hasConversion && len(versions) > 1 {
		files[dir+"csv.yaml"] += fmt.Sprintf("  customresourcedefinitions: {owned: [{name: %[1]ss.%[2]s, kind: %[3]s, version: v1}]}\n  webhookdefinitions:\n  - {type: ConversionWebhook, generateName: convert, deploymentName: %[1]s, containerPort: 443, webhookPath: /convert, conversionCRDs: [%[1]ss.%[2]s], sideEffects: None, admissionReviewVersions: [v1]}\n", d.name, d.group(), strings.ToUpper(d.name[:1])+d.name[1:])
	}
	for i, text := range strings.Split(d.definitions(versions...), "---\n") {
		files[fmt.Sprintf("%scrd%d.yaml", dir, i)] = text
	}
	return files
}

// objects returns two objects of each kind in a version.
func (d droppingOperator) objects(version string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range append([]string{d.name}, d.kinds...) {
		for i := range 2 {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": d.group() + "/" + version, "kind": strings.ToUpper(kind[:1]) + kind[1:],
				"metadata": map[string]any{"name": fmt.Sprintf("it-%d", i)}, "spec": d.spec,
			}}
			if !d.clusterScoped {
				o.SetNamespace(d.namespaces()[0])
			}
			out = append(out, o)
		}
	}
	return out
}

// TestStoredVersions upgrades ten operators to bundles that remove stored versions. The API server rejects the
// direct upgrade of each operator. It accepts all upgrades if the stages in the lock are applied one after the
// other, and every object remains the same.
func TestStoredVersions(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	cluster := harness.Start(t, harness.Options{Migrations: true})
	s := newStorageFleet(t, cluster, droppingOperators(), migrations+"  profile: plain\n")
	ctx := within(t, 8*time.Minute) // the controller waits about a minute for the next bookmark of a watch
	s.install(ctx, t)
	before := s.readObjects(ctx, t)
	s.checkRejected(ctx, t)

	s.nextState(t, "store")
	s.applyRendered(ctx, t)
	s.nextState(t, "migrate")
	s.applyRendered(ctx, t)
	s.awaitMigrations(ctx, t)
	s.nextState(t, "")
	s.applyRendered(ctx, t)

	if d := cmp.Diff(before, s.readObjects(ctx, t)); d != "" {
		t.Errorf("objects and their UIDs (-before +after):\n%s", d)
	}
}

// storageFleet is a workspace with the operators, and its cluster.
type storageFleet struct {
	quayside
	cluster *harness.Cluster
	applier *harness.Applier
	all     []droppingOperator
	applied []*unstructured.Unstructured // the rendered and applied objects
}

// migrations is the setting for clusters with the beta API.
const migrations = "  storageMigration: v1beta1\n"

// newStorageFleet returns a workspace with these operators and settings.
func newStorageFleet(t *testing.T, cluster *harness.Cluster, all []droppingOperator, settings string) *storageFleet {
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
			if d.installNamespaces != nil {
				watch = ns
			}
			files["subscriptions/"+ns+".yaml"] = fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: operator, namespace: %[1]s}\nspec: {name: %[2]s, channel: stable, source: made, sourceNamespace: olm, startingCSV: %[2]s.v1.0.0}\n---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: group, namespace: %[1]s}\nspec: {targetNamespaces: [%[3]s]}\n", ns, d.name, watch)
		}
	}
	return &storageFleet{quayside: newWorkspace(t, build(t), files), cluster: cluster, applier: applier(t, cluster), all: all}
}

// install installs the old bundles and creates objects in the old versions.
func (s *storageFleet) install(ctx context.Context, t *testing.T) {
	t.Helper()
	s.must(t, "resolve", "--offline")
	list := s.rendered(t)
	for _, d := range s.all {
		if d.firstStored == "" {
			continue
		}
		past := []string{d.firstStored + " served stored"}
		for _, v := range d.versions {
			if name, _, _ := strings.Cut(v, " "); name != d.firstStored {
				past = append(past, name+" served")
			}
		}
		if _, err := s.applier.Apply(ctx, objects(t, d.definitions(past...))); err != nil {
			t.Fatal(err)
		}
		s.create(ctx, t, append(only(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" && o.GetName() == d.name }), d.objects(d.firstStored)...))
	}
	if _, err := s.applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	s.applied = list
	for _, d := range s.all {
		if d.firstStored == "" {
			version, _, _ := strings.Cut(d.versions[0], " ")
			s.create(ctx, t, d.objects(version))
		}
	}
	s.awaitOperators(ctx, t)
}

func (s *storageFleet) create(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range list {
		if _, err := s.applier.Create(ctx, o); err != nil {
			t.Fatalf("%s: %v", harness.Name(o), err)
		}
	}
}

// awaitOperators waits until every operator is Ready.
func (s *storageFleet) awaitOperators(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := s.applier.Await(ctx, only(s.rendered(t), func(o *unstructured.Unstructured) bool { return o.GetKind() != "StorageVersionMigration" })); err != nil {
		t.Fatal(err)
	}
}

// readObjects returns the UIDs of the objects in version v1, by name.
func (s *storageFleet) readObjects(ctx context.Context, t *testing.T) map[string]string {
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

// checkRejected checks that the server rejects every next CRD if it is applied directly.
func (s *storageFleet) checkRejected(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, d := range s.all {
		for _, o := range objects(t, d.definitions("v1 served stored")) {
			_, err := s.applier.Apply(ctx, []*unstructured.Unstructured{o})
			if !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "status.storedVersions") {
				t.Errorf("%s, applied directly: %v", harness.Name(o), err)
			}
		}
	}
}

// nextState observes the cluster, and resolves with upgrades. It then checks the stage of every operator's
// storage migration: the stage must be state or, if state is "", the operator must have the next bundle.
// Operators without the stage "store" may be one stage ahead.
func (s *storageFleet) nextState(t *testing.T, state string) {
	t.Helper()
	if _, stderr, code := s.run(t, "status", "--offline", "--kubeconfig", s.cluster.Kubeconfig, "--save", "observed.yaml"); code > 1 { // 1: a migration is running
		t.Fatalf("quayside status: exit code %d\n%s", code, stderr)
	}
	s.must(t, "resolve", "--offline", "--upgrade", "--observed", "observed.yaml")
	lock, err := os.ReadFile(filepath.Join(s.dir, "quayside.lock"))
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(lock), "\n- namespace: ") {
		i := slices.IndexFunc(s.all, func(d droppingOperator) bool { return strings.Contains(block, "\n  package: "+d.name+"\n") })
		if i < 0 {
			continue
		}
		moved, waits := strings.Contains(block, "\n  version: 2.0.0\n"), strings.Contains(block, "\n    stage: "+state+"\n")
		if state == "" && !moved || state != "" && s.all[i].hasStoreState && (moved || !waits) {
			t.Errorf("%s is not in state %q:\n%s", s.all[i].name, state, block)
		}
	}
}

// applyRendered applies the rendered objects, and prunes the others.
func (s *storageFleet) applyRendered(ctx context.Context, t *testing.T) {
	t.Helper()
	list := s.rendered(t)
	if _, err := s.applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	there := names(list)
	for _, o := range s.applied {
		if slices.Contains(there, harness.Name(o)) || holdsData(o) {
			continue
		}
		if err := s.applier.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	s.applied = list
	s.awaitOperators(ctx, t)
}

// awaitMigrations waits until every migration has succeeded. By then, the controller has removed the old
// versions from the status of the CRDs.
func (s *storageFleet) awaitMigrations(ctx context.Context, t *testing.T) {
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

// definitions returns the operators' CRDs in the cluster.
func (s *storageFleet) definitions(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
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
