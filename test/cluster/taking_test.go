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

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestTakingTheTree has Flux, then Argo CD, take the tree of operators that left OLM, in
// one cluster, each with the declarations of a part of them in its hands before. What a
// tool writes is its own bookkeeping and nothing else, and only once.
func TestTakingTheTree(t *testing.T) {
	t.Parallel() // it has servers of its own
	fluxHas, argoHas := []string{"argocd", "grafana"}, []string{"aggregated", "rabbitmq", "windup"}
	w := restoreFor(t, append(slices.Clone(fluxHas), argoHas...))
	ctx := within(t, 10*time.Minute)
	w.settle(ctx, t)
	w.taken(ctx, t, taking{tool: &fluxTaker{}, namespaces: fluxHas, declared: fluxHas[1:]})
	w.taken(ctx, t, taking{tool: &argoTaker{}, namespaces: argoHas, declared: argoHas[1:], cleanedUp: true})
}

// restoreFor brings back some of the corpus's clusters in one.
func restoreFor(t *testing.T, namespaces []string) *restored {
	t.Helper()
	var files []string
	for _, namespace := range namespaces {
		files = append(files, namespace+"/before.json")
	}
	return restore(within(t, 6*time.Minute), t, dumps(t), files, gitops{profile: "plain"}, harness.Options{})
}

// taking is how a tool takes the tree of some operators.
type taking struct {
	tool       taker
	namespaces []string // of the operators
	declared   []string // those of them whose declarations the tool applied before, and prunes
	cleanedUp  bool     // what OLM left is cleaned up before the tool takes the tree, and not after
}

// taken has the operators of some namespaces leave OLM as docs/adopt.md says, and has the
// tool take the tree.
func (w *restored) taken(ctx context.Context, t *testing.T, k taking) {
	t.Helper()
	repository := newRepository(t)
	k.tool.start(ctx, t, w.cluster, repository.url)
	operators := "[" + strings.Join(k.namespaces, "/*, ") + "/*]"
	own := &restored{cluster: w.cluster, config: w.config, client: w.client}
	own.imported(t, dumps(t), gitops{profile: k.tool.profile(), url: repository.url, at: k.tool.at(), automated: k.tool.profile() == "argocd"})
	own.write(t, ".gitignore", ".cache/\ncatalogs/\n*.journal/\n")
	settings, err := os.ReadFile(filepath.Join(own.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own.write(t, "quayside.yaml", strings.Replace(string(settings), "{name: default}", "{name: default, operators: "+operators+"}", 1))
	own.must(t, "render", "--offline")
	own.declare(t, k.declared)
	k.tool.has(ctx, t, "declared", "declared", repository.commit(t, own.dir, "the declarations, as they were for years"))

	written := own.used(ctx, t)
	p := own.plan(t)
	own.leaves(t, k, p)
	own.permitted(ctx, t)
	rights := own.rights(ctx, t, k.namespaces)
	before := own.count(ctx, t)
	for _, o := range own.unguarded(t, k.declared) {
		delete(before, idOf(o))
	}
	watched := own.watch(ctx, t, rights.some(3), written, nil)
	k.tool.suspend(ctx, t, "declared", true)
	own.goes(t, p)
	if k.cleanedUp {
		own.runs(t)
	}

	own.merges(ctx, t, k, repository)
	if !k.cleanedUp {
		own.runs(t)
	}
	watched.end()
	own.idle(ctx, t, k.tool, written)
	own.kept(ctx, t, p, before)
	for _, d := range rights.differences(ctx, t, client(t, w.cluster)) {
		t.Error(d)
	}
	if stdout, stderr, code := own.run(t, "adopt", "verify", "adopt-plan.yaml", "--kubeconfig", own.runner); code != 0 {
		t.Errorf("quayside adopt verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// declare writes what Git has of OLM's, by namespace, and beside it what leaves Git with
// it and is guarded by nobody, so that pruning is seen.
func (w *restored) declare(t *testing.T, namespaces []string) {
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

// unguarded returns what is declared in some namespaces beside OLM's.
func (w *restored) unguarded(t *testing.T, namespaces []string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, namespace := range namespaces {
		out = append(out, objects(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: unguarded, namespace: %s}}", namespace))...)
	}
	return out
}

// leaves wants the plan to take over what is in the tree, and to have a person suspend
// what applies the declarations.
func (w *restored) leaves(t *testing.T, k taking, p planned) {
	t.Helper()
	var leave, suspended []string
	for _, op := range p.Operators {
		leave = append(leave, op.Namespace)
	}
	slices.Sort(leave)
	if d := gocmp.Diff(k.namespaces, slices.Compact(leave)); d != "" {
		t.Errorf("the namespaces that leave OLM (-want +got):\n%s", d)
	}
	for _, s := range p.Steps {
		if s.Name == "suspend" {
			suspended = append(suspended, s.Namespace)
		}
	}
	if d := gocmp.Diff(k.declared, suspended); d != "" {
		t.Errorf("the namespaces whose declarations somebody has to suspend (-want +got):\n%s", d)
	}
}

// goes does the steps of a plan that come before its clean-up.
func (w *restored) goes(t *testing.T, p planned) {
	t.Helper()
	for _, s := range p.Steps {
		if s.Name == "clean-up" {
			return
		}
		args := append(w.running(), "--step", strconv.Itoa(s.Number))
		if s.Manual != "" {
			args = append(args, "--done", strconv.Itoa(s.Number))
		}
		w.must(t, args...)
	}
}

// merges has what left OLM's hands leave Git, and the tree come into it: first whoever
// applied the declarations looks at it, then whoever applies the tree.
func (w *restored) merges(ctx context.Context, t *testing.T, k taking, repository repository) {
	t.Helper()
	was := w.whole(ctx, t)
	for _, namespace := range k.declared {
		files, err := fs.Glob(os.DirFS(w.dir), "declared/"+namespace+".*")
		if err != nil {
			t.Fatal(err)
		}
		w.remove(t, files...)
	}
	commit := repository.commit(t, w.dir, "operators leave OLM")
	k.tool.reads(ctx, t, "declared", commit)
	k.tool.suspend(ctx, t, "declared", false)
	k.tool.reaches(ctx, t, "declared", commit)
	unguarded := w.unguarded(t, k.declared)
	if err := applier(t, w.cluster).AwaitGone(ctx, unguarded); err != nil {
		t.Errorf("what nobody guards is not pruned: %v", err)
	}
	for _, o := range unguarded {
		delete(was, idOf(o))
	}
	w.books(t, k.tool, was, w.whole(ctx, t), nothing, "without the declarations")
	k.tool.has(ctx, t, "root", "rendered/"+k.tool.profile(), commit)
	n := w.books(t, k.tool, was, w.whole(ctx, t), k.tool.books, "with the tree")
	t.Logf("%s took the tree: %d objects bear its mark, %d others were pruned with the declarations", k.tool.profile(), n, len(unguarded))
	if want := len(only(w.rendered(t), k.tool.marks)); n < want {
		t.Errorf("%d objects bear the mark of %s, want %d", n, k.tool.profile(), want)
	}
}

// nothing is what a tool may write that has lost what it applied.
func nothing(string) []string { return nil }

// books wants nothing to have changed but what a tool may write about itself, and
// returns on how many objects it did.
func (w *restored) books(t *testing.T, tool taker, was, is map[string]*unstructured.Unstructured, may func(kind string) []string, when string) int {
	t.Helper()
	n := 0
	for _, id := range slices.Sorted(maps.Keys(was)) {
		before, after := was[id], is[id]
		if tool.own(before) {
			continue
		}
		if after == nil || after.GetUID() != before.GetUID() {
			t.Errorf("%s: %s is gone, or another one", when, id)
			continue
		}
		written := false
		for _, path := range changes(before.Object, after.Object) {
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
		if was[id] == nil && !tool.own(o) {
			t.Errorf("%s: %s is new", when, id)
		}
	}
	return n
}

// idle has a tool apply everything once more, and wants nothing to be written.
func (w *restored) idle(ctx context.Context, t *testing.T, tool taker, written []*unstructured.Unstructured) {
	t.Helper()
	before := w.quiet(ctx, t, tool, written)
	was := w.whole(ctx, t)
	tool.again(ctx, t)
	after := w.quiet(ctx, t, tool, written)
	if maps.Equal(before, after) {
		return
	}
	is := w.whole(ctx, t)
	for id := range after {
		if before[id] != after[id] {
			t.Errorf("a second sync wrote %s (-before +after):\n%s", id, gocmp.Diff(was[id], is[id]))
		}
	}
	for id := range before {
		if after[id] == "" {
			t.Errorf("a second sync deleted %s", id)
		}
	}
}

// quiet returns the version of each object, but of custom resources and the tool's own,
// once nobody has written for a second.
func (w *restored) quiet(ctx context.Context, t *testing.T, tool taker, written []*unstructured.Unstructured) map[string]string {
	t.Helper()
	versions := func() map[string]string {
		list, err := applier(t, w.cluster).List(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, o := range list {
			if !passing(o) && !tool.own(o) {
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
			t.Fatal("somebody writes all the time")
		}
		later := versions()
		if maps.Equal(now, later) {
			return now
		}
		now = later
	}
}

// whole returns every object without its status, by its name.
func (w *restored) whole(ctx context.Context, t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := applier(t, w.cluster).ListWhole(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, o := range list {
		if !passing(o) {
			delete(o.Object, "status")
			out[idOf(o)] = o
		}
	}
	return out
}

// passing reports whether an object comes, goes and changes by itself.
func passing(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "Event", "Lease", "Pod", "EndpointSlice", "Endpoints", "IPAddress", "Job", "PodMetrics", "Node": // Jobs that unpack bundles go in time
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

// tool is a GitOps tool that runs beside a cluster.
type tool interface {
	profile() string
	// at returns the namespace of the tool's own objects.
	at() string
	// start runs the tool, which knows a repository.
	start(ctx context.Context, t *testing.T, cluster *harness.Cluster, url string)
	// has has it apply a directory of the repository under a name, prune what leaves
	// that, and waits until it is at a commit.
	has(ctx context.Context, t *testing.T, name, directory, commit string)
	// reaches waits until what it has by that name is at a commit, and what applies the
	// tree below it.
	reaches(ctx context.Context, t *testing.T, name, commit string)
	// again has it synchronize everything once more.
	again(ctx context.Context, t *testing.T)
}

// taker is a tool that takes the tree of what left OLM.
type taker interface {
	tool
	suspend(ctx context.Context, t *testing.T, name string, on bool)
	// reads has it read a commit, which what it has by that name is not to apply yet.
	reads(ctx context.Context, t *testing.T, name, commit string)
	// books returns what it writes about itself on objects of a kind that it applies, or
	// what a controller of Kubernetes copies of that.
	books(kind string) []string
	// marks reports whether it writes that on an object of the tree.
	marks(o *unstructured.Unstructured) bool
	// own reports whether an object is the tool's own.
	own(o *unstructured.Unstructured) bool
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

func (f *fluxTaker) has(ctx context.Context, t *testing.T, name, directory, commit string) {
	t.Helper()
	if _, err := f.Apply(ctx, append(slices.Clone(f.source), f.kustomization(t, name, directory))); err != nil {
		t.Fatal(err)
	}
	f.reaches(ctx, t, name, commit)
}

func (f *fluxTaker) suspend(ctx context.Context, t *testing.T, name string, on bool) {
	t.Helper()
	if err := f.Merge(ctx, f.kustomization(t, name, ""), map[string]any{"spec": map[string]any{"suspend": on}}); err != nil {
		t.Fatal(err)
	}
}

func (f *fluxTaker) reaches(ctx context.Context, t *testing.T, name, commit string) {
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

func (f *fluxTaker) reads(ctx context.Context, t *testing.T, _, commit string) {
	t.Helper()
	ask(ctx, t, f.Applier, f.source, commit)
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

func (f *fluxTaker) again(ctx context.Context, t *testing.T) {
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

func (f *fluxTaker) books(string) []string {
	return []string{"metadata.labels.kustomize.toolkit.fluxcd.io/name", "metadata.labels.kustomize.toolkit.fluxcd.io/namespace"}
}

func (f *fluxTaker) marks(*unstructured.Unstructured) bool { return true }

func (f *fluxTaker) own(o *unstructured.Unstructured) bool {
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

func (a *argoTaker) has(ctx context.Context, t *testing.T, name, directory, commit string) {
	t.Helper()
	app := objects(t, fmt.Sprintf(rootApplication, a.url))[0]
	app.SetName(name)
	if err := unstructured.SetNestedField(app.Object, directory, "spec", "source", "path"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Apply(ctx, []*unstructured.Unstructured{app}); err != nil {
		t.Fatal(err)
	}
	a.reaches(ctx, t, name, commit)
}

func (a *argoTaker) suspend(ctx context.Context, t *testing.T, name string, on bool) {
	t.Helper()
	var automated any
	if !on {
		automated = map[string]any{"prune": true, "selfHeal": true}
	}
	if err := a.Merge(ctx, application(name), map[string]any{"spec": map[string]any{"syncPolicy": map[string]any{"automated": automated}}}); err != nil {
		t.Fatal(err)
	}
}

func (a *argoTaker) reaches(ctx context.Context, t *testing.T, name, commit string) {
	t.Helper()
	a.refresh(ctx, t, name)
	if name == "declared" { // what it may not prune it goes on to list
		a.await(ctx, t, name, commit, "synced", func(app *unstructured.Unstructured) bool {
			at, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "syncResult", "revision")
			phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
			return at == commit && phase == "Succeeded"
		})
		return
	}
	a.await(ctx, t, name, commit, "settled", settled)
	for _, app := range a.applications(ctx, t) {
		if app.GetName() != "declared" {
			a.await(ctx, t, app.GetName(), commit, "settled", settled)
		}
	}
}

func (a *argoTaker) reads(ctx context.Context, t *testing.T, name, commit string) {
	t.Helper()
	a.refresh(ctx, t, name)
	a.await(ctx, t, name, commit, "compared", func(*unstructured.Unstructured) bool { return true })
}

func (a *argoTaker) refresh(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := a.Merge(ctx, application(name), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"argocd.argoproj.io/refresh": "hard"}}}); err != nil {
		t.Fatal(err)
	}
}

func (a *argoTaker) applications(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	list, err := a.ListGroup(ctx, "argoproj.io")
	if err != nil {
		t.Fatal(err)
	}
	return only(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Application" })
}

// again synchronizes as the Applications say, which leave out what is in sync: applying
// all the same writes kubectl's annotation on what has none, and the status that it
// then holds.
func (a *argoTaker) again(ctx context.Context, t *testing.T) {
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
		at := finished(app)
		a.await(ctx, t, app.GetName(), revision(app), "settled once more", func(app *unstructured.Unstructured) bool { return settled(app) && finished(app) != at })
	}
}

// books names the annotation of kubectl's too, for Argo CD applies as kubectl does. A
// Namespace that it applied before loses its guard with the Application's name. A
// Deployment's annotations are copied to its ReplicaSets.
func (a *argoTaker) books(kind string) []string {
	out := []string{"metadata.annotations.argocd.argoproj.io/tracking-id", "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"}
	if kind == "Namespace" {
		out = append(out, "metadata.annotations.argocd.argoproj.io/sync-options")
	}
	return out
}

// marks leaves out definitions, of which Argo CD takes no note.
func (a *argoTaker) marks(o *unstructured.Unstructured) bool { return !isCRD(o) }

func (a *argoTaker) own(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "argoproj.io" && o.GetNamespace() == "argocd"
}
