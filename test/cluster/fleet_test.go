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

// TestArgoCDFleet has Argo CD's own controllers keep three clusters as Git has
// them, by nothing but what is rendered and a root Application over it. Clusters
// come and go, the environment gets another name, operators are upgraded,
// reverted and uninstalled: nothing is deleted but what the commit takes away,
// and what holds data waits for a person.
func TestArgoCDFleet(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	f := newFleet(t)
	ctx := within(t, 8*time.Minute)

	f.list(t, "stage", "one")
	if _, err := f.hub.Apply(ctx, objects(t, fmt.Sprintf(rootApplication, f.repository.url))); err != nil {
		t.Fatal(err)
	}
	f.settle(ctx, t, "install")
	f.again(ctx, t)

	f.list(t, "stage", "one", "two", "three")
	f.settle(ctx, t, "two more clusters")
	installed := f.rendered(t)
	for _, c := range f.clusters {
		sameAsRendered(ctx, t, c.Applier, installed, nil)
		if _, err := c.Apply(ctx, objects(t, database)); err != nil {
			t.Fatal(err)
		}
	}
	f.again(ctx, t)

	f.list(t, "stage", "one", "two")
	f.keeps(ctx, t, "one cluster less")
	f.list(t, "stage", "one")
	f.keeps(ctx, t, "one cluster left")
	f.list(t, "stage", "one", "two")
	f.keeps(ctx, t, "one cluster more")
	old, err := f.hub.Get(ctx, application("stage-two-operators"))
	if err != nil {
		t.Fatal(err)
	}
	f.list(t, "production", "one", "two")
	f.keeps(ctx, t, "another name")
	f.outlives(ctx, t, old)

	before := f.images(ctx, t)
	f.q.must(t, "resolve", "--offline", "--upgrade")
	f.q.must(t, "render", "--offline")
	f.keeps(ctx, t, "upgrade")
	after := f.images(ctx, t)
	for _, c := range f.clusters {
		if upgraded := before[c.name] != after[c.name]; upgraded != f.listed(c) {
			t.Errorf("%s: upgraded is %t: from %s to %s", c.name, upgraded, before[c.name], after[c.name])
		}
	}

	f.commit = f.repository.revert(t, f.q.dir)
	f.reaches(ctx, t)
	if d := cmp.Diff(before, f.images(ctx, t)); d != "" {
		t.Errorf("the images before the upgrade and after it was reverted (-want +got):\n%s", d)
	}

	f.q.remove(t, "subscriptions/etcd.yaml", "subscriptions/vault.yaml")
	f.q.must(t, "resolve", "--offline", "--upgrade")
	f.q.must(t, "render", "--offline")
	f.commit = f.repository.commit(t, f.q.dir, "uninstall two, upgrade another")
	f.uninstalls(ctx, t, installed)
	if d := cmp.Diff(after, f.images(ctx, t)); d != "" {
		t.Errorf("beside the uninstall another operator was to be upgraded (-want +got):\n%s", d)
	}
}

// argoFleet is an environment of several clusters, which Argo CD on the first one
// keeps as they are in Git.
type argoFleet struct {
	hub        hub
	clusters   []member
	q          quayside
	repository repository

	environment string
	names       []string // of the clusters that are listed
	commit      string   // the last one
}

// member is one of the clusters.
type member struct {
	*harness.Applier
	cluster *harness.Cluster
	name    string
	place   string // where Argo CD has it, as in quayside.yaml
}

// newFleet starts three clusters, and Argo CD, which knows one of them as its
// own, another by its name, the third by its URL.
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
	for i := range slices.Backward(f.clusters) { // Argo CD goes with the first one, before those that it watches
		f.clusters[i].cluster = harness.Start(t, harness.Options{})
		f.clusters[i].Applier = applier(t, f.clusters[i].cluster)
	}
	f.hub = startArgoCD(t, f.clusters[0].cluster)
	f.clusters[1].place = "destination: two"
	f.clusters[2].place = fmt.Sprintf("server: %q", f.clusters[2].cluster.RESTConfig.Host)
	for _, c := range f.clusters[1:] {
		if _, err := f.hub.Apply(within(t, time.Minute), []*unstructured.Unstructured{registration(t, c)}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// registration returns the Secret by which Argo CD knows a cluster.
func registration(t *testing.T, m member) *unstructured.Unstructured {
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

// rootApplication is what a team adds of its own: it applies argocd/ of the tree.
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

// list has the environment, by that name, consist of these clusters.
func (f *argoFleet) list(t *testing.T, environment string, names ...string) {
	t.Helper()
	f.environment, f.names = environment, names
	var clusters []string
	for _, c := range f.clusters {
		if f.listed(c) {
			clusters = append(clusters, fmt.Sprintf("{name: %s, %s}", c.name, c.place))
		}
	}
	f.q.write(t, "quayside.yaml", fmt.Sprintf(fleetWorkspace, environment, `{name: quickstart, namespace: olm, source: "oci:catalog"}`, f.repository.url, strings.Join(clusters, ", ")))
	f.q.settle(t)
}

func (f *argoFleet) listed(c member) bool { return slices.Contains(f.names, c.name) }

// settle commits the workspace and waits until Argo CD has done what is to be
// done.
func (f *argoFleet) settle(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	f.commit = f.repository.commit(t, f.q.dir, message)
	f.reaches(ctx, t)
}

// reaches waits until the root and the Application of each listed cluster are
// settled at the last commit.
func (f *argoFleet) reaches(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range append([]string{"root"}, f.applications()...) {
		f.await(ctx, t, name, "settled", settled)
	}
}

// applications returns the names of those of the listed clusters.
func (f *argoFleet) applications() []string {
	var out []string
	for _, name := range f.names {
		out = append(out, fmt.Sprintf("%s-%s-operators", f.environment, name))
	}
	return out
}

// await waits until an Application is as the condition wants it at the last
// commit, and has Argo CD look at Git again until then.
func (f *argoFleet) await(ctx context.Context, t *testing.T, name, want string, ready func(app *unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	var asked time.Time
	for {
		app, err := f.hub.Get(ctx, application(name))
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
			t.Fatalf("%s is not %s at %s: %v\n%s", name, want, f.commit, err, unsettled(app))
		}
	}
}

// refresh has Argo CD look again at what is not yet at the last commit: an
// ApplicationSet of its own accord does so after minutes only.
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
	if err != nil && !apierrors.IsNotFound(err) { // it may go at any moment
		t.Fatal(err)
	}
}

// again has everything applied once more, in sync or not, and wants nothing to
// be written.
func (f *argoFleet) again(ctx context.Context, t *testing.T) {
	t.Helper()
	before := f.quiet(ctx, t)
	first := map[string]string{}
	for _, name := range f.applications() {
		app, err := f.hub.Get(ctx, application(name))
		if err != nil {
			t.Fatal(err)
		}
		first[name] = finished(app)
		if err := f.hub.Merge(ctx, app, map[string]any{"operation": map[string]any{"sync": map[string]any{"prune": true}}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range first {
		f.await(ctx, t, name, "settled once more", func(app *unstructured.Unstructured) bool { return settled(app) && finished(app) != at })
	}
	if d := cmp.Diff(before, f.quiet(ctx, t)); d != "" {
		t.Errorf("a second sync wrote (-before +after):\n%s", d)
	}
}

// finished returns when the last operation came to its end.
func finished(app *unstructured.Unstructured) string {
	at, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "finishedAt")
	return at
}

// holding is what clusters hold of the operators, and for them: of each object
// its UID and its resourceVersion, by its cluster and its name.
type holding map[string][2]string

// quiet returns what the clusters hold once nobody writes to it for a second.
func (f *argoFleet) quiet(ctx context.Context, t *testing.T) holding {
	t.Helper()
	for now := f.holds(ctx, t); ; {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			t.Fatal("somebody writes to what operators consist of all the time")
		}
		later := f.holds(ctx, t)
		if maps.Equal(now, later) {
			return now
		}
		now = later
	}
}

// holds returns what all clusters hold, those that are not listed included.
func (f *argoFleet) holds(ctx context.Context, t *testing.T) holding {
	t.Helper()
	out := holding{}
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

// keeps settles, and wants no object to be gone or to be another one, in any
// cluster, that is still rendered.
func (f *argoFleet) keeps(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	before := f.holds(ctx, t)
	f.settle(ctx, t, message)
	rendered := names(f.rendered(t))
	after := f.quiet(ctx, t)
	for _, c := range f.clusters {
		for key, o := range before {
			name, own := strings.CutPrefix(key, c.name+": ")
			gone := f.listed(c) && !slices.Contains(rendered, name) && !strings.HasPrefix(name, "EtcdCluster")
			if own && !gone && after[key][0] != o[0] {
				t.Errorf("%s: %s was deleted: its UID was %s and is %q", message, key, o[0], after[key][0])
			}
		}
	}
}

// rendered returns what each of the listed clusters gets.
func (f *argoFleet) rendered(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return f.q.rendered(t, "--overlay", f.names[0])
}

// outlives has an Application outlive the name of its environment, as it may
// where an ApplicationSet that deletes none is deleted, and wants it to leave
// everything to the one of the new name.
func (f *argoFleet) outlives(ctx context.Context, t *testing.T, old *unstructured.Unstructured) {
	t.Helper()
	again := application(old.GetName())
	again.Object["spec"] = old.Object["spec"]
	if _, err := f.hub.Apply(ctx, []*unstructured.Unstructured{again}); err != nil {
		t.Fatal(err)
	}
	before := f.quiet(ctx, t)
	for {
		f.annotate(ctx, t, again, "argocd.argoproj.io/refresh", "hard")
		live, err := f.hub.Get(ctx, again)
		if err != nil {
			t.Fatal(err)
		}
		if said := unsettled(live); strings.Contains(said, "ComparisonError") && strings.Contains(said, "argocd/stage: app path does not exist") {
			break
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s still finds something to do:\n%s", old.GetName(), unsettled(live))
		}
	}
	if d := cmp.Diff(before, f.quiet(ctx, t)); d != "" {
		t.Errorf("an Application of the old name wrote (-before +after):\n%s", d)
	}
	f.reaches(ctx, t)
}

// images returns what the clusters run of an operator.
func (f *argoFleet) images(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range f.clusters {
		out[c.name] = deployedImages(ctx, t, c.cluster, "memcached-operator-system")
	}
	return out
}

// uninstalls wants everything of the last commit to be done but Namespaces to
// wait for a person, for one on each cluster. Definitions stay in any case: Argo
// CD does not take note of which Application applied one.
func (f *argoFleet) uninstalls(ctx context.Context, t *testing.T, installed []*unstructured.Unstructured) {
	t.Helper()
	for _, name := range f.applications() {
		f.await(ctx, t, name, "waiting for a person", waits)
	}
	held := only(installed, holdsData)
	for i, name := range f.applications() {
		for j, c := range f.clusters {
			switch {
			case !f.listed(c):
				sameAsRendered(ctx, t, c.Applier, installed, nil)
			case j < i:
				sameAsRendered(ctx, t, c.Applier, f.rendered(t), only(installed, isCRD))
			default:
				sameAsRendered(ctx, t, c.Applier, f.rendered(t), held)
				if _, err := c.Get(ctx, objects(t, database)[0]); err != nil {
					t.Errorf("%s: the database after its operator was uninstalled: %v", c.name, err)
				}
			}
		}
		f.annotate(ctx, t, application(name), "argocd.argoproj.io/deletion-approved", time.Now().UTC().Format(time.RFC3339))
		f.await(ctx, t, name, "settled", settled)
	}
	for _, c := range f.clusters {
		if f.listed(c) {
			sameAsRendered(ctx, t, c.Applier, f.rendered(t), only(installed, isCRD))
		}
	}
}

// waits reports whether an Application does nothing more before a person has
// confirmed it.
func waits(app *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
	message, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "message")
	return phase == "Running" && strings.Contains(strings.ToLower(message), "waiting for pruning confirmation")
}
