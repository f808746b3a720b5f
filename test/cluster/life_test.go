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

// operatorLives returns the real operators of the corpus that have an upgrade path, each with its path. A path
// begins with the oldest version. Each next version is one upgrade edge away.
func operatorLives() []life {
	return []life{
		{pkg: "cert-manager", versions: []string{"1.14.2", "1.15.2", "1.16.1"}},
		{pkg: "etcd", format: "package-manifests", versions: []string{"0.9.0", "0.9.2", "0.9.4"}},
		{pkg: "rabbitmq-cluster-operator", versions: []string{"2.22.1", "2.22.2", "2.22.3"}},
		{pkg: "argocd-operator", versions: []string{"0.9.1", "0.14.0", "0.18.0"}},
		{pkg: "dns-operator", breaks: true, versions: []string{"0.2.0", "0.6.0"}},
		{pkg: "grafana-operator", versions: []string{"5.22.2", "5.24.0"}},
	}
}

// TestLife installs an old version of each operator by a commit, upgrades the operator step by step, reverts the last
// upgrade, uninstalls the operator, and deletes the remaining objects. Custom resources are created from the samples
// of the oldest version. They are also in the repository, so that the output of `quayside diff` for each step can be
// compared with the behaviour of the API server. Webhooks are rendered and applied, but not called, because no
// operator runs to answer requests.
func TestLife(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to upgrade")
	}
	cluster := harness.Start(t, harness.Options{NoWebhooks: true})
	program := build(t)
	var others []*unstructured.Unstructured // CRDs that operators need besides their own
	for _, l := range operatorLives() {
		t.Run(l.pkg, func(t *testing.T) {
			l.applier, l.others = applier(t, cluster), others
			l.createWorkspace(t, program, corpus)
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

// life is an operator under test, with its workspace and its cluster.
type life struct {
	pkg      string
	format   string   // of the catalog; "" means bundles
	versions []string // the upgrade path
	breaks   bool     // a sample of the oldest version is invalid in the newest version

	quayside
	repository repository
	applier    *harness.Applier
	others     []*unstructured.Unstructured // other objects of the cluster with quayside's labels

	applied  []*unstructured.Unstructured // the rendered and applied objects
	unpruned []*unstructured.Unstructured // objects that are no longer in the tree, but must not be pruned
	data     []*sample

	broken int // samples that became invalid, as predicted by diff
}

// createWorkspace creates the workspace with a declaration of the oldest version.
func (l *life) createWorkspace(t *testing.T, program, corpus string) {
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
  provides: {apis: [cert-manager.io/v1, monitoring.coreos.com/v1, operators.coreos.com/v1alpha1]}
`, source)})
	l.declare(t, l.versions[0])
	l.repository = inWorkspace(t, l.quayside)
	l.data = samples(t, content)
}

// declaration is the file that declares the operator.
const declaration = "subscriptions/operator.yaml"

// declare writes the Subscription to the operator with a version, or with "" for any version.
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
		if err := l.deleteUnpruned(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("removing all of it: %v", err)
		}
	})
	l.must(t, "resolve", "--offline")
	l.commit(t, "install")
	l.applyStep(ctx, t, l.versions[0])
	l.createSamples(ctx, t)
	l.repository.commit(t, l.dir, "use it")

	l.declare(t, "")
	for _, version := range l.versions[1:] {
		said := l.diff(t, "--upgrade")
		l.must(t, "resolve", "--offline", "--upgrade")
		l.commit(t, "upgrade")
		l.stepAndCompare(ctx, t, version, said)
	}

	if l.breaks && l.broken == 0 {
		t.Error("the upgrade known to break a custom resource broke none")
	}

	l.repository.revert(t, l.dir)
	l.must(t, "verify", "--offline")
	l.stepAndCompare(ctx, t, l.versions[len(l.versions)-2], l.diff(t, "HEAD~1..HEAD"))

	l.remove(t, declaration)
	l.must(t, "resolve", "--offline")
	said := l.diff(t, "HEAD")
	l.commit(t, "uninstall")
	l.stepAndCompare(ctx, t, "", said)
	if len(l.applied) > 0 {
		t.Errorf("%v is rendered without a declaration", names(l.applied))
	}

	if err := l.deleteUnpruned(ctx); err != nil {
		t.Fatal(err)
	}
	l.unpruned = nil
	awaitRendered(ctx, t, l.applier, nil, l.others)
}

// commit renders the lock and commits everything.
func (l *life) commit(t *testing.T, message string) {
	t.Helper()
	l.must(t, "render", "--offline")
	l.repository.commit(t, l.dir, message)
}

// stepAndCompare applies the rendered objects to the cluster, and compares the result with the
// output of diff.
func (l *life) stepAndCompare(ctx context.Context, t *testing.T, version string, said findings) {
	t.Helper()
	before := slices.Clone(l.unpruned)
	l.applyStep(ctx, t, version)
	for _, rule := range rejectionRules() {
		for _, f := range said.withRule(rule) {
			t.Errorf("the API server accepted an object that diff reports as rejected: %s: %s %s: %s", rule, f.Object.Kind, f.Object.Name, f.Message)
		}
	}
	l.checkRemovals(t, said, before)
	l.compareSamples(ctx, t, said)
}

// applyStep applies the rendered objects, and prunes removed objects except objects with data. It checks that
// the cluster has exactly the remaining objects, and that they are ready.
func (l *life) applyStep(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	next := l.rendered(t)
	for _, o := range next {
		versioned := o.GetKind() == "Deployment" || isCRD(o)
		if got := o.GetLabels()["quayside.dev/version"]; versioned && got != version && o.GetLabels()["quayside.dev/package"] == l.pkg {
			t.Fatalf("%s has version %q, want %q", harness.Name(o), got, version)
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
	l.applied = next
	i := installation{applier: l.applier, objects: next}
	if err := l.applier.Await(ctx, only(next, i.becomesReady)); err != nil {
		t.Fatal(err)
	}
	for _, o := range next {
		i.checkUnchanged(ctx, t, o)
	}
	awaitRendered(ctx, t, l.applier, next, slices.Concat(l.unpruned, l.others))
	l.checkStoredVersions(ctx, t)
}

// prune deletes the applied objects that next does not contain. It adds objects with data to l.unpruned
// instead.
func (l *life) prune(ctx context.Context, t *testing.T, next []*unstructured.Unstructured) {
	t.Helper()
	there := names(next)
	missing := func(o *unstructured.Unstructured) bool { return !slices.Contains(there, harness.Name(o)) }
	gone := only(l.applied, missing)
	l.unpruned = append(only(l.unpruned, missing), only(gone, holdsData)...)
	for _, o := range slices.Backward(gone) {
		if holdsData(o) {
			continue
		}
		if err := l.applier.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
}

// checkStoredVersions checks that status.storedVersions of every CRD contains only the storage version.
func (l *life) checkStoredVersions(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, o := range slices.Concat(only(l.applied, isCRD), only(l.unpruned, isCRD)) {
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

// storageVersion returns the storage version of a CRD.
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

// deleteUnpruned deletes the remaining objects of the operator, like a person who confirms the loss of data.
func (l *life) deleteUnpruned(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shared := names(l.others)
	left := only(slices.Concat(l.applied, l.unpruned), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(shared, harness.Name(o))
	})
	for _, o := range slices.Backward(left) {
		if err := l.applier.Delete(ctx, o); err != nil {
			return err
		}
	}
	return l.applier.AwaitGone(ctx, only(left, isCRD))
}

// prerequisites applies and returns the CRDs of two operators, because bundles of other operators contain
// custom resources of these CRDs.
func prerequisites(t *testing.T, cluster *harness.Cluster, program, corpus string) []*unstructured.Unstructured {
	t.Helper()
	var crds []*unstructured.Unstructured
	for _, pkg := range []string{"cert-manager", "prometheus"} {
		crds = append(crds, only(renderAlone(t, program, corpus, pkg), isCRD)...)
	}
	if _, err := applier(t, cluster).Apply(within(t, time.Minute), crds); err != nil {
		t.Fatal(err)
	}
	return crds
}
