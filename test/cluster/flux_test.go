package cluster_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/process"
)

// TestFlux installs, upgrades, reverts and uninstalls the quickstart by commits, with Flux's own controllers.
func TestFlux(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	repository := newRepository(t)
	q := quickstart(t, gitops{profile: "flux", url: repository.url})
	q.must(t, "render", "--offline")
	repository.commit(t, q.dir, "install")

	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	ctx, applier := within(t, 4*time.Minute), applier(t, cluster)
	list := append(objects(t, fmt.Sprintf(fleet, repository.url)), manifests(t, filepath.Join(q.dir, "rendered", "flux", "default"))...)
	if _, err := applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	if err := applier.Await(ctx, list); err != nil {
		t.Fatal(err)
	}
	installed := q.rendered(t)
	awaitRendered(ctx, t, applier, installed, nil)
	before := deployedImages(ctx, t, cluster, "memcached-operator-system")
	if _, err := applier.Apply(ctx, objects(t, database)); err != nil {
		t.Fatal(err)
	}

	q.must(t, "resolve", "--offline", "--upgrade")
	q.must(t, "render", "--offline")
	reconcile(ctx, t, applier, list, repository.commit(t, q.dir, "upgrade"))
	awaitRendered(ctx, t, applier, q.rendered(t), nil)
	after := deployedImages(ctx, t, cluster, "memcached-operator-system")
	if after == "" || after == before {
		t.Errorf("images after the upgrade: %q, before: %q; want different ones", after, before)
	}

	reconcile(ctx, t, applier, list, repository.revert(t, q.dir))
	awaitRendered(ctx, t, applier, installed, nil)
	if got := deployedImages(ctx, t, cluster, "memcached-operator-system"); got != before {
		t.Errorf("images after the revert: %q, want %q as before the upgrade", got, before)
	}

	q.remove(t, "subscriptions/etcd.yaml", "subscriptions/vault.yaml")
	q.must(t, "resolve", "--offline")
	q.must(t, "render", "--offline")
	reconcile(ctx, t, applier, list, repository.commit(t, q.dir, "uninstall"))
	// Objects with user data remain until a person deletes them.
	awaitRendered(ctx, t, applier, q.rendered(t), only(installed, holdsData))
	if _, err := applier.Get(ctx, objects(t, database)[0]); err != nil {
		t.Errorf("the database after its operator was uninstalled: %v", err)
	}
}

// database is a custom resource for the etcd operator.
const database = `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: example, namespace: my-etcd}
spec: {size: 3, version: 3.2.13}
`

func holdsData(o *unstructured.Unstructured) bool { return isCRD(o) || o.GetKind() == "Namespace" }

// awaitRendered waits until the objects with quayside's labels in the cluster are exactly the objects in
// rendered and kept.
func awaitRendered(ctx context.Context, t *testing.T, applier *harness.Applier, rendered, kept []*unstructured.Unstructured) {
	t.Helper()
	labelled := func(o *unstructured.Unstructured) bool { return o.GetLabels()["quayside.dev/package"] != "" }
	want := names(append(only(rendered, labelled), only(kept, labelled)...))
	slices.Sort(want)
	want = slices.Compact(want)
	difference := ""
	for {
		live, err := applier.List(ctx, "quayside.dev/package")
		if err != nil {
			t.Fatalf("%v; last difference from the rendered objects (-want +got):\n%s", err, difference)
		}
		// Controllers copy a Service's labels to its endpoints. Objects that are being deleted do
		// not count.
		got := names(slices.DeleteFunc(live, func(o *unstructured.Unstructured) bool {
			return strings.HasPrefix(o.GetKind(), "Endpoint") || o.GetDeletionTimestamp() != nil
		}))
		slices.Sort(got)
		if difference = gocmp.Diff(want, got); difference == "" {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond): // Flux prunes asynchronously
		case <-ctx.Done():
			t.Fatalf("the cluster differs from the rendered objects (-want +got):\n%s", difference)
		}
	}
}

const fleet = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {interval: 1h, url: %q, ref: {branch: main}}
`

// startFlux installs Flux's CRDs and starts its controllers.
func startFlux(t *testing.T, cluster *harness.Cluster, source, kustomize string) {
	t.Helper()
	list := objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	list = append(list, manifests(t, filepath.Join(source, "crds"))...)
	list = append(list, manifests(t, filepath.Join(kustomize, "crds"))...)
	if _, err := applier(t, cluster).Apply(within(t, time.Minute), list); err != nil {
		t.Fatal(err)
	}
	ports, err := harness.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	storage := fmt.Sprintf("127.0.0.1:%d", ports[0])
	common := []string{"--watch-all-namespaces", "--enable-leader-election=false", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--events-addr="}
	for _, server := range []process.Spec{
		{Name: "source-controller", Args: append([]string{
			filepath.Join(source, "source-controller"),
			"--storage-path=" + t.TempDir(), "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		}, common...)},
		{Name: "kustomize-controller", Args: append([]string{
			filepath.Join(kustomize, "kustomize-controller"), "--requeue-dependency=2s",
		}, common...)},
	} {
		server.Env = []string{"KUBECONFIG=" + cluster.Kubeconfig, "RUNTIME_NAMESPACE=flux-system"}
		if _, err := cluster.Run(server); err != nil {
			t.Fatal(err)
		}
	}
}

// requestReconciliation requests a reconciliation of the sources in the list.
func requestReconciliation(ctx context.Context, t *testing.T, applier *harness.Applier, list []*unstructured.Unstructured, revision string) {
	t.Helper()
	for _, o := range list {
		if o.GroupVersionKind().Group != "source.toolkit.fluxcd.io" {
			continue
		}
		again := o.DeepCopy()
		again.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": revision})
		if _, err := applier.Apply(ctx, []*unstructured.Unstructured{again}); err != nil {
			t.Fatal(err)
		}
	}
}

// reconcile requests a reconciliation of the source, and waits until every Kustomization is ready
// at the revision.
func reconcile(ctx context.Context, t *testing.T, applier *harness.Applier, list []*unstructured.Unstructured, revision string) {
	t.Helper()
	requestReconciliation(ctx, t, applier, list, revision)
	for _, o := range only(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Kustomization" }) {
		for {
			live, err := applier.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			applied, _, _ := unstructured.NestedString(live.Object, "status", "lastAppliedRevision")
			ready, message, _ := harness.Condition(live, "Ready")
			if strings.HasSuffix(applied, revision) && ready == "True" {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s is at %q: %s: %s; want %s", harness.Name(o), applied, ready, message, revision)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

func deployedImages(ctx context.Context, t *testing.T, cluster *harness.Cluster, namespace string) string {
	t.Helper()
	list, err := client(t, cluster).AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, d := range list.Items {
		for _, c := range d.Spec.Template.Spec.Containers {
			images = append(images, c.Image)
		}
	}
	return strings.Join(images, " ")
}

// gitops describes the GitOps tool that applies a tree, and the source from which the tool reads the tree.
type gitops struct {
	profile   string
	url       string // of the Git repository
	kind      string // of Flux's source; "" means GitRepository
	path      string // directory of the tree in the source; "" means rendered
	clusters  string // "{name: prod}, …"; "" means one cluster named default
	namespace string // namespace of the tool's own objects; "" means flux-system

	automated bool // Argo CD applies changes automatically
	pieces    bool // each operator has its own Application or Kustomization
}

// settings returns the part of quayside.yaml that configures the tool.
func (g gitops) settings() string {
	policy, granularity := "", "cluster"
	if g.pieces {
		granularity = "operator"
	}
	if g.automated {
		policy = ", syncPolicy: {automated: {prune: true, selfHeal: true}}"
	}
	return fmt.Sprintf(`
  profile: %s
  gitops:
    {repoURL: %q, revision: main, path: %q, namespace: %s, granularity: %s, project: default, sourceRef: {kind: %s, name: fleet}%s}
  clusters: [%s]
`, g.profile, g.url, cmp.Or(g.path, "rendered"), cmp.Or(g.namespace, "flux-system"), granularity, cmp.Or(g.kind, "GitRepository"), policy, cmp.Or(g.clusters, "{name: default}"))
}

// quickstart returns a copy of the example's workspace, configured for a GitOps tool.
func quickstart(t *testing.T, g gitops) quayside {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	q := newWorkspace(t, build(t), nil)
	example := os.DirFS(filepath.Join(root, "..", "..", "examples", "quickstart"))
	if err := os.CopyFS(q.dir, example); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(q.dir, "quayside.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, g.settings()...), 0o644); err != nil {
		t.Fatal(err)
	}
	return q
}

// manifests returns the objects in the YAML files of a directory, ordered by file name. It omits
// kustomizations.
func manifests(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %q: %v", dir, err)
	}
	var list []*unstructured.Unstructured
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, objects(t, string(text))...)
	}
	return list
}
