package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// TestArgoCDFleet applies the rendered tree to three clusters, with Argo CD's own controllers and a root
// Application. Clusters are added and removed, the environment is renamed, and operators are upgraded, reverted
// and uninstalled. Only the objects that a commit removes may be deleted, and the deletion of objects with data
// waits for confirmation.
func TestArgoCDFleet(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	f := newFleet(t)
	ctx := within(t, 8*time.Minute)

	f.writeClusters(t, "stage", "one")
	if _, err := f.hub.Apply(ctx, objects(t, fmt.Sprintf(rootApplication, f.repository.url))); err != nil {
		t.Fatal(err)
	}
	f.settle(ctx, t, "install")
	f.checkForcedSync(ctx, t)

	f.writeClusters(t, "stage", "one", "two", "three")
	f.settle(ctx, t, "two more clusters")
	installed := f.rendered(t)
	for _, c := range f.clusters {
		awaitRendered(ctx, t, c.Applier, installed, nil)
		if _, err := c.Apply(ctx, objects(t, database)); err != nil {
			t.Fatal(err)
		}
	}
	f.checkForcedSync(ctx, t)

	f.writeClusters(t, "stage", "one", "two")
	f.settleWithoutLoss(ctx, t, "one cluster less")
	f.writeClusters(t, "stage", "one")
	f.settleWithoutLoss(ctx, t, "one cluster left")
	f.writeClusters(t, "stage", "one", "two")
	f.settleWithoutLoss(ctx, t, "one cluster more")
	old, err := f.hub.Get(ctx, newApplication("stage-two-operators"))
	if err != nil {
		t.Fatal(err)
	}
	f.writeClusters(t, "production", "one", "two")
	f.settleWithoutLoss(ctx, t, "another name")
	f.checkOldApplication(ctx, t, old)

	before := f.images(ctx, t)
	f.q.must(t, "resolve", "--offline", "--upgrade")
	f.q.must(t, "render", "--offline")
	f.settleWithoutLoss(ctx, t, "upgrade")
	after := f.images(ctx, t)
	for _, c := range f.clusters {
		if upgraded := before[c.name] != after[c.name]; upgraded != f.listed(c) {
			t.Errorf("%s: upgraded is %t: from %s to %s", c.name, upgraded, before[c.name], after[c.name])
		}
	}

	f.commit = f.repository.revert(t, f.q.dir)
	f.awaitSettled(ctx, t)
	if d := cmp.Diff(before, f.images(ctx, t)); d != "" {
		t.Errorf("images before the upgrade and after its revert (-want +got):\n%s", d)
	}

	f.q.remove(t, "subscriptions/etcd.yaml", "subscriptions/vault.yaml")
	f.q.must(t, "resolve", "--offline", "--upgrade")
	f.q.must(t, "render", "--offline")
	f.commit = f.repository.commit(t, f.q.dir, "uninstall two, upgrade another")
	f.checkUninstall(ctx, t, installed)
	if d := cmp.Diff(after, f.images(ctx, t)); d != "" {
		t.Errorf("images after the uninstall with the upgrade of another operator (-want +got):\n%s", d)
	}
}

// argoFleet is an environment of several clusters. Argo CD runs in the first cluster and synchronizes all of them.
type argoFleet struct {
	hub        hub
	clusters   []member
	q          quayside
	repository repository

	environment string
	names       []string // of the listed clusters
	commit      string   // the last commit
}

// member is one of the clusters.
type member struct {
	*harness.Applier
	cluster     *harness.Cluster
	name        string
	destination string // in Argo CD, as in quayside.yaml
}

// newFleet starts three clusters, and Argo CD in the first of them. Of the other two clusters, one is
// registered by name and one by URL.
func newFleet(t *testing.T) *argoFleet {
	t.Helper()
	harness.Require(t, "argocd")
	f := &argoFleet{repository: newRepository(t), q: newWorkspace(t, build(t), nil)}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(f.q.dir, os.DirFS(filepath.Join(root, "..", "..", "examples", "quickstart"))); err != nil {
		t.Fatal(err)
	}
	f.clusters = []member{{name: "one"}, {name: "two"}, {name: "three"}}
	for i := range slices.Backward(f.clusters) { // Argo CD ends with the first one, before the clusters that it watches
		f.clusters[i].cluster = harness.Start(t, harness.Options{})
		f.clusters[i].Applier = applier(t, f.clusters[i].cluster)
	}
	f.hub = startArgoCD(t, f.clusters[0].cluster)
	f.clusters[1].destination = "destination: two"
	f.clusters[2].destination = fmt.Sprintf("server: %q", f.clusters[2].cluster.RESTConfig.Host)
	for _, c := range f.clusters[1:] {
		if _, err := f.hub.Apply(within(t, time.Minute), []*unstructured.Unstructured{clusterSecret(t, c)}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// clusterSecret returns the Secret that registers a cluster with Argo CD.
func clusterSecret(t *testing.T, m member) *unstructured.Unstructured {
	t.Helper()
	login := m.cluster.RESTConfig
	config, err := json.Marshal(map[string]any{"tlsClientConfig": map[string]any{"caData": login.CAData, "certData": login.CertData, "keyData": login.KeyData}})
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: %[1]s, server: %[2]q, config: %[3]q}
`, m.name, login.Host, config))[0]
}

// rootApplication is the team's own Application, which applies argocd/ of the tree.
const rootApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd}
spec:
  project: default
  source: {repoURL: %q, targetRevision: main, path: rendered/argocd}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`

// writeClusters sets the name and the clusters of the environment.
func (f *argoFleet) writeClusters(t *testing.T, environment string, names ...string) {
	t.Helper()
	f.environment, f.names = environment, names
	var clusters []string
	for _, c := range f.clusters {
		if f.listed(c) {
			clusters = append(clusters, fmt.Sprintf("{name: %s, %s}", c.name, c.destination))
		}
	}
	f.q.write(t, "quayside.yaml", fmt.Sprintf(fleetWorkspace, environment, `{name: quickstart, namespace: olm, source: "oci:catalog"}`, f.repository.url, strings.Join(clusters, ", ")))
	f.q.resolveAndRender(t)
}

func (f *argoFleet) listed(c member) bool { return slices.Contains(f.names, c.name) }

// settle commits the workspace and waits until Argo CD has applied it.
func (f *argoFleet) settle(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	f.commit = f.repository.commit(t, f.q.dir, message)
	f.awaitSettled(ctx, t)
}

// awaitSettled waits until the root and the Applications of the listed clusters are settled at the
// last commit.
func (f *argoFleet) awaitSettled(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range append([]string{"root"}, f.applications()...) {
		f.await(ctx, t, name, "settled", isSettled)
	}
}

// applications returns the names of the Applications of the listed clusters.
func (f *argoFleet) applications() []string {
	var out []string
	for _, name := range f.names {
		out = append(out, fmt.Sprintf("%s-%s-operators", f.environment, name))
	}
	return out
}

// await refreshes an Application until it is at the last commit and satisfies the condition.
func (f *argoFleet) await(ctx context.Context, t *testing.T, name, want string, ready func(app *unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	var asked time.Time
	for {
		app, err := f.hub.Get(ctx, newApplication(name))
		if err == nil && revision(app) == f.commit && ready(app) {
			return app
		}
		if time.Since(asked) > 3*time.Second {
			f.refresh(ctx, t)
			asked = time.Now()
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s is not %s at %s: %v\n%s", name, want, f.commit, err, unsettledReason(app))
		}
	}
}

// refresh refreshes all objects of Argo CD that are not at the last commit. By itself, an ApplicationSet reads
// a new commit only after minutes.
func (f *argoFleet) refresh(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := f.hub.ListGroup(ctx, "argoproj.io")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		switch {
		case o.GetKind() == "ApplicationSet":
			f.annotate(ctx, t, o, "argocd.argoproj.io/application-set-refresh", "true")
		case o.GetKind() == "Application" && revision(o) != f.commit:
			f.annotate(ctx, t, o, "argocd.argoproj.io/refresh", "hard")
		}
	}
}

func (f *argoFleet) annotate(ctx context.Context, t *testing.T, o *unstructured.Unstructured, key, value string) {
	t.Helper()
	err := f.hub.Merge(ctx, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil && !apierrors.IsNotFound(err) { // it may be deleted at any moment
		t.Fatal(err)
	}
}

// checkForcedSync applies all objects again, even objects in sync, and checks that no object changes.
func (f *argoFleet) checkForcedSync(ctx context.Context, t *testing.T) {
	t.Helper()
	before := f.stableContents(ctx, t)
	first := map[string]string{}
	for _, name := range f.applications() {
		app, err := f.hub.Get(ctx, newApplication(name))
		if err != nil {
			t.Fatal(err)
		}
		first[name] = operationEnd(app)
		if err := f.hub.Merge(ctx, app, map[string]any{"operation": map[string]any{"sync": map[string]any{"prune": true}}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range first {
		f.await(ctx, t, name, "settled once more", func(app *unstructured.Unstructured) bool { return isSettled(app) && operationEnd(app) != at })
	}
	if d := cmp.Diff(before, f.stableContents(ctx, t)); d != "" {
		t.Errorf("a second sync changed objects (-before +after):\n%s", d)
	}
}

// operationEnd returns the time at which the Application's last operation ended.
func operationEnd(app *unstructured.Unstructured) string {
	at, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "finishedAt")
	return at
}

// contents contains the UID and resourceVersion of the operators' objects in all clusters, by
// cluster and name.
type contents map[string][2]string

// stableContents returns the contents of the clusters after a second without changes.
func (f *argoFleet) stableContents(ctx context.Context, t *testing.T) contents {
	t.Helper()
	for now := f.readContents(ctx, t); ; {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			t.Fatal("objects of operators keep changing")
		}
		later := f.readContents(ctx, t)
		if maps.Equal(now, later) {
			return now
		}
		now = later
	}
}

// readContents returns the contents of all clusters, including clusters that the environment no longer lists.
func (f *argoFleet) readContents(ctx context.Context, t *testing.T) contents {
	t.Helper()
	out := contents{}
	for _, c := range f.clusters {
		list, err := c.List(ctx, "quayside.dev/package")
		if err != nil {
			t.Fatal(err)
		}
		data, err := c.ListGroup(ctx, "etcd.database.coreos.com")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range append(list, data...) {
			if !strings.HasPrefix(o.GetKind(), "Endpoint") { // controllers copy a Service's labels to them
				out[c.name+": "+harness.Name(o)] = [2]string{string(o.GetUID()), o.GetResourceVersion()}
			}
		}
	}
	return out
}

// settleWithoutLoss settles the fleet. It checks that no cluster has deleted or recreated an object that is
// still rendered.
func (f *argoFleet) settleWithoutLoss(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	before := f.readContents(ctx, t)
	f.settle(ctx, t, message)
	rendered := names(f.rendered(t))
	after := f.stableContents(ctx, t)
	for _, c := range f.clusters {
		for key, o := range before {
			name, own := strings.CutPrefix(key, c.name+": ")
			gone := f.listed(c) && !slices.Contains(rendered, name) && !strings.HasPrefix(name, "EtcdCluster")
			if own && !gone && after[key][0] != o[0] {
				t.Errorf("%s: %s was deleted: the UID was %s, now %q", message, key, o[0], after[key][0])
			}
		}
	}
}

// rendered returns the rendered objects of the listed clusters.
func (f *argoFleet) rendered(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return f.q.rendered(t, "--overlay", f.names[0])
}

// checkOldApplication creates the Application of the environment's old name again, as if it had survived the deletion
// of its ApplicationSet. It checks that this Application leaves all objects to the Application of the new name.
func (f *argoFleet) checkOldApplication(ctx context.Context, t *testing.T, old *unstructured.Unstructured) {
	t.Helper()
	again := newApplication(old.GetName())
	again.Object["spec"] = old.Object["spec"]
	if _, err := f.hub.Apply(ctx, []*unstructured.Unstructured{again}); err != nil {
		t.Fatal(err)
	}
	before := f.stableContents(ctx, t)
	for {
		f.annotate(ctx, t, again, "argocd.argoproj.io/refresh", "hard")
		live, err := f.hub.Get(ctx, again)
		if err != nil {
			t.Fatal(err)
		}
		if said := unsettledReason(live); strings.Contains(said, "ComparisonError") && strings.Contains(said, "argocd/stage: app path does not exist") {
			break
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s is still not settled:\n%s", old.GetName(), unsettledReason(live))
		}
	}
	if d := cmp.Diff(before, f.stableContents(ctx, t)); d != "" {
		t.Errorf("an Application of the old name changed objects (-before +after):\n%s", d)
	}
	f.awaitSettled(ctx, t)
}

// images returns the images of an operator in the clusters.
func (f *argoFleet) images(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range f.clusters {
		out[c.name] = deployedImages(ctx, t, c.cluster, "memcached-operator-system")
	}
	return out
}

// checkUninstall checks that the last commit is applied completely, except that the deletion of one Namespace
// on each cluster waits for confirmation. CRDs always remain, because Argo CD does not record which Application
// applied them.
func (f *argoFleet) checkUninstall(ctx context.Context, t *testing.T, installed []*unstructured.Unstructured) {
	t.Helper()
	for _, name := range f.applications() {
		f.await(ctx, t, name, "waiting for a person", isAwaitingConfirmation)
	}
	held := only(installed, holdsData)
	for i, name := range f.applications() {
		for j, c := range f.clusters {
			switch {
			case !f.listed(c):
				awaitRendered(ctx, t, c.Applier, installed, nil)
			case j < i:
				awaitRendered(ctx, t, c.Applier, f.rendered(t), only(installed, isCRD))
			default:
				awaitRendered(ctx, t, c.Applier, f.rendered(t), held)
				if _, err := c.Get(ctx, objects(t, database)[0]); err != nil {
					t.Errorf("%s: the database after its operator was uninstalled: %v", c.name, err)
				}
			}
		}
		f.annotate(ctx, t, newApplication(name), "argocd.argoproj.io/deletion-approved", time.Now().UTC().Format(time.RFC3339))
		f.await(ctx, t, name, "settled", isSettled)
	}
	for _, c := range f.clusters {
		if f.listed(c) {
			awaitRendered(ctx, t, c.Applier, f.rendered(t), only(installed, isCRD))
		}
	}
}

// isAwaitingConfirmation reports whether an Application waits for confirmation.
func isAwaitingConfirmation(app *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
	message, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "message")
	return phase == "Running" && strings.Contains(strings.ToLower(message), "waiting for pruning confirmation")
}
