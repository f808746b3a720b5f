package cluster_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestTakingTheTree applies the tree of operators that left OLM, with Flux and then with Argo CD, in one
// cluster. Each operator has its own Kustomization or Application. Each tool had applied the OLM declarations
// of some of its operators before. A tool may write only its bookkeeping fields, and only once.
func TestTakingTheTree(t *testing.T) {
	t.Parallel() // has its own servers
	fluxHas, argoHas := []string{"argocd", "grafana"}, []string{"aggregated", "rabbitmq", "windup"}
	w := restoreFor(t, append(slices.Clone(fluxHas), argoHas...))
	w.awaitDeployments(within(t, 10*time.Minute), t)
	w.takeTree(within(t, 10*time.Minute), t, takeover{tool: &fluxTaker{}, namespaces: fluxHas, appliedBefore: fluxHas[1:]})
	w.takeTree(within(t, 10*time.Minute), t, takeover{tool: &argoTaker{}, namespaces: argoHas, appliedBefore: argoHas[1:], cleanedUpFirst: true})
}

// restoreFor restores some of the corpus's clusters in one cluster.
func restoreFor(t *testing.T, namespaces []string) *restoredCluster {
	t.Helper()
	var files []string
	for _, namespace := range namespaces {
		files = append(files, namespace+"/before.json")
	}
	return restoreCluster(within(t, 6*time.Minute), t, readClusters(t), files, gitops{profile: "plain"}, harness.Options{})
}

// takeover describes how a tool takes over the tree of some operators.
type takeover struct {
	tool           taker
	namespaces     []string // of the operators
	appliedBefore  []string // those whose declarations the tool applied before, and prunes
	cleanedUpFirst bool     // OLM's leftovers are cleaned up before the tool takes over the tree, not after
}

// takeTree moves the operators of some namespaces out of OLM, as described in docs/adopt.md, and applies the
// tree with the tool.
func (w *restoredCluster) takeTree(ctx context.Context, t *testing.T, k takeover) {
	t.Helper()
	repository := newRepository(t)
	k.tool.start(ctx, t, w.cluster, repository.url)
	operators := "[" + strings.Join(k.namespaces, "/*, ") + "/*]"
	own := &restoredCluster{cluster: w.cluster, config: w.config, client: w.client}
	own.importWorkspace(t, readClusters(t), gitops{profile: k.tool.profile(), url: repository.url, namespace: k.tool.at(), automated: k.tool.profile() == "argocd", pieces: true})
	own.write(t, ".gitignore", ".cache/\ncatalogs/\n*.journal/\n")
	settings, err := os.ReadFile(filepath.Join(own.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own.write(t, "quayside.yaml", strings.Replace(string(settings), "{name: default}", "{name: default, operators: "+operators+"}", 1))
	own.must(t, "render", "--offline")
	own.writeDeclarations(t, k.appliedBefore)
	k.tool.follow(ctx, t, "declared", "declared", repository.commit(t, own.dir, "the declarations, as they were for years"))

	written := own.createSamples(ctx, t)
	p := own.writePlan(t)
	own.checkTakeover(t, k, p)
	own.createRunner(ctx, t)
	rights := own.operatorRights(ctx, t, k.namespaces)
	before := own.takeCensus(ctx, t)
	for _, o := range own.unguarded(t, k.appliedBefore) {
		delete(before, idOf(o))
	}
	watched := own.watch(ctx, t, rights.sampled(3), written, nil)
	k.tool.suspend(ctx, t, "declared", true)
	own.runBeforeCleanUp(t, p)
	if k.cleanedUpFirst {
		own.finishPlan(t)
	}

	own.mergeTree(ctx, t, k, repository)
	if !k.cleanedUpFirst {
		own.finishPlan(t)
	}
	watched.end()
	own.checkForcedSync(ctx, t, k.tool, written)
	own.checkKept(ctx, t, p, before)
	for _, d := range rights.lostRights(ctx, t, client(t, w.cluster)) {
		t.Error(d)
	}
	if stdout, stderr, code := own.run(t, "adopt", "verify", "adopt-plan.yaml", "--kubeconfig", own.runner); code != 0 {
		t.Errorf("quayside adopt verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// writeDeclarations writes the declarations for OLM in some namespaces. In each namespace, it also writes an
// object that is not guarded against pruning. The deletion of that object proves that pruning works.
func (w *restoredCluster) writeDeclarations(t *testing.T, namespaces []string) {
	t.Helper()
	w.write(t, "declared/others.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: others, namespace: default}}\n")
	for _, o := range manifests(t, filepath.Join(w.dir, "subscriptions")) {
		namespace := o.GetNamespace()
		if o.GetKind() == "Namespace" {
			namespace = o.GetName()
		}
		if !slices.Contains(namespaces, namespace) || o.GetKind() == "CatalogSource" {
			continue
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, fmt.Sprintf("declared/%s.%s.%s.yaml", namespace, o.GetKind(), o.GetName()), string(text))
	}
	for _, o := range w.unguarded(t, namespaces) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, "declared/"+o.GetNamespace()+".unguarded.yaml", string(text))
	}
}

// unguarded returns a declared object for each namespace. These objects have no guard against pruning.
func (w *restoredCluster) unguarded(t *testing.T, namespaces []string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, namespace := range namespaces {
		out = append(out, objects(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: unguarded, namespace: %s}}", namespace))...)
	}
	return out
}

// checkTakeover checks that exactly the operators in k.namespaces leave OLM. In k.appliedBefore, the plan must
// make a person suspend the tool that applies the declarations.
func (w *restoredCluster) checkTakeover(t *testing.T, k takeover, p planOutput) {
	t.Helper()
	var leave, suspended []string
	for _, op := range p.Operators {
		leave = append(leave, op.Namespace)
	}
	slices.Sort(leave)
	if d := gocmp.Diff(k.namespaces, slices.Compact(leave)); d != "" {
		t.Errorf("namespaces that leave OLM (-want +got):\n%s", d)
	}
	for _, s := range p.Steps {
		if s.Name == "suspend" {
			suspended = append(suspended, s.Namespace)
		}
	}
	if d := gocmp.Diff(k.appliedBefore, suspended); d != "" {
		t.Errorf("namespaces whose declarations must be suspended (-want +got):\n%s", d)
	}
}

// runBeforeCleanUp runs the steps of a plan that precede its clean-up.
func (w *restoredCluster) runBeforeCleanUp(t *testing.T, p planOutput) {
	t.Helper()
	for _, s := range p.Steps {
		if s.Name == "clean-up" {
			return
		}
		args := append(w.runArguments(), "--step", strconv.Itoa(s.Number))
		if s.Manual != "" {
			args = append(args, "--done", strconv.Itoa(s.Number))
		}
		w.must(t, args...)
	}
}

// mergeTree removes the declarations from Git, and makes the tool read this commit. It then makes the tool
// apply the tree.
func (w *restoredCluster) mergeTree(ctx context.Context, t *testing.T, k takeover, repository repository) {
	t.Helper()
	was := w.objectsWithoutStatus(ctx, t)
	for _, namespace := range k.appliedBefore {
		files, err := fs.Glob(os.DirFS(w.dir), "declared/"+namespace+".*")
		if err != nil {
			t.Fatal(err)
		}
		w.remove(t, files...)
	}
	commit := repository.commit(t, w.dir, "operators leave OLM")
	k.tool.fetch(ctx, t, "declared", commit)
	k.tool.suspend(ctx, t, "declared", false)
	k.tool.awaitCommit(ctx, t, "declared", commit)
	unguarded := w.unguarded(t, k.appliedBefore)
	if err := applier(t, w.cluster).AwaitGone(ctx, unguarded); err != nil {
		t.Errorf("an unguarded object is not pruned: %v", err)
	}
	for _, o := range unguarded {
		delete(was, idOf(o))
	}
	w.checkBookkeeping(t, k.tool, was, w.objectsWithoutStatus(ctx, t), noFields, "without the declarations")
	k.tool.follow(ctx, t, "root", "rendered/"+k.tool.profile(), commit)
	n := w.checkBookkeeping(t, k.tool, was, w.objectsWithoutStatus(ctx, t), k.tool.ownFields, "with the tree")
	t.Logf("%s applied the tree: %d objects have its mark, %d others were pruned with the declarations", k.tool.profile(), n, len(unguarded))
	if want := len(only(w.rendered(t), k.tool.isMarked)); n < want {
		t.Errorf("%d objects have the mark of %s, want %d", n, k.tool.profile(), want)
	}
}

// noFields returns no fields: the removal of declarations must not make a tool write any field.
func noFields(string) []string { return nil }

// checkBookkeeping checks that only the tool's own bookkeeping has changed, and returns the number
// of objects with such changes.
func (w *restoredCluster) checkBookkeeping(t *testing.T, tool taker, was, is map[string]*unstructured.Unstructured, may func(kind string) []string, when string) int {
	t.Helper()
	n := 0
	for _, id := range slices.Sorted(maps.Keys(was)) {
		before, after := was[id], is[id]
		if tool.isOwn(before) {
			continue
		}
		if after == nil || after.GetUID() != before.GetUID() {
			t.Errorf("%s: %s was deleted or recreated", when, id)
			continue
		}
		written := false
		for _, path := range changedPaths(before.Object, after.Object) {
			switch {
			case path == "metadata.annotations.test.example/round":
			case slices.Contains(may(after.GetKind()), path):
				written = true
			default:
				t.Errorf("%s: %s: %s changed", when, id, path)
			}
		}
		if written {
			n++
		}
	}
	for id, o := range is {
		if was[id] == nil && !tool.isOwn(o) {
			t.Errorf("%s: %s is new", when, id)
		}
	}
	return n
}

// checkForcedSync applies all objects again with a tool, and checks that no object changes.
func (w *restoredCluster) checkForcedSync(ctx context.Context, t *testing.T, tool taker, written []*unstructured.Unstructured) {
	t.Helper()
	before := w.stableVersions(ctx, t, tool, written)
	was := w.objectsWithoutStatus(ctx, t)
	tool.syncAll(ctx, t)
	after := w.stableVersions(ctx, t, tool, written)
	if maps.Equal(before, after) {
		return
	}
	is := w.objectsWithoutStatus(ctx, t)
	for id := range after {
		if before[id] != after[id] {
			t.Errorf("a second sync changed %s (-before +after):\n%s", id, gocmp.Diff(was[id], is[id]))
		}
	}
	for id := range before {
		if after[id] == "" {
			t.Errorf("a second sync deleted %s", id)
		}
	}
}

// stableVersions waits until no object changes for a second, and returns the version of each object. It omits
// custom resources and the tool's own objects.
func (w *restoredCluster) stableVersions(ctx context.Context, t *testing.T, tool taker, written []*unstructured.Unstructured) map[string]string {
	t.Helper()
	versions := func() map[string]string {
		list, err := applier(t, w.cluster).List(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, o := range list {
			if !isTransient(o) && !tool.isOwn(o) {
				out[idOf(o)] = o.GetResourceVersion()
			}
		}
		for _, o := range written {
			delete(out, idOf(o))
		}
		return out
	}
	for now := versions(); ; {
		if err := sleep(ctx, time.Second); err != nil {
			t.Fatal("objects keep changing")
		}
		later := versions()
		if maps.Equal(now, later) {
			return now
		}
		now = later
	}
}

// objectsWithoutStatus returns every object without its status, by name.
func (w *restoredCluster) objectsWithoutStatus(ctx context.Context, t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := applier(t, w.cluster).ListWhole(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, o := range list {
		if !isTransient(o) {
			delete(o.Object, "status")
			out[idOf(o)] = o
		}
	}
	return out
}

// isTransient reports whether an object is of a kind that Kubernetes itself creates, changes and deletes.
func isTransient(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "Event", "Lease", "Pod", "EndpointSlice", "Endpoints", "IPAddress", "Job", "PodMetrics", "Node": // Jobs that unpack bundles are eventually deleted
		return true
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tool is a GitOps tool for a cluster.
type tool interface {
	profile() string
	// at returns the namespace of the tool's own objects.
	at() string
	// start starts the tool with a repository.
	start(ctx context.Context, t *testing.T, cluster *harness.Cluster, url string)
	// follow creates the tool's object with this name, which applies and prunes a directory of the repository. It
	// waits until the tool has applied the commit.
	follow(ctx context.Context, t *testing.T, name, directory, commit string)
	// awaitCommit waits until the tool's object with that name is at a commit. If that object applies a tree,
	// it also waits for the tool's objects in the tree.
	awaitCommit(ctx context.Context, t *testing.T, name, commit string)
	// syncAll synchronizes all objects once more.
	syncAll(ctx context.Context, t *testing.T)
}

// taker is a tool that applies the tree of operators that left OLM.
type taker interface {
	tool
	suspend(ctx context.Context, t *testing.T, name string, on bool)
	// fetch makes the tool read a commit for the tool's object with that name, but not yet apply the commit.
	fetch(ctx context.Context, t *testing.T, name, commit string)
	// ownFields returns the bookkeeping fields that the tool writes to objects of a kind. It includes fields that
	// controllers of Kubernetes copy to these objects.
	ownFields(kind string) []string
	// isMarked reports whether the tool writes bookkeeping fields to an object of the tree.
	isMarked(o *unstructured.Unstructured) bool
	// isOwn reports whether an object is the tool's own.
	isOwn(o *unstructured.Unstructured) bool
}

// fluxTaker is Flux's source-controller and kustomize-controller.
type fluxTaker struct {
	*harness.Applier
	source []*unstructured.Unstructured
}

func (f *fluxTaker) profile() string { return "flux" }
func (f *fluxTaker) at() string      { return "flux-system" }

func (f *fluxTaker) start(_ context.Context, t *testing.T, cluster *harness.Cluster, url string) {
	t.Helper()
	f.Applier = applier(t, cluster)
	startFlux(t, cluster, harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller"))
	f.source = objects(t, fmt.Sprintf(fleet, url))
}

func (f *fluxTaker) kustomization(t *testing.T, name, directory string) *unstructured.Unstructured {
	t.Helper()
	return objects(t, fmt.Sprintf(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec: {interval: 1h, retryInterval: 5s, prune: true, wait: true, path: ./%s, sourceRef: {kind: GitRepository, name: fleet}}
`, name, directory))[0]
}

func (f *fluxTaker) follow(ctx context.Context, t *testing.T, name, directory, commit string) {
	t.Helper()
	if _, err := f.Apply(ctx, append(slices.Clone(f.source), f.kustomization(t, name, directory))); err != nil {
		t.Fatal(err)
	}
	f.awaitCommit(ctx, t, name, commit)
}

func (f *fluxTaker) suspend(ctx context.Context, t *testing.T, name string, on bool) {
	t.Helper()
	if err := f.Merge(ctx, f.kustomization(t, name, ""), map[string]any{"spec": map[string]any{"suspend": on}}); err != nil {
		t.Fatal(err)
	}
}

func (f *fluxTaker) awaitCommit(ctx context.Context, t *testing.T, name, commit string) {
	t.Helper()
	reconcile(ctx, t, f.Applier, append(slices.Clone(f.source), f.kustomization(t, name, "")), commit)
	if name == "declared" {
		return
	}
	list, err := f.ListGroup(ctx, "kustomize.toolkit.fluxcd.io")
	if err != nil {
		t.Fatal(err)
	}
	reconcile(ctx, t, f.Applier, only(list, func(o *unstructured.Unstructured) bool { return o.GetName() != "declared" }), commit)
}

func (f *fluxTaker) fetch(ctx context.Context, t *testing.T, _, commit string) {
	t.Helper()
	requestReconciliation(ctx, t, f.Applier, f.source, commit)
	for {
		live, err := f.Get(ctx, f.source[0])
		if err != nil {
			t.Fatal(err)
		}
		if at, _, _ := unstructured.NestedString(live.Object, "status", "artifact", "revision"); strings.HasSuffix(at, commit) {
			return
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			t.Fatalf("Flux does not read %s: %v", commit, live.Object["status"])
		}
	}
}

func (f *fluxTaker) syncAll(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := f.ListGroup(ctx, "kustomize.toolkit.fluxcd.io")
	if err != nil {
		t.Fatal(err)
	}
	token := time.Now().Format(time.RFC3339Nano)
	for _, o := range list {
		if err := f.Merge(ctx, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"reconcile.fluxcd.io/requestedAt": token}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range list {
		for {
			live, err := f.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			handled, _, _ := unstructured.NestedString(live.Object, "status", "lastHandledReconcileAt")
			if ready, _, _ := harness.Condition(live, "Ready"); handled == token && ready == "True" {
				break
			}
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				t.Fatalf("%s is not applied again: %v", harness.Name(o), live.Object["status"])
			}
		}
	}
}

func (f *fluxTaker) ownFields(string) []string {
	return []string{"metadata.labels.kustomize.toolkit.fluxcd.io/name", "metadata.labels.kustomize.toolkit.fluxcd.io/namespace"}
}

func (f *fluxTaker) isMarked(*unstructured.Unstructured) bool { return true }

func (f *fluxTaker) isOwn(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GroupVersionKind().Group, ".toolkit.fluxcd.io")
}

// argoTaker is Argo CD.
type argoTaker struct {
	hub
	url string
}

func (a *argoTaker) profile() string { return "argocd" }
func (a *argoTaker) at() string      { return "argocd" }

func (a *argoTaker) start(_ context.Context, t *testing.T, cluster *harness.Cluster, url string) {
	t.Helper()
	a.hub, a.url = startArgoCD(t, cluster), url
}

func (a *argoTaker) follow(ctx context.Context, t *testing.T, name, directory, commit string) {
	t.Helper()
	app := objects(t, fmt.Sprintf(rootApplication, a.url))[0]
	app.SetName(name)
	if err := unstructured.SetNestedField(app.Object, directory, "spec", "source", "path"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Apply(ctx, []*unstructured.Unstructured{app}); err != nil {
		t.Fatal(err)
	}
	a.awaitCommit(ctx, t, name, commit)
}

func (a *argoTaker) suspend(ctx context.Context, t *testing.T, name string, on bool) {
	t.Helper()
	var automated any
	if !on {
		automated = map[string]any{"prune": true, "selfHeal": true}
	}
	if err := a.Merge(ctx, newApplication(name), map[string]any{"spec": map[string]any{"syncPolicy": map[string]any{"automated": automated}}}); err != nil {
		t.Fatal(err)
	}
}

func (a *argoTaker) awaitCommit(ctx context.Context, t *testing.T, name, commit string) {
	t.Helper()
	a.refresh(ctx, t, name)
	if name == "declared" { // objects that it must not prune remain listed
		a.await(ctx, t, name, commit, "synced", func(app *unstructured.Unstructured) bool {
			at, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "syncResult", "revision")
			phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
			return at == commit && phase == "Succeeded"
		})
		return
	}
	a.await(ctx, t, name, commit, "settled", isSettled)
	settled := map[string]bool{"declared": true, name: true}
	for { // an Application can apply ApplicationSets, which create Applications
		waiting, again := map[types.UID]string{}, false // ApplicationSets without an Application
		list := a.argoObjects(ctx, t)
		for _, o := range list {
			switch {
			case o.GetKind() == "ApplicationSet":
				waiting[o.GetUID()] = o.GetName()
			case o.GetKind() == "Application" && !settled[o.GetName()]:
				a.await(ctx, t, o.GetName(), commit, "settled", isSettled)
				settled[o.GetName()], again = true, true
			}
		}
		for _, o := range list {
			for _, owner := range o.GetOwnerReferences() {
				delete(waiting, owner.UID)
			}
		}
		if !again && len(waiting) == 0 {
			return
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			t.Fatalf("no Application of %v: %v", waiting, err)
		}
	}
}

func (a *argoTaker) fetch(ctx context.Context, t *testing.T, name, commit string) {
	t.Helper()
	a.refresh(ctx, t, name)
	a.await(ctx, t, name, commit, "compared", func(*unstructured.Unstructured) bool { return true })
}

func (a *argoTaker) refresh(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := a.Merge(ctx, newApplication(name), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"argocd.argoproj.io/refresh": "hard"}}}); err != nil {
		t.Fatal(err)
	}
}

func (a *argoTaker) argoObjects(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	list, err := a.ListGroup(ctx, "argoproj.io")
	if err != nil {
		t.Fatal(err)
	}
	return only(list, a.isOwn)
}

func (a *argoTaker) applications(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return only(a.argoObjects(ctx, t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Application" })
}

// syncAll synchronizes only objects that are out of sync, like the Applications do. A forced apply would add
// kubectl's annotation, with the current status, to objects without this annotation.
func (a *argoTaker) syncAll(ctx context.Context, t *testing.T) {
	t.Helper()
	list := a.applications(ctx, t)
	for _, app := range list {
		options, _, _ := unstructured.NestedStringSlice(app.Object, "spec", "syncPolicy", "syncOptions")
		sync := map[string]any{"prune": true, "syncOptions": options}
		if err := a.Merge(ctx, app, map[string]any{"operation": map[string]any{"sync": sync}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, app := range list {
		at := operationEnd(app)
		a.await(ctx, t, app.GetName(), revision(app), "settled once more", func(app *unstructured.Unstructured) bool { return isSettled(app) && operationEnd(app) != at })
	}
}

// ownFields includes kubectl's annotation, because Argo CD applies objects in the same way as kubectl. A
// Namespace that Argo CD applied before loses its guard against pruning together with the name of the
// Application. A Deployment's annotations are copied to its ReplicaSets.
func (a *argoTaker) ownFields(kind string) []string {
	out := []string{"metadata.annotations.argocd.argoproj.io/tracking-id", "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"}
	if kind == "Namespace" {
		out = append(out, "metadata.annotations.argocd.argoproj.io/sync-options")
	}
	return out
}

// isMarked excludes CRDs, which Argo CD does not track.
func (a *argoTaker) isMarked(o *unstructured.Unstructured) bool { return !isCRD(o) }

func (a *argoTaker) isOwn(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "argoproj.io" && o.GetNamespace() == "argocd"
}
