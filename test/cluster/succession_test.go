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

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// TestSuccession applies the steps of docs/succession.md with Flux and Argo CD. Another package replaces an
// operator: first both operators are rendered, then only the successor. No CRD, custom resource or shared
// object may be deleted or recreated.
func TestSuccession(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			skipIfShort(t, name)
			t.Parallel() // mostly waits; each test has its own servers
			newSuccession(t, tool, "caches").runSteps(t)
		})
	}
	t.Run("flux-elsewhere", func(t *testing.T) {
		skipIfShort(t, "flux-elsewhere")
		t.Parallel()
		newSuccession(t, tools()["flux"], "data").runSteps(t)
	})
}

// skipIfShort skips the test of the second tool with -short, because it takes minutes and repeats the test of
// Flux.
func skipIfShort(t *testing.T, name string) {
	t.Helper()
	if testing.Short() && name != "flux" {
		t.Skip("-short: tested with Flux")
	}
}

// tools returns the tools by name.
func tools() map[string]tool {
	return map[string]tool{"flux": &fluxTaker{}, "argocd": &argoTaker{}}
}

// succession is a workspace with an operator that is replaced, and a tool that applies its tree
// from a repository.
type succession struct {
	*harness.Applier
	q                  quayside
	tool               tool
	cluster            *harness.Cluster
	repository         repository
	successorNamespace string // namespace of the successor
}

// newSuccession starts a cluster whose API server cannot reach any Service, as if no pod answers.
func newSuccession(t *testing.T, tool tool, home string) *succession {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	s := &succession{tool: tool, successorNamespace: home, repository: newRepository(t), q: newWorkspace(t, build(t), nil)}
	if err := os.CopyFS(s.q.dir, os.DirFS(filepath.Join(root, "..", "..", "testdata", "succession"))); err != nil {
		t.Fatal(err)
	}
	g := gitops{profile: tool.profile(), url: s.repository.url, namespace: tool.at(), automated: tool.profile() == "argocd"}
	s.q.write(t, "quayside.yaml", `
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: bundles, source: "bundles:bundles"}]
  kubernetesVersion: "1.36"
  certificates: openshift-service-ca`+g.settings())
	s.cluster = harness.Start(t, harness.Options{Services: filepath.Join(t.TempDir(), "nobody")})
	s.Applier = applier(t, s.cluster)
	return s
}

// runSteps runs the steps of the team, one after the other.
func (s *succession) runSteps(t *testing.T) {
	t.Helper()
	ctx := within(t, 4*time.Minute)
	s.install(ctx, t)
	before := s.readIdentities(ctx, t)

	order := s.mergeSuccessor(ctx, t)
	s.checkHandedOver(ctx, t, before)
	s.checkStopOrder(ctx, t, order)
	beside := s.q.rendered(t)

	s.mergeRemoval(ctx, t)
	s.checkHandedOver(ctx, t, before)
	s.checkLeftoversGone(ctx, t, beside)
}

// data contains custom resources of the replaced operator.
const data = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: example.com/v1, kind: Cache, metadata: {name: one, namespace: shop}, spec: {size: 3}}
---
{apiVersion: example.com/v1, kind: Cache, metadata: {name: two, namespace: caches}, spec: {size: 5}}
`

// install applies the operator that is to be replaced, and creates custom resources. The operator's webhook
// then prevents changes to these resources, because it does not answer.
func (s *succession) install(ctx context.Context, t *testing.T) {
	t.Helper()
	s.q.resolveAndRender(t)
	commit := s.repository.commit(t, s.q.dir, "install")
	s.tool.start(ctx, t, s.cluster, s.repository.url)
	s.tool.follow(ctx, t, "root", "rendered/"+s.tool.profile(), commit)
	awaitRendered(ctx, t, s.Applier, s.q.rendered(t), nil)
	if _, err := s.Apply(ctx, objects(t, data)); err != nil {
		t.Fatal(err)
	}
	if err := s.resize(ctx, t); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "vcache.example.com") {
		t.Errorf("changing a custom resource while its webhook does not answer: %v", err)
	}
}

// resize changes a custom resource, as a user would.
func (s *succession) resize(ctx context.Context, t *testing.T) error {
	t.Helper()
	cache := objects(t, data)[1]
	return s.Merge(ctx, cache, map[string]any{"spec": map[string]any{"size": 4}})
}

// readIdentities returns, by name, the UID of each object of the operators and of each custom resource, and
// whether the object is being deleted.
func (s *succession) readIdentities(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := identities(ctx, t, s.Applier)
	list, err := s.ListGroup(ctx, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		out[harness.Name(o)] = fmt.Sprintf("%s, deleted: %v", o.GetUID(), o.GetDeletionTimestamp() != nil)
	}
	return out
}

// mergeSuccessor merges the first pull request, and returns the observed changes of Deployments in
// order, such as "cache-operator 0" for zero replicas.
func (s *succession) mergeSuccessor(ctx context.Context, t *testing.T) []string {
	t.Helper()
	seen := s.watchDeployments(ctx, t)
	s.q.remove(t, "subscriptions/cache.yaml")
	follows, err := os.ReadFile(filepath.Join(s.q.dir, "follows.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.q.write(t, "subscriptions/data.yaml", strings.Replace(string(follows), "namespace: caches", "namespace: "+s.successorNamespace, 1))
	s.applyLock(ctx, t, "data-operator follows cache-operator")
	return seen()
}

// applyLock renders the lock, and waits until the tool has applied the tree.
func (s *succession) applyLock(ctx context.Context, t *testing.T, message string, flags ...string) {
	t.Helper()
	s.q.must(t, append([]string{"resolve", "--offline"}, flags...)...)
	s.q.must(t, "render", "--offline")
	s.tool.awaitCommit(ctx, t, "root", s.repository.commit(t, s.q.dir, message))
	awaitRendered(ctx, t, s.Applier, s.q.rendered(t), s.keptNamespace(t))
}

// keptNamespace returns the Namespace of the replaced operator, or nothing if the successor uses the same
// Namespace. After the second step, the Namespace is not rendered, but remains in the cluster.
func (s *succession) keptNamespace(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	if s.successorNamespace == "caches" {
		return nil
	}
	return objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: caches, labels: {quayside.dev/package: cache-operator}}}")
}

// watchDeployments starts a watch, and returns a function that ends the watch and returns the observed changes.
func (s *succession) watchDeployments(ctx context.Context, t *testing.T) func() []string {
	t.Helper()
	all := client(t, s.cluster).AppsV1().Deployments("")
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := all.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan []string, 1)
	go func() {
		var out []string
		for event := range watch.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok {
				out = append(out, fmt.Sprintf("%s %d", d.Name, *d.Spec.Replicas))
			}
		}
		seen <- out
	}()
	return func() []string {
		watch.Stop()
		return slices.Compact(<-seen)
	}
}

// checkHandedOver checks that all custom resources and the objects that are still rendered exist with the same
// UIDs.
func (s *succession) checkHandedOver(ctx context.Context, t *testing.T, before map[string]string) {
	t.Helper()
	now, rendered := s.readIdentities(ctx, t), s.q.rendered(t)
	is := names(rendered)
	is = append(is, names(s.keptNamespace(t))...)
	kept := 0
	for name, identity := range before {
		stays := slices.Contains(is, name) || strings.Contains(name, ".example.com ")
		if stays && now[name] != identity {
			t.Errorf("%s was %s, now %q", name, identity, now[name])
		}
		if stays {
			kept++
		}
	}
	both := []string{"CustomResourceDefinition.apiextensions.k8s.io caches.example.com"}
	if s.successorNamespace == "caches" {
		both = append(both, "ConfigMap caches/cache-defaults", "ServiceAccount caches/cache", "Namespace caches")
	}
	for _, name := range both {
		if before[name] == "" || !slices.Contains(is, name) {
			t.Errorf("%s is not a shared object", name)
		}
	}
	for _, o := range only(rendered, func(o *unstructured.Unstructured) bool {
		return o.GetLabels()["quayside.dev/package"] == "data-operator"
	}) {
		live, err := s.Get(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := live.GetLabels()["quayside.dev/package"]; got != "data-operator" {
			t.Errorf("%s belongs to %s, want data-operator", harness.Name(o), got)
		}
	}
	t.Logf("%d of %d objects kept", kept, len(before))
}

// checkStopOrder checks that the replaced operator stopped before the successor started, and that the webhook
// of the replaced operator prevents no change.
func (s *succession) checkStopOrder(ctx context.Context, t *testing.T, order []string) {
	t.Helper()
	stops := slices.Index(order, "cache-operator 0")
	starts := slices.Index(order, "data-operator 1")
	if stops < 0 || starts < stops {
		t.Errorf("the replaced operator must stop before its successor starts; Deployments in order: %q", order)
	}
	if last := order[max(stops, 0):]; slices.Contains(last, "cache-operator 1") {
		t.Errorf("the stopped operator runs again: %q", order)
	}
	if err := s.resize(ctx, t); err != nil {
		t.Errorf("changing a custom resource after the handover: %v", err)
	}
}

// mergeRemoval merges the second pull request, after the successor was observed to run.
func (s *succession) mergeRemoval(ctx context.Context, t *testing.T) {
	t.Helper()
	s.q.must(t, "status", "--offline", "--kubeconfig", s.cluster.Kubeconfig, "--save", "observed.yaml")
	s.applyLock(ctx, t, "what was left of cache-operator", "--observed", "observed.yaml")
}

// checkLeftoversGone checks that no object of the replaced operator remains except a Namespace with data, and
// that the custom resources are unchanged.
func (s *succession) checkLeftoversGone(ctx context.Context, t *testing.T, beside []*unstructured.Unstructured) {
	t.Helper()
	is := names(append(s.q.rendered(t), s.keptNamespace(t)...))
	left := only(beside, func(o *unstructured.Unstructured) bool { return !slices.Contains(is, harness.Name(o)) })
	if len(left) == 0 || !slices.ContainsFunc(left, func(o *unstructured.Unstructured) bool { return o.GetName() == "cache-tuning" }) {
		t.Errorf("no leftover objects of the replaced operator: %q", names(left))
	}
	if err := s.AwaitGone(ctx, left); err != nil {
		t.Error(err)
	}
	of, err := s.List(ctx, "quayside.dev/package=cache-operator")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range only(of, func(o *unstructured.Unstructured) bool { return !slices.Contains(is, harness.Name(o)) }) {
		t.Errorf("leftover %s", harness.Name(o))
	}
	for i, want := range []int64{4, 5} {
		live, err := s.Get(ctx, objects(t, data)[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedInt64(live.Object, "spec", "size"); got != want {
			t.Errorf("%s has the size %d, want %d", harness.Name(live), got, want)
		}
	}
	t.Logf("%d objects were pruned", len(left))
}
