package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// The clusters of the tests below. The first has operators without dependencies. The second has an
// operator that requires one of them.
const (
	near = `{name: near, operators: [at-operator/*, my-etcd/*]}`
	far  = `{name: far, operators: [memcached-operator-system/*, vault/*]}`
)

// TestFluxHub applies the operators of two clusters with Flux in the first cluster. Flux reaches the second
// cluster by the kubeconfig in a Secret. Then the test removes the second cluster from the fleet.
func TestFluxHub(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	repository := newRepository(t)
	reached := strings.Replace(far, "name: far", "name: far, kubeConfig: far-kubeconfig", 1)
	q := quickstart(t, gitops{profile: "flux", url: repository.url, clusters: near + ", " + reached})
	q.must(t, "render", "--offline")
	repository.commit(t, q.dir, "install")

	hub, other := harness.Start(t, harness.Options{}), harness.Start(t, harness.Options{})
	startFlux(t, hub, source, kustomize)
	ctx, atHub, atOther := within(t, 4*time.Minute), applier(t, hub), applier(t, other)
	login, err := os.ReadFile(other.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	root := objects(t, fmt.Sprintf(fleet+bootstrap, repository.url, "flux"))
	secret := objects(t, "{apiVersion: v1, kind: Secret, metadata: {name: far-kubeconfig, namespace: flux-system}}")[0]
	secret.Object["stringData"] = map[string]any{"value": string(login)}
	if _, err := atHub.Apply(ctx, append(root, secret)); err != nil {
		t.Fatal(err)
	}
	if err := atHub.Await(ctx, root); err != nil {
		t.Fatal(err)
	}
	awaitRendered(ctx, t, atHub, q.renderedFor(t, "near"), nil)
	awaitRendered(ctx, t, atOther, q.renderedFor(t, "far"), nil)
	checkCreationOrder(ctx, t, atHub)
	checkCreationOrder(ctx, t, atOther)
	checkSeparate(ctx, t, atHub, atOther)
	checkRanBefore(ctx, t, atOther, "etcd-operator", "vault-operator")

	before := identities(ctx, t, atOther)
	gone := manifests(t, filepath.Join(q.dir, "rendered", "flux", "far"))
	q.withoutCluster(t, reached)
	reconcile(ctx, t, atHub, root, repository.commit(t, q.dir, "take far out"))
	if err := atHub.AwaitGone(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(before, identities(ctx, t, atOther)); d != "" {
		t.Errorf("a removed cluster changed (-before +after):\n%s", d)
	}
	awaitRendered(ctx, t, atHub, q.renderedFor(t, "near"), nil)
}

// TestFluxClusters runs Flux in each of two clusters. Each Flux applies its own cluster's directory, as set up
// by flux bootstrap. Then the test removes one of the clusters from the fleet.
func TestFluxClusters(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	repository := newRepository(t)
	q := quickstart(t, gitops{profile: "flux", url: repository.url, clusters: near + ", " + far})
	q.must(t, "render", "--offline")
	repository.commit(t, q.dir, "install")

	ctx := within(t, 4*time.Minute)
	appliers, roots := map[string]*harness.Applier{}, map[string][]*unstructured.Unstructured{}
	for _, name := range []string{"near", "far"} {
		cluster := harness.Start(t, harness.Options{})
		startFlux(t, cluster, source, kustomize)
		appliers[name], roots[name] = applier(t, cluster), objects(t, fmt.Sprintf(fleet+bootstrap, repository.url, "flux/"+name))
		if _, err := appliers[name].Apply(ctx, roots[name]); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range appliers {
		if err := at.Await(ctx, roots[name]); err != nil {
			t.Fatal(err)
		}
		awaitRendered(ctx, t, at, q.renderedFor(t, name), nil)
		checkCreationOrder(ctx, t, at)
		list, err := at.ListGroup(ctx, "kustomize.toolkit.fluxcd.io")
		if err != nil {
			t.Fatal(err)
		}
		own := append(manifests(t, filepath.Join(q.dir, "rendered", "flux", name)), roots[name][1])
		if d := gocmp.Diff(slices.Sorted(slices.Values(names(own))), names(list)); d != "" {
			t.Errorf("the Kustomizations in %s (-want +got):\n%s", name, d)
		}
	}
	checkSeparate(ctx, t, appliers["near"], appliers["far"])

	before := identities(ctx, t, appliers["far"])
	q.withoutCluster(t, far)
	commit := repository.commit(t, q.dir, "take far out")
	reconcile(ctx, t, appliers["near"], roots["near"], commit)
	requestReconciliation(ctx, t, appliers["far"], roots["far"], commit)
	for {
		live, err := appliers["far"].Get(ctx, roots["far"][1])
		if err != nil {
			t.Fatal(err)
		}
		if ready, message, _ := harness.Condition(live, "Ready"); ready == "False" && strings.Contains(message, "flux/far") {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the Kustomization of far does not report the missing directory: %v", live.Object["status"])
		case <-time.After(100 * time.Millisecond):
		}
	}
	if d := gocmp.Diff(before, identities(ctx, t, appliers["far"])); d != "" {
		t.Errorf("a removed cluster changed (-before +after):\n%s", d)
	}
}

// bootstrap is the Kustomization of flux bootstrap, which applies a directory.
const bootstrap = `
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1h, retryInterval: 5s, prune: true, wait: true, path: ./rendered/%s, sourceRef: {kind: GitRepository, name: fleet}}
`

// withoutCluster removes a cluster from quayside.yaml and renders.
func (q quayside) withoutCluster(t *testing.T, cluster string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(q.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(text), ", "+cluster, "", 1)
	if without == string(text) {
		t.Fatalf("no cluster %s in\n%s", cluster, text)
	}
	q.write(t, "quayside.yaml", without)
	q.must(t, "render", "--offline")
}

// renderedFor returns the objects of one cluster in the order of application.
func (q quayside) renderedFor(t *testing.T, cluster string) []*unstructured.Unstructured {
	t.Helper()
	return objects(t, q.must(t, "render", "--offline", "--stdout", "--overlay", cluster))
}

// identities returns, by name, the UID of each object with quayside's labels, and whether the object is being
// deleted. It omits objects that controllers derive from others.
func identities(ctx context.Context, t *testing.T, applier *harness.Applier) map[string]string {
	t.Helper()
	live, err := applier.List(ctx, "quayside.dev/package")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, o := range live {
		if !strings.HasPrefix(o.GetKind(), "Endpoint") {
			out[harness.Name(o)] = fmt.Sprintf("%s, deleted: %v", o.GetUID(), o.GetDeletionTimestamp() != nil)
		}
	}
	return out
}

// checkCreationOrder checks that a cluster's CRDs were created before its Namespaces, and the Namespaces before
// its operators.
func checkCreationOrder(ctx context.Context, t *testing.T, applier *harness.Applier) {
	t.Helper()
	live, err := applier.List(ctx, "quayside.dev/package")
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string][]metav1.Time{}
	for _, o := range live {
		stage := o.GetKind()
		if !holdsData(o) {
			stage = "operator"
		}
		stages[stage] = append(stages[stage], o.GetCreationTimestamp())
	}
	compare := func(a, b metav1.Time) int { return a.Compare(b.Time) }
	for _, pair := range [][2]string{{"CustomResourceDefinition", "Namespace"}, {"Namespace", "operator"}} {
		first, then := stages[pair[0]], stages[pair[1]]
		if len(first) == 0 || len(then) == 0 {
			t.Errorf("%d of %s, %d of %s", len(first), pair[0], len(then), pair[1])
			continue
		}
		if last, next := slices.MaxFunc(first, compare), slices.MinFunc(then, compare); next.Before(&last) {
			t.Errorf("the last %s was created at %s, after the first %s at %s", pair[0], last, pair[1], next)
		}
	}
}

// checkRanBefore checks that the Deployment of one operator (required) was available before the Deployment of
// another operator (by) was created. Both Deployments are in the namespace vault.
func checkRanBefore(ctx context.Context, t *testing.T, applier *harness.Applier, required, by string) {
	t.Helper()
	deployment := func(name string) *unstructured.Unstructured {
		live, err := applier.Get(ctx, objects(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: vault}}", name))[0])
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	conditions, _, _ := unstructured.NestedSlice(deployment(required).Object, "status", "conditions")
	made := deployment(by).GetCreationTimestamp().UTC().Format(time.RFC3339)
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if since, _ := fields["lastTransitionTime"].(string); fields["type"] == "Available" && (fields["status"] != "True" || since > made) {
			t.Errorf("%s was created at %s, but %s is available: %v", by, made, required, fields)
		}
	}
}

// checkSeparate checks that each of the two clusters has exactly the packages that belong to it.
func checkSeparate(ctx context.Context, t *testing.T, near, far *harness.Applier) {
	t.Helper()
	want := map[*harness.Applier][]string{
		near: {"at-operator", "etcd", "quayside"}, far: {"etcd", "memcached-operator", "quayside", "vault"},
	}
	for at, packages := range want {
		live, err := at.List(ctx, "quayside.dev/package")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, o := range live {
			got[o.GetLabels()["quayside.dev/package"]] = true
		}
		if d := gocmp.Diff(packages, slices.Sorted(maps.Keys(got))); d != "" {
			t.Errorf("the packages in a cluster (-want +got):\n%s", d)
		}
	}
}
