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

// TestSuccession has Flux, and Argo CD, apply what docs/succession.md says of an operator
// that is followed by another package: the two side by side, then the follower alone.
// No definition, no custom resource and nothing that both bring is deleted or made anew.
func TestSuccession(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			shortly(t, name)
			t.Parallel() // each has servers of its own, and mostly waits
			newSucceeding(t, tool, "caches").lives(t)
		})
	}
	t.Run("flux-elsewhere", func(t *testing.T) {
		shortly(t, "flux-elsewhere")
		t.Parallel()
		newSucceeding(t, tools()["flux"], "data").lives(t)
	})
}

// shortly leaves out with -short what takes minutes and does with one more tool what
// Flux has done.
func shortly(t *testing.T, name string) {
	t.Helper()
	if testing.Short() && name != "flux" {
		t.Skip("-short: Flux has done the same")
	}
}

// tools returns what applies the tree of a workspace, by name.
func tools() map[string]tool {
	return map[string]tool{"flux": &fluxTaker{}, "argocd": &argoTaker{}}
}

// succeeding is a workspace with an operator that is followed, and a tool that applies
// its tree from a repository.
type succeeding struct {
	*harness.Applier
	q          quayside
	tool       tool
	cluster    *harness.Cluster
	repository repository
	home       string // namespace of the operator that follows
}

// newSucceeding starts a cluster whose API server reaches no Service, as where no
// pod answers.
func newSucceeding(t *testing.T, tool tool, home string) *succeeding {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	s := &succeeding{tool: tool, home: home, repository: newRepository(t), q: newWorkspace(t, build(t), nil)}
	if err := os.CopyFS(s.q.dir, os.DirFS(filepath.Join(root, "..", "..", "testdata", "succession"))); err != nil {
		t.Fatal(err)
	}
	g := gitops{profile: tool.profile(), url: s.repository.url, at: tool.at(), automated: tool.profile() == "argocd"}
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

// lives does what a team does, state by state.
func (s *succeeding) lives(t *testing.T) {
	t.Helper()
	ctx := within(t, 4*time.Minute)
	s.install(ctx, t)
	before := s.holds(ctx, t)

	order := s.follow(ctx, t)
	s.handedOver(ctx, t, before)
	s.stopped(ctx, t, order)
	beside := s.q.rendered(t)

	s.prune(ctx, t)
	s.handedOver(ctx, t, before)
	s.leftoversGone(ctx, t, beside)
}

// data is what the operator that is followed looks after.
const data = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: example.com/v1, kind: Cache, metadata: {name: one, namespace: shop}, spec: {size: 3}}
---
{apiVersion: example.com/v1, kind: Cache, metadata: {name: two, namespace: caches}, spec: {size: 5}}
`

// install has the tool apply the operator that is followed, and makes custom resources.
// Its webhook then forbids to change them, since nobody answers.
func (s *succeeding) install(ctx context.Context, t *testing.T) {
	t.Helper()
	s.q.settle(t)
	commit := s.repository.commit(t, s.q.dir, "install")
	s.tool.start(ctx, t, s.cluster, s.repository.url)
	s.tool.has(ctx, t, "root", "rendered/"+s.tool.profile(), commit)
	sameAsRendered(ctx, t, s.Applier, s.q.rendered(t), nil)
	if _, err := s.Apply(ctx, objects(t, data)); err != nil {
		t.Fatal(err)
	}
	if err := s.resize(ctx, t); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "vcache.example.com") {
		t.Errorf("changing a custom resource, with a webhook that nobody answers: %v", err)
	}
}

// resize changes a custom resource, as its owner would.
func (s *succeeding) resize(ctx context.Context, t *testing.T) error {
	t.Helper()
	cache := objects(t, data)[1]
	return s.Merge(ctx, cache, map[string]any{"spec": map[string]any{"size": 4}})
}

// holds returns the UID of each object of the operators, and of each custom resource,
// by its name, and whether it is being deleted.
func (s *succeeding) holds(ctx context.Context, t *testing.T) map[string]string {
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

// follow merges the first pull request, and returns what became of Deployments
// meanwhile, in order: "cache-operator 0" is the one of that name without replicas.
func (s *succeeding) follow(ctx context.Context, t *testing.T) []string {
	t.Helper()
	seen := s.watchDeployments(ctx, t)
	s.q.remove(t, "subscriptions/cache.yaml")
	follows, err := os.ReadFile(filepath.Join(s.q.dir, "follows.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.q.write(t, "subscriptions/data.yaml", strings.Replace(string(follows), "namespace: caches", "namespace: "+s.home, 1))
	s.settles(ctx, t, "data-operator follows cache-operator")
	return seen()
}

// settles renders what is locked, and has the tool apply it.
func (s *succeeding) settles(ctx context.Context, t *testing.T, message string, flags ...string) {
	t.Helper()
	s.q.must(t, append([]string{"resolve", "--offline"}, flags...)...)
	s.q.must(t, "render", "--offline")
	s.tool.reaches(ctx, t, "root", s.repository.commit(t, s.q.dir, message))
	sameAsRendered(ctx, t, s.Applier, s.q.rendered(t), s.namespace(t))
}

// namespace returns the Namespace of the operator that is followed where the other one is
// elsewhere: it is not rendered at last, and stays.
func (s *succeeding) namespace(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	if s.home == "caches" {
		return nil
	}
	return objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: caches, labels: {quayside.dev/package: cache-operator}}}")
}

// watchDeployments returns what ends the watch and returns what was seen.
func (s *succeeding) watchDeployments(ctx context.Context, t *testing.T) func() []string {
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

// handedOver wants what there was and is still rendered to be there, and every custom
// resource, with their UIDs.
func (s *succeeding) handedOver(ctx context.Context, t *testing.T, before map[string]string) {
	t.Helper()
	now, rendered := s.holds(ctx, t), s.q.rendered(t)
	is := names(rendered)
	is = append(is, names(s.namespace(t))...)
	kept := 0
	for name, identity := range before {
		stays := slices.Contains(is, name) || strings.Contains(name, ".example.com ")
		if stays && now[name] != identity {
			t.Errorf("%s was %s, and is %q", name, identity, now[name])
		}
		if stays {
			kept++
		}
	}
	both := []string{"CustomResourceDefinition.apiextensions.k8s.io caches.example.com"}
	if s.home == "caches" {
		both = append(both, "ConfigMap caches/cache-defaults", "ServiceAccount caches/cache", "Namespace caches")
	}
	for _, name := range both {
		if before[name] == "" || !slices.Contains(is, name) {
			t.Errorf("%s is not what both have", name)
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
			t.Errorf("%s is of %s, want data-operator", harness.Name(o), got)
		}
	}
	t.Logf("%d of %d objects stayed", kept, len(before))
}

// stopped wants the operator that is followed to have stopped before the other one came,
// and its webhook to forbid nothing.
func (s *succeeding) stopped(ctx context.Context, t *testing.T, order []string) {
	t.Helper()
	stops := slices.Index(order, "cache-operator 0")
	starts := slices.Index(order, "data-operator 1")
	if stops < 0 || starts < stops {
		t.Errorf("the operator that is followed is to stop before the other one starts; Deployments in order: %q", order)
	}
	if last := order[max(stops, 0):]; slices.Contains(last, "cache-operator 1") {
		t.Errorf("what was stopped runs again: %q", order)
	}
	if err := s.resize(ctx, t); err != nil {
		t.Errorf("changing a custom resource beside what is left: %v", err)
	}
}

// prune merges the second pull request, once the follower was seen to run.
func (s *succeeding) prune(ctx context.Context, t *testing.T) {
	t.Helper()
	s.q.must(t, "status", "--offline", "--kubeconfig", s.cluster.Kubeconfig, "--save", "observed.yaml")
	s.settles(ctx, t, "what was left of cache-operator", "--observed", "observed.yaml")
}

// leftoversGone wants nothing to be left of the operator that was followed but a
// Namespace that holds data, and
// custom resources to be as their owners have them.
func (s *succeeding) leftoversGone(ctx context.Context, t *testing.T, beside []*unstructured.Unstructured) {
	t.Helper()
	is := names(append(s.q.rendered(t), s.namespace(t)...))
	left := only(beside, func(o *unstructured.Unstructured) bool { return !slices.Contains(is, harness.Name(o)) })
	if len(left) == 0 || !slices.ContainsFunc(left, func(o *unstructured.Unstructured) bool { return o.GetName() == "cache-tuning" }) {
		t.Errorf("nothing was left of the operator that is followed: %q", names(left))
	}
	if err := s.AwaitGone(ctx, left); err != nil {
		t.Error(err)
	}
	of, err := s.List(ctx, "quayside.dev/package=cache-operator")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range only(of, func(o *unstructured.Unstructured) bool { return !slices.Contains(is, harness.Name(o)) }) {
		t.Errorf("%s is left", harness.Name(o))
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
