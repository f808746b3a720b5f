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

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// lives returns the real operators of the corpus that have an upgrade path, and
// that path: oldest version first, one hop of the catalog from each to the next.
func lives() []life {
	return []life{
		{pkg: "cert-manager", versions: []string{"1.14.2", "1.15.2", "1.16.1"}},
		{pkg: "etcd", format: "package-manifests", versions: []string{"0.9.0", "0.9.2", "0.9.4"}},
		{pkg: "rabbitmq-cluster-operator", versions: []string{"2.22.1", "2.22.2", "2.22.3"}},
		{pkg: "argocd-operator", versions: []string{"0.9.1", "0.14.0", "0.18.0"}},
		{pkg: "dns-operator", breaks: true, versions: []string{"0.2.0", "0.6.0"}},
		{pkg: "grafana-operator", versions: []string{"5.22.2", "5.24.0"}},
	}
}

// TestLife has real operators live through what a team does with them in Git:
// install an old version, upgrade hop by hop, revert, uninstall, and let a
// person confirm what is still held then. Custom resources are made from the
// samples of the oldest version, and lie in the repository too, so that what
// `quayside diff` says of each step can be held against what the API server
// does. Their webhooks are rendered and applied, but not called: no operator
// runs that could answer.
func TestLife(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to upgrade")
	}
	cluster := harness.Start(t, harness.Options{NoWebhooks: true})
	program := build(t)
	var others []*unstructured.Unstructured // CRDs that operators need beside their own
	for _, l := range lives() {
		t.Run(l.pkg, func(t *testing.T) {
			l.applier, l.others = applier(t, cluster), others
			l.begin(t, program, corpus)
			l.test(t)
			if t.Failed() {
				showEvents(t, cluster, l.pkg)
			}
		})
		if others == nil {
			others = prerequisites(t, cluster, program, corpus)
		}
	}
}

// life is one operator, the workspace that pins it and the cluster that has it.
type life struct {
	pkg      string
	format   string   // of the catalog; "" is bundles
	versions []string // the upgrade path
	breaks   bool     // a sample of the oldest version no longer fits the newest one

	quayside
	repository repository
	applier    *harness.Applier
	others     []*unstructured.Unstructured // what the cluster has beside, with quayside's labels

	now  []*unstructured.Unstructured // what is rendered, and applied
	held []*unstructured.Unstructured // what the tree lost but nothing may prune
	data []*sample

	broken int // samples that a step broke, as the diff had said
}

// begin makes the workspace in which the oldest version is declared.
func (l *life) begin(t *testing.T, program, corpus string) {
	t.Helper()
	source := "bundles:" + filepath.Join(corpus, "bundles", l.pkg)
	content := filepath.Join(corpus, "bundles", l.pkg, l.versions[0], "manifests")
	if l.format != "" {
		source = l.format + ":" + filepath.Join(corpus, l.format, l.pkg)
		content = filepath.Join(corpus, l.format, l.pkg, l.versions[0])
	}
	l.quayside = newWorkspace(t, program, map[string]string{"quayside.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: corpus, namespace: olm, source: %q}]
  kubernetesVersion: "1.36"
  profile: plain
`, source)})
	l.declare(t, l.versions[0])
	l.repository = inWorkspace(t, l.quayside)
	l.data = samples(t, content)
}

// declaration is the file that asks for the operator.
const declaration = "subscriptions/operator.yaml"

// declare asks for one version, or for any where it is "".
func (l *life) declare(t *testing.T, version string) {
	t.Helper()
	l.write(t, declaration, fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: operator, namespace: %q}
spec: {package: %[1]q, version: %[2]q}
`, l.pkg, version))
}

func (l *life) test(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	t.Cleanup(func() {
		if err := l.confirm(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("removing all of it: %v", err)
		}
	})
	l.must(t, "resolve", "--offline")
	l.commit(t, "install")
	l.move(ctx, t, l.versions[0])
	l.create(ctx, t)
	l.repository.commit(t, l.dir, "use it")

	l.declare(t, "")
	for _, version := range l.versions[1:] {
		said := l.diff(t, "--upgrade")
		l.must(t, "resolve", "--offline", "--upgrade")
		l.commit(t, "upgrade")
		l.step(ctx, t, version, said)
	}

	if l.breaks && l.broken == 0 {
		t.Error("no custom resource was broken by an upgrade that is known to break one: nothing was compared")
	}

	l.repository.revert(t, l.dir)
	l.must(t, "verify", "--offline")
	l.step(ctx, t, l.versions[len(l.versions)-2], l.diff(t, "HEAD~1..HEAD"))

	l.remove(t, declaration)
	l.must(t, "resolve", "--offline")
	said := l.diff(t, "HEAD")
	l.commit(t, "uninstall")
	l.step(ctx, t, "", said)
	if len(l.now) > 0 {
		t.Errorf("of an operator that nothing asks for %v is rendered", names(l.now))
	}

	if err := l.confirm(ctx); err != nil {
		t.Fatal(err)
	}
	l.held = nil
	sameAsRendered(ctx, t, l.applier, nil, l.others)
}

// commit renders the lock and makes all of it the next commit.
func (l *life) commit(t *testing.T, message string) {
	t.Helper()
	l.must(t, "render", "--offline")
	l.repository.commit(t, l.dir, message)
}

// step brings the cluster to what is rendered now and holds what came of it
// against what the diff said.
func (l *life) step(ctx context.Context, t *testing.T, version string, said findings) {
	t.Helper()
	before := slices.Clone(l.held)
	l.move(ctx, t, version)
	for _, rule := range impossible() {
		for _, f := range said.by(rule) {
			t.Errorf("the API server took what the diff says it refuses: %s: %s %s: %s", rule, f.Object.Kind, f.Object.Name, f.Message)
		}
	}
	l.announced(t, said, before)
	l.compare(ctx, t, said)
}

// move applies what is rendered now, prunes what went but for what holds data,
// and wants the cluster to hold exactly that, and to be content with it.
func (l *life) move(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	next := l.rendered(t)
	for _, o := range next {
		versioned := o.GetKind() == "Deployment" || isCRD(o)
		if got := o.GetLabels()["quayside.dev/version"]; versioned && got != version && o.GetLabels()["quayside.dev/package"] == l.pkg {
			t.Fatalf("%s is of version %q, want %q", harness.Name(o), got, version)
		}
	}
	done, err := l.applier.Apply(ctx, next)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range done {
		for _, w := range a.Warnings {
			if strings.Contains(w, "unknown field") || strings.Contains(w, "duplicate field") {
				t.Errorf("%s: %s", harness.Name(a.Object), w)
			}
		}
	}
	l.prune(ctx, t, next)
	l.now = next
	i := installation{applier: l.applier, objects: next}
	if err := l.applier.Await(ctx, only(next, i.becomesReady)); err != nil {
		t.Fatal(err)
	}
	for _, o := range next {
		i.again(ctx, t, o)
	}
	sameAsRendered(ctx, t, l.applier, next, slices.Concat(l.held, l.others))
	l.stored(ctx, t)
}

// prune deletes what next has no more. What holds data it remembers instead.
func (l *life) prune(ctx context.Context, t *testing.T, next []*unstructured.Unstructured) {
	t.Helper()
	there := names(next)
	missing := func(o *unstructured.Unstructured) bool { return !slices.Contains(there, harness.Name(o)) }
	gone := only(l.now, missing)
	l.held = append(only(l.held, missing), only(gone, holdsData)...)
	for _, o := range slices.Backward(gone) {
		if holdsData(o) {
			continue
		}
		if err := l.applier.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
}

// stored wants every definition to know the versions in which objects of it
// are stored: the one in which it stores them, and no other.
func (l *life) stored(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, o := range slices.Concat(only(l.now, isCRD), only(l.held, isCRD)) {
		live, err := l.applier.Get(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
		if diff := cmp.Diff([]string{storageVersion(live)}, got); diff != "" {
			t.Errorf("%s: stored versions (-want +got):\n%s", harness.Name(o), diff)
		}
	}
}

// storageVersion returns the version in which a definition's objects are
// stored.
func storageVersion(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if fields, ok := v.(map[string]any); ok && fields["storage"] == true {
			name, _ := fields["name"].(string)
			return name
		}
	}
	return ""
}

// confirm removes what is left of the operator, as a person does who no longer
// needs its data.
func (l *life) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shared := names(l.others)
	left := only(slices.Concat(l.now, l.held), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(shared, harness.Name(o))
	})
	for _, o := range slices.Backward(left) {
		if err := l.applier.Delete(ctx, o); err != nil {
			return err
		}
	}
	return l.applier.AwaitGone(ctx, only(left, isCRD))
}

// prerequisites applies the CRDs of two operators whose custom resources others
// ship, and returns them.
func prerequisites(t *testing.T, cluster *harness.Cluster, program, corpus string) []*unstructured.Unstructured {
	t.Helper()
	var crds []*unstructured.Unstructured
	for _, pkg := range []string{"cert-manager", "prometheus"} {
		crds = append(crds, only(alone(t, program, corpus, pkg), isCRD)...)
	}
	if _, err := applier(t, cluster).Apply(within(t, time.Minute), crds); err != nil {
		t.Fatal(err)
	}
	return crds
}
