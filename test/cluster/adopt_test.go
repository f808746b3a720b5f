package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/olm"
)

// TestPredicted restores a cluster of the corpus that was recorded after some operators had left OLM. It
// compares the output of `adopt inspect` for each object with the result of a server-side dry-run apply.
// TestLeavingOLM does the same with the clusters that were recorded before any operator left OLM.
func TestPredicted(t *testing.T) {
	if os.Getenv(leavingVariable) != "all" {
		t.Skipf("%s is not \"all\": TestLeavingOLM tests a sample", leavingVariable)
	}
	t.Parallel() // has its own servers
	ctx := within(t, 6*time.Minute)
	w := restoreCluster(ctx, t, readClusters(t), []string{"modes-detached/after.json"}, gitops{profile: "flux"}, harness.Options{APIOnly: true, NoWebhooks: true})
	w.checkPredictions(ctx, t)
}

// readClusters returns the clusters of the corpus.
func readClusters(t *testing.T) olm.Clusters {
	t.Helper()
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no clusters with OLM")
	}
	all, err := olm.Read(corpus)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// restoredCluster is a restored cluster with OLM, and a workspace with the imported operators.
type restoredCluster struct {
	quayside
	cluster *harness.Cluster
	config  *rest.Config
	client  dynamic.Interface
	runner  string // kubeconfig of a user with exactly the permissions of the plan

	mu     sync.Mutex
	mapper meta.RESTMapper
}

// restoreCluster starts a cluster, restores the objects in the files, and imports the cluster's operators for a
// GitOps tool in such a way that no pod restarts.
func restoreCluster(ctx context.Context, t *testing.T, clusters olm.Clusters, files []string, g gitops, opt harness.Options) *restoredCluster {
	t.Helper()
	harness.Require(t, "control-plane")
	objects, err := clusters.Objects(files...)
	if err != nil {
		t.Fatal(err)
	}
	services := olm.NewServices(t)
	opt.Services = services.Socket
	w := &restoredCluster{cluster: harness.Start(t, opt)}
	w.config = rest.CopyConfig(w.cluster.RESTConfig)
	w.config.WarningHandler = rest.NoWarnings{}
	if w.client, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := olm.Restore(ctx, w.config, services, objects); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects restored in %s", len(objects), time.Since(begun).Round(time.Millisecond))
	w.importWorkspace(t, clusters, g)
	return w
}

// importWorkspace imports the cluster into a new workspace.
func (w *restoredCluster) importWorkspace(t *testing.T, clusters olm.Clusters, g gitops) {
	t.Helper()
	w.quayside = newWorkspace(t, build(t), nil)
	if err := clusters.WriteCatalogs(filepath.Join(w.dir, "catalogs")); err != nil {
		t.Fatal(err)
	}
	args := []string{"import", "--kubeconfig", w.cluster.Kubeconfig, "--offline"}
	for _, catalog := range []string{"community", "lab"} {
		args = append(args, "--catalog", "olm/"+catalog+"=dir:catalogs/catalog-"+catalog)
	}
	w.runWithFindings(t, args...)
	settings, err := os.ReadFile(filepath.Join(w.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(settings), "\n  kubernetesVersion: \"1.36\"\n") {
		t.Errorf("import did not write the cluster's version:\n%s", settings)
	}
	w.write(t, "quayside.yaml", string(settings)+g.settings())
	w.runWithFindings(t, "adopt", "inspect", "--kubeconfig", w.cluster.Kubeconfig, "--offline", "--record")
}

// runWithFindings runs a command and returns its output. The command may report differences: exit code 0 or 1.
func (q quayside) runWithFindings(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := q.run(t, args...)
	if code > 1 {
		t.Fatalf("quayside %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// resource returns the client for an object. The first call discovers the APIs of the cluster.
func (w *restoredCluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mapper == nil {
		lookup, err := discovery.NewDiscoveryClientForConfig(w.config)
		if err != nil {
			return nil, err
		}
		groups, err := restmapper.GetAPIGroupResources(lookup)
		if err != nil {
			return nil, err
		}
		w.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	mapping, err := w.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return w.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return w.client.Resource(mapping.Resource), nil
}

// inspected mirrors the output of `adopt inspect -o json`.
type inspected struct {
	Operators []struct {
		Namespace, Package, State string
		Reasons                   []struct{ Code, Message string }
		Objects                   []inspectedObject
	}
	Shared []inspectedObject
	Counts struct{ Live, Equal, Changed, Added, OLM, Unknown int }
	Unread []struct{ APIVersion, Kind, Reason string } `json:"unreadable"`
}

// inspectedObject is an object of one or more operators.
type inspectedObject struct {
	Group, Kind, Namespace, Name string
	Class                        string
	Fields                       []inspectedField
}

type inspectedField struct {
	Path string
	How  string `json:"kind"`
}

func (o inspectedObject) id() string { return objectID(o.Group, o.Kind, o.Namespace, o.Name) }

// objectID identifies an object independently of its API version.
func objectID(group, kind, namespace, name string) string {
	return schema.GroupKind{Group: group, Kind: kind}.String() + " " + namespace + "/" + name
}

func idOf(o *unstructured.Unstructured) string {
	return objectID(o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName())
}

// inspect returns the result of `adopt inspect` for the cluster.
func (w *restoredCluster) inspect(t *testing.T) inspected {
	t.Helper()
	var rep inspected
	if err := json.Unmarshal([]byte(w.runWithFindings(t, "adopt", "inspect", "--kubeconfig", w.cluster.Kubeconfig, "--offline", "-o", "json")), &rep); err != nil {
		t.Fatal(err)
	}
	return rep
}

// objectsByID returns all inspected objects by ID.
func (rep inspected) objectsByID() map[string]inspectedObject {
	out := map[string]inspectedObject{}
	for _, op := range rep.Operators {
		for _, o := range op.Objects {
			out[o.id()] = o
		}
	}
	for _, o := range rep.Shared {
		out[o.id()] = o
	}
	return out
}

// checkPredictions fails the test if the API server would change an object of the tree in a way
// that `adopt inspect` does not predict.
func (w *restoredCluster) checkPredictions(ctx context.Context, t *testing.T) {
	t.Helper()
	rep := w.inspect(t)
	said, tree := rep.objectsByID(), w.rendered(t)
	faults, classes := make([][]string, len(tree)), map[string]int{}
	var wg sync.WaitGroup
	room := make(chan struct{}, 8)
	for i, o := range tree {
		classes[said[idOf(o)].Class]++
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			faults[i] = w.predictionErrors(ctx, o, said[idOf(o)])
		})
	}
	wg.Wait()
	for i, found := range faults {
		for _, f := range found {
			t.Errorf("%s: %s", idOf(tree[i]), f)
		}
	}
	t.Logf("%d operators, %d objects of the tree: %v; of the cluster: %+v", len(rep.Operators), len(tree), classes, rep.Counts)
}

// predictionErrors returns the differences between the prediction for an object and the API server's result.
func (w *restoredCluster) predictionErrors(ctx context.Context, o *unstructured.Unstructured, said inspectedObject) []string {
	of, err := w.resource(o)
	if err != nil {
		return []string{err.Error()}
	}
	live, err := of.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	if (live == nil) != (said.Class == "added") {
		return []string{fmt.Sprintf("it is said to be %q, and is there: %t", said.Class, live != nil)}
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		return []string{err.Error()}
	}
	force := true
	then, err := of.Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: "kustomize-controller", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if reason := rejectionReason(o); reason != "" && err != nil && strings.Contains(err.Error(), reason) {
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	if live == nil {
		return nil
	}
	return disagreements(changedPaths(live.Object, then.Object), said)
}

// rejectionReason returns the known reason why the API server always rejects an object of a bundle, or "".
func rejectionReason(o *unstructured.Unstructured) string {
	kind, _, _ := strings.Cut(harness.Name(o), " ")
	for known, reason := range knownRejections() {
		k, at, _ := strings.Cut(known, " ")
		if k == kind && strings.HasSuffix(at, "/"+o.GetName()) {
			return reason
		}
	}
	return ""
}

// disagreements compares the changed fields with the prediction, and returns the differences. Every changed
// field must be predicted. Every predicted field must change. The exception is a field that exists only in the
// cluster: it may remain, because another field manager may own it.
func disagreements(changed []string, said inspectedObject) []string {
	var out []string
	covers := func(field, path string) bool {
		rest, ok := strings.CutPrefix(path, field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	for _, path := range changed {
		if !slices.ContainsFunc(said.Fields, func(f inspectedField) bool { return covers(f.Path, path) }) {
			out = append(out, path+" changes, and nothing is said of it")
		}
	}
	for _, f := range said.Fields {
		if f.How != "cluster-only" && !slices.ContainsFunc(changed, func(path string) bool { return covers(f.Path, path) }) {
			out = append(out, f.Path+" is said to change ("+f.How+"), and does not")
		}
	}
	if said.Class == "equal" && slices.ContainsFunc(changed, func(path string) bool { return !strings.HasPrefix(path, "metadata.") }) {
		out = append(out, "it is said to be equal")
	}
	return out
}

// changedPaths returns the paths at which two objects differ, except for fields that the API server maintains.
// An item of a list is identified by its name, if it has one.
func changedPaths(before, after map[string]any) []string {
	var out []string
	collectDifferences(&out, "", before, after)
	return slices.DeleteFunc(out, func(path string) bool {
		return path == "metadata.generation" || path == "metadata.resourceVersion" || strings.HasPrefix(path, "metadata.managedFields")
	})
}

func collectDifferences(out *[]string, at string, before, after any) {
	x, isMap := before.(map[string]any)
	y, isMapToo := after.(map[string]any)
	if isMap && isMapToo {
		keys := map[string]bool{}
		for key := range x {
			keys[key] = true
		}
		for key := range y {
			keys[key] = true
		}
		for key := range keys {
			path, was, is := strings.TrimPrefix(at+"."+key, "."), x[key], y[key]
			if strings.HasSuffix(path, "metadata.labels") || strings.HasSuffix(path, "metadata.annotations") {
				was, is = orNone(was), orNone(is) // these are listed individually
			}
			collectDifferences(out, path, was, is)
		}
		return
	}
	a, isList := before.([]any)
	b, isListToo := after.([]any)
	switch {
	case isList && isListToo && itemsByName(a) != nil && itemsByName(b) != nil:
		m, n := itemsByName(a), itemsByName(b)
		for _, name := range slices.Compact(slices.Sorted(slices.Values(append(namesIn(a), namesIn(b)...)))) {
			collectDifferences(out, at+"["+name+"]", m[name], n[name])
		}
		same := func(names []string, other map[string]any) []string {
			return slices.DeleteFunc(names, func(n string) bool { return other[n] == nil })
		}
		if !slices.Equal(same(namesIn(a), n), same(namesIn(b), m)) {
			*out = append(*out, at)
		}
	case !reflect.DeepEqual(before, after):
		*out = append(*out, at)
	}
}

func orNone(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

func namesIn(list []any) []string {
	var out []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		out = append(out, name)
	}
	return out
}

// itemsByName returns the items of a list by name, or nil if the items have no names.
func itemsByName(list []any) map[string]any {
	out := map[string]any{}
	for i, name := range namesIn(list) {
		if _, twice := out[name]; twice || name == "" {
			return nil
		}
		out[name] = list[i]
	}
	return out
}
