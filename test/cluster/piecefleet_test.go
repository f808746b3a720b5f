package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quayside/quayside/test/cluster/harness"
)

// pieceEngine is an engine that applies pieces.
type pieceEngine interface {
	// settings returns the engine's settings for the workspace.
	settings(f *pieceFleet) engineSettings
	// parents returns the objects that a person applies once.
	parents(t *testing.T, f *pieceFleet) []*unstructured.Unstructured
	// engineObjects maps the expected names of the environment's Applications or Kustomizations to their
	// pieces. The piece of a parent is "".
	engineObjects(t *testing.T, f *pieceFleet) map[string]string
	// resource returns the resource and namespace of the engine's own objects.
	resource() (schema.GroupVersionResource, string)
	// follow configures the engine to read the fleet's repository.
	follow(ctx context.Context, t *testing.T, f *pieceFleet)
	// refresh makes the engine read Git again.
	refresh(ctx context.Context, t *testing.T, f *pieceFleet)
	// reads reports whether an engine object reads the fleet's repository.
	reads(o *unstructured.Unstructured, f *pieceFleet) bool
	// unsettled returns the reason why an engine object is not settled at a commit, or "".
	unsettled(o *unstructured.Unstructured, commit string) string
	// owns reports whether one object of the engine (by) has applied the object o.
	owns(by, o *unstructured.Unstructured) bool
	// syncAgain makes the engine apply the objects of an engine object again, and waits until this is complete.
	syncAgain(ctx context.Context, t *testing.T, f *pieceFleet, o *unstructured.Unstructured)
	// register adds a cluster, and returns its entry in spec.clusters.
	register(ctx context.Context, t *testing.T, f *pieceFleet, name string, cluster *harness.Cluster) pieceCluster
}

// pieceFleet is an environment of a scenario with its own repository.
type pieceFleet struct {
	engine         pieceEngine
	ca             []byte           // of the cluster
	second         *harness.Cluster // an API server alone
	live           *harness.Applier
	client         dynamic.Interface
	repository     repository
	dir            string // its work tree
	at             string // directory with the tree in the repository, with a slash at the end; "" for the top
	tree           *pieceTree
	state          pieceState
	commit         string
	parents        []*unstructured.Unstructured // applied by a person
	lastCommitTime time.Time
}

// newPieceFleet returns an environment without operators.
func newPieceFleet(t *testing.T, cluster, second *harness.Cluster, engine pieceEngine, environment string) *pieceFleet {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return &pieceFleet{
		engine: engine, ca: cluster.RESTConfig.CAData, second: second, live: applier(t, cluster), client: client,
		repository: newRepository(t), dir: dir, tree: newPieceTree(t, dir), lastCommitTime: time.Now(),
		state: pieceState{environment: environment, clusters: []pieceCluster{{name: "local"}}},
	}
}

// install commits the desired state of the fleet, applies its parent objects, and waits until all objects except
// those in except are settled.
func (f *pieceFleet) install(ctx context.Context, t *testing.T, except ...string) {
	t.Helper()
	f.push(ctx, t, "install")
	f.engine.follow(ctx, t, f)
	f.applyParents(ctx, t)
	f.settle(ctx, t, except...)
	f.logDuration(t, "first sync")
}

// applyParents applies the parent objects of the fleet, as a person does once.
func (f *pieceFleet) applyParents(ctx context.Context, t *testing.T) {
	t.Helper()
	f.parents = f.engine.parents(t, f)
	if _, err := f.live.Apply(ctx, f.parents); err != nil {
		t.Fatal(err)
	}
}

// push commits the state, and refreshes the engine.
func (f *pieceFleet) push(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	f.tree.render(t, f.state, f.engine.settings(f))
	f.commit = f.repository.commit(t, f.dir, message)
	f.lastCommitTime = time.Now()
	if message != "install" {
		f.engine.refresh(ctx, t, f)
	}
}

// upgrade commits a new state, waits until all pieces except those in except are settled, and logs the duration.
func (f *pieceFleet) upgrade(ctx context.Context, t *testing.T, message string, s pieceState, except ...string) {
	t.Helper()
	f.state = s
	f.push(ctx, t, message)
	f.settle(ctx, t, except...)
	f.logDuration(t, message)
}

// logDuration logs the time since the last commit.
func (f *pieceFleet) logDuration(t *testing.T, step string) {
	t.Helper()
	t.Logf("%s: %.1f s", step, time.Since(f.lastCommitTime).Seconds())
}

// settle waits until the engine objects match the state. It also waits until each engine object is settled at
// the last commit, and its objects are in the cluster. It does not wait for the pieces in except.
func (f *pieceFleet) settle(ctx context.Context, t *testing.T, except ...string) {
	t.Helper()
	asked := time.Now()
	f.await(ctx, t, "settled", func() string {
		if time.Since(asked) > 3*time.Second {
			f.engine.refresh(ctx, t, f)
			asked = time.Now()
		}
		return f.unsettledState(ctx, t, except)
	})
	rest := slices.DeleteFunc(slices.Clone(f.state.operators), func(o tinyOperator) bool { return slices.Contains(except, o.key()) })
	f.awaitApplied(ctx, t, rest)
}

// desired returns the objects of the operators with these keys, or of all operators if there are no
// keys.
func (f *pieceFleet) desired(t *testing.T, keys ...string) []*unstructured.Unstructured {
	t.Helper()
	return f.tree.desired(t, slices.DeleteFunc(slices.Clone(f.state.operators), func(o tinyOperator) bool {
		return len(keys) > 0 && !slices.Contains(keys, o.key())
	}))
}

// unsettledState returns a description of the unsettled engine objects, or "" if there are none.
func (f *pieceFleet) unsettledState(ctx context.Context, t *testing.T, except []string) string {
	t.Helper()
	want, out := f.engine.engineObjects(t, f), ""
	for _, o := range f.engineObjects(ctx, t) {
		piece, known := want[o.GetName()]
		delete(want, o.GetName())
		if !known {
			out += o.GetName() + " still exists\n"
		} else if !slices.Contains(except, piece) || piece == "" {
			out += f.engine.unsettled(o, f.commit)
		}
	}
	for name := range want {
		out += name + " is missing\n"
	}
	return out
}

// engineObjects returns the engine objects that read the repository.
func (f *pieceFleet) engineObjects(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	resource, namespace := f.engine.resource()
	list, err := f.client.Resource(resource).Namespace(namespace).List(context.WithoutCancel(ctx), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		if f.engine.reads(&list.Items[i], f) {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// await calls reason repeatedly until it returns "". Other results are the reason why the fleet is not yet as wanted.
func (f *pieceFleet) await(ctx context.Context, t *testing.T, want string, reason func() string) {
	t.Helper()
	for {
		why := reason()
		if why == "" {
			return
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("not %s at %s after %.0f s:\n%s", want, f.commit, time.Since(f.lastCommitTime).Seconds(), why)
		}
	}
}

// awaitApplied waits until the objects of the operators are in the cluster, at the right version
// and healthy.
func (f *pieceFleet) awaitApplied(ctx context.Context, t *testing.T, operators []tinyOperator) {
	t.Helper()
	desired := f.tree.desired(t, operators)
	f.await(ctx, t, "applied", func() string {
		for _, o := range desired {
			live, err := f.live.Get(ctx, o)
			if err != nil {
				return err.Error()
			}
			if got, want := live.GetLabels()["example.com/version"], o.GetLabels()["example.com/version"]; got != want {
				return fmt.Sprintf("%s is of version %q, want %q", harness.Name(o), got, want)
			}
		}
		return ""
	})
	if err := f.live.Await(ctx, desired); err != nil {
		t.Fatal(err)
	}
}

// liveIdentity is the UID and resourceVersion of an object.
type liveIdentity struct{ UID, Version string }

// identify waits until these objects do not change for two seconds, and returns their identities by name. It
// omits objects that are missing in the cluster.
func (f *pieceFleet) identify(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) map[string]liveIdentity {
	t.Helper()
	return identifyAt(ctx, t, f.live, list)
}

func identifyAt(ctx context.Context, t *testing.T, live *harness.Applier, list []*unstructured.Unstructured) map[string]liveIdentity {
	t.Helper()
	look := func() map[string]liveIdentity {
		out := map[string]liveIdentity{}
		for _, o := range list {
			at, err := live.Get(ctx, o)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if at.GetDeletionTimestamp() == nil {
				out[harness.Name(o)] = liveIdentity{string(at.GetUID()), at.GetResourceVersion()}
			}
		}
		return out
	}
	for now := look(); ; {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			t.Fatal("objects keep changing")
		}
		later := look()
		if maps.Equal(now, later) {
			return now
		}
		now = later
	}
}

// uids returns the UIDs of the identities.
func uids(all map[string]liveIdentity) map[string]string {
	out := map[string]string{}
	for name, id := range all {
		out[name] = id.UID
	}
	return out
}

// checkUntouched fails the test if an object was changed.
func checkUntouched(t *testing.T, what string, before, after map[string]liveIdentity) {
	t.Helper()
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("%s: objects were changed (-before +after):\n%s", what, d)
	}
}

// checkUIDs fails the test if an object was deleted, created or recreated.
func checkUIDs(t *testing.T, what string, before, after map[string]liveIdentity) {
	t.Helper()
	if d := cmp.Diff(uids(before), uids(after)); d != "" {
		t.Errorf("%s: objects were deleted or recreated (-before +after):\n%s", what, d)
	}
}

// awaitGone waits until none of the objects exists.
func (f *pieceFleet) awaitGone(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	if err := f.live.AwaitGone(ctx, list); err != nil {
		for _, o := range f.engineObjects(ctx, t) {
			t.Logf("%s: %s", o.GetName(), f.engine.unsettled(o, f.commit))
		}
		t.Fatal(err)
	}
}

// annotate sets an annotation of an object that may be deleted at any moment.
func (f *pieceFleet) annotate(ctx context.Context, t *testing.T, resource schema.GroupVersionResource, namespace, name, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	f.patch(ctx, t, resource, namespace, name, patch)
}

func (f *pieceFleet) patch(ctx context.Context, t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string) {
	t.Helper()
	_, err := f.client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// argoEngine is Argo CD.
type argoEngine struct{}

func (argoEngine) settings(f *pieceFleet) engineSettings {
	return engineSettings{"argocd", fmt.Sprintf("repoURL: %q, namespace: argocd, syncPolicy: {automated: {prune: true, selfHeal: true}, retry: {limit: -1, backoff: {duration: 2s, factor: 2, maxDuration: 10s}}}", f.repository.url)}
}

// parents returns all of argocd/, which a person applies according to the documentation.
func (argoEngine) parents(t *testing.T, f *pieceFleet) []*unstructured.Unstructured {
	t.Helper()
	return f.tree.manifestsOf(t, "argocd")
}

func (argoEngine) engineObjects(t *testing.T, f *pieceFleet) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range f.tree.manifestsOf(t, "argocd", "pieces") {
		if o.GetKind() == "Application" {
			out[o.GetName()] = pieceOf(o.GetName())
			continue
		}
		template, _, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "name")
		for _, member := range f.tree.members(t) {
			name := strings.ReplaceAll(template, "{{.application}}", fmt.Sprint(member["application"]))
			out[name] = pieceOf(name)
		}
	}
	return out
}

// pieceOf returns the piece in the name of an engine object, or "" for a parent.
func pieceOf(name string) string {
	_, piece, _ := strings.Cut(name, "--")
	if piece == "pieces" {
		return ""
	}
	return piece
}

var (
	applications    = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	applicationSets = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets"}
)

func (argoEngine) resource() (schema.GroupVersionResource, string) { return applications, "argocd" }

func (argoEngine) follow(context.Context, *testing.T, *pieceFleet) {}

func (e argoEngine) reads(o *unstructured.Unstructured, f *pieceFleet) bool {
	text, err := o.MarshalJSON()
	return err == nil && strings.Contains(string(text), f.repository.url) && strings.HasPrefix(o.GetName(), fluxSource(f.state))
}

func (e argoEngine) refresh(ctx context.Context, t *testing.T, f *pieceFleet) {
	t.Helper()
	want := e.engineObjects(t, f)
	live := f.engineObjects(ctx, t)
	for _, o := range live {
		delete(want, o.GetName())
		if e.unsettled(o, f.commit) != "" { // it does not notice its CRDs
			f.annotate(ctx, t, applications, "argocd", o.GetName(), "argocd.argoproj.io/refresh", "normal")
		}
	}
	if len(want) == 0 && len(live) == len(e.engineObjects(t, f)) {
		return
	}
	list, err := f.client.Resource(applicationSets).Namespace("argocd").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; e.reads(o, f) {
			f.annotate(ctx, t, applicationSets, "argocd", o.GetName(), "argocd.argoproj.io/application-set-refresh", "true")
		}
	}
}

func (argoEngine) unsettled(o *unstructured.Unstructured, commit string) string {
	if revision(o) == commit && isSettled(o) {
		return ""
	}
	return o.GetName() + ": " + unsettledReason(o)
}

func (argoEngine) owns(by, o *unstructured.Unstructured) bool {
	resources, _, _ := unstructured.NestedSlice(by.Object, "status", "resources")
	return slices.ContainsFunc(resources, func(r any) bool {
		fields, _ := r.(map[string]any)
		return fields["kind"] == o.GetKind() && fields["name"] == o.GetName()
	})
}

func (argoEngine) syncAgain(ctx context.Context, t *testing.T, f *pieceFleet, o *unstructured.Unstructured) {
	t.Helper()
	first := operationEnd(o)
	time.Sleep(time.Second) // operations are distinguished by seconds
	options, _, _ := unstructured.NestedSlice(o.Object, "spec", "syncPolicy", "syncOptions")
	operation, err := json.Marshal(map[string]any{"operation": map[string]any{"sync": map[string]any{"prune": true, "syncOptions": options}}})
	if err != nil {
		t.Fatal(err)
	}
	f.patch(ctx, t, applications, "argocd", o.GetName(), string(operation))
	f.await(ctx, t, "synced again", func() string {
		live, err := f.client.Resource(applications).Namespace("argocd").Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !isSettled(live) || operationEnd(live) == first {
			return unsettledReason(live)
		}
		return ""
	})
}

func (argoEngine) register(ctx context.Context, t *testing.T, f *pieceFleet, name string, cluster *harness.Cluster) pieceCluster {
	t.Helper()
	secret := clusterSecret(t, member{cluster: cluster, name: name})
	if _, err := f.live.Apply(ctx, []*unstructured.Unstructured{secret}); err != nil {
		t.Fatal(err)
	}
	return pieceCluster{name, fmt.Sprintf(", server: %q", cluster.RESTConfig.Host)}
}

// fluxEngine is Flux.
type fluxEngine struct{}

func (fluxEngine) settings(f *pieceFleet) engineSettings {
	return engineSettings{"flux", fmt.Sprintf("sourceRef: {name: %s}", fluxSource(f.state))}
}

// parents returns the Kustomization of "flux bootstrap", which applies flux/.
func (fluxEngine) parents(t *testing.T, f *pieceFleet) []*unstructured.Unstructured {
	t.Helper()
	return objects(t, strings.NewReplacer("NAME", fluxSource(f.state), "AT", f.at).Replace(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 30s
  prune: true
  sourceRef: {kind: GitRepository, name: NAME}
  path: ./ATrendered/flux
`))
}

func (e fluxEngine) engineObjects(t *testing.T, f *pieceFleet) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range f.parents {
		out[o.GetName()] = ""
	}
	for _, parent := range f.tree.manifestsOf(t, "flux") {
		out[parent.GetName()] = pieceOf(parent.GetName())
		dir, _, _ := unstructured.NestedString(parent.Object, "spec", "path")
		owner, _, _ := unstructured.NestedString(parent.Object, "spec", "postBuild", "substitute", "quayside_owner")
		dir = strings.TrimPrefix(dir, "./"+f.at+"rendered/")
		if !strings.HasPrefix(dir, "pieces/") {
			continue
		}
		for _, o := range f.tree.manifestsOf(t, dir) {
			name := strings.ReplaceAll(o.GetName(), "${quayside_owner}", owner)
			out[name] = pieceOf(name)
			if pkg, is := strings.CutSuffix(out[name], "--crds"); is {
				out[name] = fluxSource(f.state) + "." + pkg
			}
		}
	}
	return out
}

// fluxSource returns the name of the environment's GitRepository. This name remains the same when the
// environment is renamed.
func fluxSource(s pieceState) string {
	name, _, _ := strings.Cut(s.environment, "-")
	return name
}

var (
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
)

func (fluxEngine) resource() (schema.GroupVersionResource, string) {
	return kustomizations, "flux-system"
}

func (fluxEngine) follow(ctx context.Context, t *testing.T, f *pieceFleet) {
	t.Helper()
	source := objects(t, fmt.Sprintf(fleet, f.repository.url))
	source[0].SetName(fluxSource(f.state))
	if _, err := f.live.Apply(ctx, source); err != nil {
		t.Fatal(err)
	}
}

func (fluxEngine) reads(o *unstructured.Unstructured, f *pieceFleet) bool {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "sourceRef", "name")
	return name == fluxSource(f.state)
}

func (fluxEngine) refresh(ctx context.Context, t *testing.T, f *pieceFleet) {
	t.Helper()
	f.annotate(ctx, t, gitRepositories, "flux-system", fluxSource(f.state), "reconcile.fluxcd.io/requestedAt", f.commit)
}

func (fluxEngine) unsettled(o *unstructured.Unstructured, commit string) string {
	applied, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedRevision")
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	ready, message, _ := harness.Condition(o, "Ready")
	if strings.HasSuffix(applied, commit) && ready == "True" && observed == o.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("%s: at %q, Ready is %s: %s\n", o.GetName(), applied, ready, message)
}

func (fluxEngine) owns(by, o *unstructured.Unstructured) bool {
	entries, _, _ := unstructured.NestedSlice(by.Object, "status", "inventory", "entries")
	kind := o.GroupVersionKind()
	id := strings.Join([]string{o.GetNamespace(), o.GetName(), kind.Group, kind.Kind}, "_")
	return slices.ContainsFunc(entries, func(e any) bool {
		fields, _ := e.(map[string]any)
		return fields["id"] == id
	})
}

func (fluxEngine) syncAgain(ctx context.Context, t *testing.T, f *pieceFleet, o *unstructured.Unstructured) {
	t.Helper()
	request := fmt.Sprint(time.Now().UnixNano())
	f.annotate(ctx, t, kustomizations, "flux-system", o.GetName(), "reconcile.fluxcd.io/requestedAt", request)
	f.await(ctx, t, "synced again", func() string {
		live, err := f.client.Resource(kustomizations).Namespace("flux-system").Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		handled, _, _ := unstructured.NestedString(live.Object, "status", "lastHandledReconcileAt")
		if ready, message, _ := harness.Condition(live, "Ready"); ready != "True" || handled != request {
			return fmt.Sprintf("%s: Ready is %s: %s", o.GetName(), ready, message)
		}
		return ""
	})
}

func (fluxEngine) register(ctx context.Context, t *testing.T, f *pieceFleet, name string, cluster *harness.Cluster) pieceCluster {
	t.Helper()
	login, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secret := objects(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"-kubeconfig, namespace: flux-system}}")[0]
	secret.Object["stringData"] = map[string]any{"value": string(login)}
	if _, err := f.live.Apply(ctx, []*unstructured.Unstructured{secret}); err != nil {
		t.Fatal(err)
	}
	return pieceCluster{name, ", kubeConfig: " + name + "-kubeconfig"}
}
