package cluster_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestPiecesArgoCD applies environments in pieces, one per operator, with Argo CD's own controllers. Each piece
// has its own ApplicationSet.
func TestPiecesArgoCD(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	harness.Require(t, "argocd")
	second := harness.Start(t, harness.Options{APIOnly: true}) // it ends after the controllers that watch it
	cluster := harness.Start(t, harness.Options{})
	startResyncing(t, cluster, 3*time.Minute) // the tests refresh, like a webhook
	runPieceScenarios(t, cluster, second, argoEngine{})
}

// TestPiecesFlux is like TestPiecesArgoCD, with Flux's own controllers. Each piece has its own Kustomization.
func TestPiecesFlux(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	second := harness.Start(t, harness.Options{APIOnly: true}) // it ends after the controllers that watch it
	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	runPieceScenarios(t, cluster, second, fluxEngine{})
}

// runPieceScenarios runs every scenario in its own environment.
func runPieceScenarios(t *testing.T, cluster, second *harness.Cluster, engine pieceEngine) {
	t.Helper()
	slots := make(chan struct{}, 4) // a small machine is too slow for more
	if _, err := applier(t, cluster).Apply(within(t, time.Minute), objects(t, rejectionPolicy)); err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []struct {
		environment, name string
		run               func(ctx context.Context, t *testing.T, f *pieceFleet)
	}{
		{"again", "a second sync writes nothing", syncsAgain},
		{"unhealthy", "an unhealthy operator holds back no other", isolatesUnhealthy},
		{"refused", "a refused CRD holds back those that require it", isolatesRefused},
		{"rollback", "a rollback leaves other operators alone", rollsBack},
		{"removed", "a removed operator is uninstalled and comes back", removesOperator},
		{"mistake", "a piece deleted by mistake leaves its objects", orphansDeletedPiece},
		{"granularity", "the granularity changes", changesGranularity},
		{"circle", "two pieces join and part", joinsPieces},
		{"renamed", "the environment is renamed", renamesEnvironment},
		{"clusters", "a cluster is taken out", removesCluster},
		{"injected", "a CA that a controller fills in stays", keepsInjected},
		{"moved", "a file moves between two pieces", movesFile},
		{"recreated", "an object is recreated on request", recreatesObject},
		{"hooks", "hooks of a chart run", runsHooks},
		{"kept", "objects that Helm keeps outlive their operator", keepsObjects},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel() // mostly waits; each scenario has its own environment
			slots <- struct{}{}
			defer func() { <-slots }()
			scenario.run(within(t, 8*time.Minute), t, newPieceFleet(t, cluster, second, engine, scenario.environment))
		})
	}
}

// newOperator returns an operator in the scenario's Namespace.
func (f *pieceFleet) newOperator(name string) tinyOperator {
	return tinyOperator{namespace: fluxSource(f.state), name: name, version: "v1"}
}

// key returns the key of an operator in the scenario's Namespace.
func (f *pieceFleet) key(name string) string { return f.newOperator(name).key() }

func syncsAgain(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c, d := f.newOperator("a"), f.newOperator("b"), f.newOperator("c"), f.newOperator("d")
	a.hasCRD, b.requires = true, []string{a.name}
	f.state.operators = []tinyOperator{a, b, c, d}
	f.state.extra = "{apiVersion: " + a.key() + ".example.com/v1, kind: Thing, metadata: {name: extra, namespace: " + a.namespace + "}}\n"
	f.install(ctx, t)
	before := f.identify(ctx, t, f.desired(t))
	f.lastCommitTime = time.Now()
	for _, o := range f.engineObjects(ctx, t) {
		f.engine.syncAgain(ctx, t, f, o)
	}
	f.logDuration(t, "second sync")
	checkUntouched(t, "second sync", before, f.identify(ctx, t, f.desired(t)))
}

func isolatesUnhealthy(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c := f.newOperator("a"), f.newOperator("b"), f.newOperator("c")
	a.fault = "unhealthy"
	f.state.operators = []tinyOperator{a, b, c}
	f.install(ctx, t, a.key())
	f.awaitUnsettled(ctx, t, a.key())
	upgraded := f.state.clone()
	upgraded.operator(b.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade another operator", upgraded, a.key())
	f.awaitUnsettled(ctx, t, a.key())
	fixed := f.state.clone()
	*fixed.operator(a.key()) = f.newOperator("a")
	fixed.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "fix", fixed)
}

func isolatesRefused(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c, d, e := f.newOperator("a"), f.newOperator("b"), f.newOperator("c"), f.newOperator("d"), f.newOperator("e")
	a.hasCRD, a.fault, b.requires, d.fault, e.requires = true, "CRD refused", []string{a.name}, "object refused", []string{d.name}
	f.state.operators = []tinyOperator{a, b, c, d, e}
	except := []string{a.key(), b.key(), d.key(), e.key()}
	f.install(ctx, t, except...)
	f.awaitUnsettled(ctx, t, a.key(), d.key())
	upgraded := f.state.clone()
	upgraded.operator(c.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade another operator", upgraded, except...)
	fixed := f.state.clone()
	fixed.operator(a.key()).fault, fixed.operator(d.key()).fault = "", ""
	f.upgrade(ctx, t, "fix", fixed)
}

func rollsBack(ctx context.Context, t *testing.T, f *pieceFleet) {
	f.state.operators = []tinyOperator{f.newOperator("a"), f.newOperator("b"), f.newOperator("c")}
	f.install(ctx, t)
	first := f.state
	others := f.desired(t, f.key("b"), f.key("c"))
	before, own := f.identify(ctx, t, others), f.identify(ctx, t, f.desired(t, f.key("a")))
	upgraded := f.state.clone()
	upgraded.operator(f.key("a")).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)

	f.state, f.commit, f.lastCommitTime = first, f.repository.revert(t, f.dir), time.Now()
	f.engine.refresh(ctx, t, f)
	f.settle(ctx, t)
	f.logDuration(t, "rollback")
	checkUntouched(t, "rollback", before, f.identify(ctx, t, others))
	checkUIDs(t, "rollback", own, f.identify(ctx, t, f.desired(t, f.key("a"))))
}

func removesOperator(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.newOperator("a")
	a.hasCRD = true
	f.state.operators = []tinyOperator{a, f.newOperator("b"), f.newOperator("c")}
	f.install(ctx, t)
	installed := f.state
	others, own := f.desired(t, f.key("b"), f.key("c")), f.desired(t, a.key())
	definitions := only(own, isCRD)
	before, data := f.identify(ctx, t, others), f.identify(ctx, t, definitions)

	f.state = installed.without(a.key())
	f.state.leaving = []string{a.key()}
	f.push(ctx, t, "remove")
	f.awaitGone(ctx, t, only(own, func(o *unstructured.Unstructured) bool { return !isCRD(o) }))
	f.logDuration(t, "objects gone")
	f.settle(ctx, t)
	f.logDuration(t, "remove")
	checkUntouched(t, "remove", before, f.identify(ctx, t, others))
	checkUIDs(t, "remove", data, f.identify(ctx, t, definitions))

	f.upgrade(ctx, t, "add again", installed)
	checkUntouched(t, "add again", before, f.identify(ctx, t, others))
	checkUIDs(t, "add again", data, f.identify(ctx, t, definitions))

	leaving := installed.without(a.key())
	leaving.leaving = []string{a.key()}
	f.upgrade(ctx, t, "remove again", leaving)
	f.upgrade(ctx, t, "prune", installed.without(a.key()))
	checkUntouched(t, "prune", before, f.identify(ctx, t, others))
	checkUIDs(t, "prune", data, f.identify(ctx, t, definitions))
}

func orphansDeletedPiece(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.newOperator("a")
	a.hasCRD = true
	f.state.operators = []tinyOperator{a, f.newOperator("b")}
	f.install(ctx, t)
	installed := f.state
	all := f.desired(t)
	before := f.identify(ctx, t, all)
	f.upgrade(ctx, t, "delete by mistake", installed.without(a.key()))
	checkUntouched(t, "delete by mistake", before, f.identify(ctx, t, all))
	f.upgrade(ctx, t, "add again", installed)
	checkUIDs(t, "add again", before, f.identify(ctx, t, all))
}

func changesGranularity(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.newOperator("a"), f.newOperator("b")
	a.hasCRD, b.requires = true, []string{a.name}
	f.state.asOneUnit = true
	f.state.operators = []tinyOperator{a, b, f.newOperator("c")}
	f.install(ctx, t)
	all := f.desired(t)
	before := f.identify(ctx, t, all)
	for _, whole := range []bool{false, true} {
		next := f.state.clone()
		next.asOneUnit = whole
		old := f.parents
		f.state = next
		f.push(ctx, t, map[bool]string{false: "cluster to operator", true: "operator to cluster"}[whole])
		f.replaceParents(ctx, t, old)
		f.settle(ctx, t)
		f.logDuration(t, "granularity")
		checkUIDs(t, "granularity", before, f.identify(ctx, t, all))
	}
	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	checkUIDs(t, "upgrade", before, f.identify(ctx, t, all))
}

func joinsPieces(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.newOperator("a"), f.newOperator("b")
	a.hasCRD, b.hasCRD = true, true
	f.state.operators = []tinyOperator{a, b, f.newOperator("c")}
	f.install(ctx, t)
	all := f.desired(t)
	others := f.desired(t, f.key("c"))
	before, apart := f.identify(ctx, t, all), f.identify(ctx, t, others)
	parted := f.state
	joined := f.state.clone()
	joined.operator(a.key()).requires, joined.operator(b.key()).requires = []string{b.name}, []string{a.name}
	f.upgrade(ctx, t, "join", joined)
	checkUIDs(t, "join", before, f.identify(ctx, t, all))
	f.upgrade(ctx, t, "part", parted)
	checkUIDs(t, "part", before, f.identify(ctx, t, all))
	checkUntouched(t, "join and part", apart, f.identify(ctx, t, others))
}

func renamesEnvironment(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.newOperator("a")
	a.hasCRD = true
	f.state.operators = []tinyOperator{a, f.newOperator("b")}
	f.install(ctx, t)
	all := f.desired(t)
	before := f.identify(ctx, t, all)
	old := f.parents

	next := f.state.clone()
	next.environment += "-new"
	f.state = next
	f.push(ctx, t, "rename")
	f.awaitRenamed(ctx, t, old)
	f.logDuration(t, "renamed by the old parent")
	f.replaceParents(ctx, t, old)
	f.settle(ctx, t)
	f.logDuration(t, "rename")
	checkUIDs(t, "rename", before, f.identify(ctx, t, all))
	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	checkUIDs(t, "upgrade", before, f.identify(ctx, t, all))
}

// awaitRenamed waits until the old parents have created the engine objects with the new names, and deleted the
// engine objects with the old names.
func (f *pieceFleet) awaitRenamed(ctx context.Context, t *testing.T, old []*unstructured.Unstructured) {
	t.Helper()
	f.await(ctx, t, "renamed", func() string {
		want, out := f.engine.engineObjects(t, f), ""
		for _, parent := range f.engine.parents(t, f) {
			delete(want, parent.GetName())
		}
		for _, parent := range old {
			want[parent.GetName()] = ""
		}
		for _, o := range f.engineObjects(ctx, t) {
			if _, known := want[o.GetName()]; !known {
				out += o.GetName() + " is left\n"
			}
			delete(want, o.GetName())
		}
		for name := range want {
			out += name + " is missing\n"
		}
		return out
	})
}

func removesCluster(ctx context.Context, t *testing.T, f *pieceFleet) {
	there := applier(t, f.second)
	a, b := f.newOperator("a"), f.newOperator("b")
	a.noDeployment, b.noDeployment, a.hasCRD = true, true, true // no controller makes a Deployment available there
	f.state.operators = []tinyOperator{a, b}
	f.state.clusters = append(f.state.clusters, f.engine.register(ctx, t, f, "second", f.second))
	both := f.state
	f.install(ctx, t)
	all := f.desired(t)
	if err := there.Await(ctx, all); err != nil {
		t.Fatal(err)
	}
	here, before := f.identify(ctx, t, all), identifyAt(ctx, t, there, all)

	f.state = both.clone()
	f.state.clusters = f.state.clusters[:1]
	f.push(ctx, t, "take a cluster out")
	f.replaceParents(ctx, t, f.parents)
	f.settle(ctx, t)
	f.logDuration(t, "take a cluster out")
	checkUntouched(t, "the cluster that stays", here, f.identify(ctx, t, all))
	checkUntouched(t, "the cluster that is taken out", before, identifyAt(ctx, t, there, all))

	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	checkUntouched(t, "the cluster that is taken out", before, identifyAt(ctx, t, there, all))

	f.state = both.clone()
	f.state.operator(a.key()).version = "v2"
	f.push(ctx, t, "add the cluster again")
	f.applyParents(ctx, t)
	f.settle(ctx, t)
	f.logDuration(t, "add the cluster again")
	checkUIDs(t, "the cluster that is added again", before, identifyAt(ctx, t, there, all))
}

// replaceParents applies the rendered parents, and deletes old parents that are no longer rendered, as a person
// does.
func (f *pieceFleet) replaceParents(ctx context.Context, t *testing.T, old []*unstructured.Unstructured) {
	t.Helper()
	f.applyParents(ctx, t)
	for _, parent := range old {
		if !slices.Contains(names(f.parents), harness.Name(parent)) {
			if err := f.live.Delete(ctx, parent); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func movesFile(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.newOperator("a"), f.newOperator("b")
	a.takesConfigMap, a.takesCRD, a.hasCRD, b.hasCRD = true, true, true, true
	f.state.operators = []tinyOperator{a, b}
	f.install(ctx, t)
	shared := only(f.desired(t), func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "shared") })
	for _, o := range shared {
		f.awaitOwner(ctx, t, a.key(), o)
	}
	definitions := only(shared, isCRD)
	before := f.identify(ctx, t, definitions)

	// A directory of CRDs has no kustomization: moving a CRD renames its file, and otherwise changes only digests.
	next := f.state.clone()
	next.operator(a.key()).takesCRD, next.operator(b.key()).takesCRD = false, true
	f.upgrade(ctx, t, "move a definition", next)
	renames := f.repository.git(t, f.dir, "diff", "--find-renames", "--diff-filter=R", "--name-status", "HEAD~1", "HEAD")
	if !strings.Contains(renames, "\trendered/crds/a/") || !strings.Contains(renames, "\trendered/crds/b/") {
		t.Fatalf("the commit renames %q, want the CRD", renames)
	}
	f.awaitOwner(ctx, t, b.key(), definitions[0])
	checkUIDs(t, "move a definition", before, f.identify(ctx, t, definitions))

	// An object that moves between two remaining pieces may be recreated.
	next = f.state.clone()
	next.operator(a.key()).takesConfigMap, next.operator(b.key()).takesConfigMap = false, true
	f.upgrade(ctx, t, "move an object", next)
	for _, o := range shared {
		f.awaitOwner(ctx, t, b.key(), o)
	}
}

func keepsInjected(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.newOperator("a"), f.newOperator("b")
	a.hasCRD, a.crdCA = true, base64.StdEncoding.EncodeToString(f.ca)
	b.hasCRD, b.hasWebhook = true, true
	f.state.operators = []tinyOperator{a, b}
	f.install(ctx, t)
	all := f.desired(t)
	f.injectCA(ctx, t, all)
	before := f.identify(ctx, t, all)
	for _, o := range f.engineObjects(ctx, t) {
		f.engine.syncAgain(ctx, t, f, o)
	}
	f.settle(ctx, t)
	checkUntouched(t, "second sync", before, f.identify(ctx, t, all))

	upgraded := f.state.clone()
	upgraded.operator(a.key()).version, upgraded.operator(b.key()).version = "v2", "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	for _, o := range f.desired(t) {
		live, err := f.live.Get(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if config := clientConfig(live); config != nil && config["caBundle"] != f.injectedCA() {
			t.Errorf("%s: the injected CA was removed: %v", harness.Name(o), config)
		}
	}
}

// recreatesObject changes an immutable field. The engine cannot apply the change until spec.recreate names the
// object. The next upgrade does not recreate the object.
func recreatesObject(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.newOperator("a")
	a.service = "cluster"
	f.state.operators = []tinyOperator{a, f.newOperator("b")}
	f.install(ctx, t)
	isService := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Service" }
	isOther := func(o *unstructured.Unstructured) bool { return !isService(o) }
	service, others := only(f.desired(t), isService), only(f.desired(t), isOther)
	before, around := f.identify(ctx, t, service), f.identify(ctx, t, others)

	f.state = f.state.clone()
	f.state.operator(a.key()).version, f.state.operator(a.key()).service = "v2", "headless"
	f.push(ctx, t, "change an immutable field")
	f.awaitUnsettled(ctx, t, a.key())
	checkUIDs(t, "change an immutable field", before, f.identify(ctx, t, service))

	next := f.state.clone()
	next.recreate = fmt.Sprintf("{operator: %s/%s, version: 1.2.0, kind: Service, name: %s}", a.namespace, a.name, a.name)
	f.upgrade(ctx, t, "recreate", next)
	recreated := f.identify(ctx, t, service)
	if name := harness.Name(service[0]); recreated[name].UID == "" || recreated[name].UID == before[name].UID {
		t.Errorf("%s has the UID %q, as before", name, recreated[name].UID)
	}
	checkUIDs(t, "recreate", around, f.identify(ctx, t, others))

	next = f.state.clone() // with the entry of the previous version
	next.operator(a.key()).version = "v3"
	f.upgrade(ctx, t, "next upgrade", next)
	checkUIDs(t, "next upgrade", recreated, f.identify(ctx, t, service))
	for _, o := range only(f.desired(t), isService) {
		if all := fmt.Sprint(o.GetAnnotations()); strings.Contains(strings.ToLower(all), "force") {
			t.Errorf("%s would be recreated again: %s", harness.Name(o), all)
		}
	}
}

// runsHooks installs and upgrades a chart. Each Job among the chart's hooks runs to completion at the
// installation, and again at an upgrade that changes the Job. With Argo CD, hooks run before or after the other
// objects are applied.
func runsHooks(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.newOperator("a")
	a.isChart = true
	f.state.operators = []tinyOperator{a, f.newOperator("b")}
	f.install(ctx, t)
	jobs := only(f.desired(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" })
	others := only(f.desired(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "ConfigMap" })
	if len(jobs) != 3 {
		t.Fatalf("rendered %q, want three Jobs", names(jobs))
	}
	f.checkHooks(ctx, t, "v1", jobs)
	before, around := f.identify(ctx, t, jobs), f.identify(ctx, t, others)
	if _, isArgo := f.engine.(argoEngine); isArgo {
		created := func(o *unstructured.Unstructured) time.Time {
			live, err := f.live.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			return live.GetCreationTimestamp().Time
		}
		for _, job := range jobs {
			if after := strings.HasSuffix(job.GetName(), "-after"); after && created(job).Before(created(others[0])) || !after && created(others[0]).Before(created(job)) {
				t.Errorf("%s did not run in its phase", harness.Name(job))
			}
		}
	}
	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	f.checkHooks(ctx, t, "v2", jobs)
	for name, id := range f.identify(ctx, t, jobs) {
		if id.UID == before[name].UID {
			t.Errorf("%s was not recreated", name)
		}
	}
	checkUIDs(t, "upgrade", around, f.identify(ctx, t, others))
	again := f.identify(ctx, t, append(others, jobs...))
	f.engine.refresh(ctx, t, f)
	f.settle(ctx, t)
	checkUntouched(t, "second comparison", again, f.identify(ctx, t, append(others, jobs...)))
}

// keepsObjects upgrades a chart to a version without its kept objects, and removes another chart that still has kept
// objects. The kept objects must remain in the cluster. The engine must settle, although they are not rendered.
func keepsObjects(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.newOperator("a"), f.newOperator("b")
	for _, o := range []*tinyOperator{&a, &b} {
		o.isChart, o.hasKept = true, true
		volume := objects(t, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s-%s},
spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}, persistentVolumeReclaimPolicy: Retain}}`, o.namespace, o.name))
		if _, err := f.live.Apply(ctx, volume); err != nil {
			t.Fatal(err)
		}
	}
	f.state.operators = []tinyOperator{a, b, f.newOperator("c")}
	f.install(ctx, t)
	isKept := func(o *unstructured.Unstructured) bool { return o.GetLabels()["example.com/version"] == "kept" }
	kept := only(f.desired(t), isKept)
	if len(kept) != 6 {
		t.Fatalf("rendered %q, want six objects that are kept", names(kept))
	}
	before := f.identify(ctx, t, kept)

	upgraded := f.state.clone()
	upgraded.operator(a.key()).version, upgraded.operator(a.key()).hasKept = "v2", false
	f.upgrade(ctx, t, "upgrade without the objects", upgraded)
	if still := only(f.desired(t, a.key()), isKept); len(still) > 0 {
		t.Errorf("the new version contains %q", names(still))
	}
	checkUIDs(t, "upgrade without the objects", before, f.identify(ctx, t, kept))

	own := only(f.desired(t, b.key()), func(o *unstructured.Unstructured) bool { return o.GetKind() == "ConfigMap" && !isKept(o) })
	f.state = f.state.without(b.key())
	f.state.leaving = []string{b.key()}
	f.push(ctx, t, "remove")
	f.awaitGone(ctx, t, own)
	f.settle(ctx, t)
	checkUIDs(t, "remove", before, f.identify(ctx, t, kept))
	pruned := f.state.clone()
	pruned.leaving = nil
	f.upgrade(ctx, t, "prune", pruned)
	checkUIDs(t, "prune", before, f.identify(ctx, t, kept))
	again := f.identify(ctx, t, kept)
	f.engine.refresh(ctx, t, f)
	f.settle(ctx, t)
	checkUntouched(t, "second comparison", again, f.identify(ctx, t, kept))
}

// checkHooks waits until the Jobs of a version are complete.
func (f *pieceFleet) checkHooks(ctx context.Context, t *testing.T, version string, jobs []*unstructured.Unstructured) {
	t.Helper()
	f.await(ctx, t, "complete", func() string {
		for _, job := range jobs {
			live, err := f.live.Get(ctx, job)
			if err != nil {
				return err.Error()
			}
			if status, _, _ := harness.Condition(live, "Complete"); status != "True" || live.GetLabels()["example.com/version"] != version {
				return fmt.Sprintf("%s of version %s: complete: %q", harness.Name(job), live.GetLabels()["example.com/version"], status)
			}
		}
		return ""
	})
}

// injectedCA returns a CA as set by OpenShift's service CA operator.
func (f *pieceFleet) injectedCA() string {
	return base64.StdEncoding.EncodeToString(f.second.RESTConfig.CAData)
}

// injectCA sets the CA of the webhook and the CRD, like the service CA operator.
func (f *pieceFleet) injectCA(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	filled := 0
	for _, o := range list {
		live, err := f.live.Get(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		config := clientConfig(live)
		if config == nil {
			continue
		}
		config["caBundle"] = f.injectedCA()
		resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		if !isCRD(o) {
			resource = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
		}
		if _, err := f.client.Resource(resource).Update(ctx, live, metav1.UpdateOptions{FieldManager: "service-ca-operator"}); err != nil {
			t.Fatal(err)
		}
		filled++
	}
	if filled != 2 {
		t.Fatalf("a CA was injected into %d objects, want a CRD and a webhook", filled)
	}
}

// clientConfig returns the webhook client configuration of a CRD or of a webhook configuration, or
// nil.
func clientConfig(o *unstructured.Unstructured) map[string]any {
	config, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
	if hooks, _, _ := unstructured.NestedFieldNoCopy(o.Object, "webhooks"); hooks != nil {
		config = hooks.([]any)[0].(map[string]any)["clientConfig"]
	}
	out, _ := config.(map[string]any)
	return out
}

// awaitUnsettled waits until each of these pieces has failed to apply the current commit.
func (f *pieceFleet) awaitUnsettled(ctx context.Context, t *testing.T, pieces ...string) {
	t.Helper()
	f.await(ctx, t, "unsettled", func() string {
		of := map[string]string{}
		all := f.engine.engineObjects(t, f)
		for _, o := range f.engineObjects(ctx, t) {
			of[all[o.GetName()]] += f.engine.unsettled(o, f.commit)
		}
		for _, piece := range pieces {
			if of[piece] == "" {
				return piece + " is settled"
			}
		}
		return ""
	})
}

// awaitOwner waits until exactly the engine objects of a piece own an object.
func (f *pieceFleet) awaitOwner(ctx context.Context, t *testing.T, piece string, o *unstructured.Unstructured) {
	t.Helper()
	all := f.engine.engineObjects(t, f)
	f.await(ctx, t, "owned by "+piece, func() string {
		var owners []string
		for _, by := range f.engineObjects(ctx, t) {
			if f.engine.owns(by, o) {
				owners = append(owners, all[by.GetName()])
			}
		}
		if slices.Equal(owners, []string{piece}) {
			return ""
		}
		return fmt.Sprintf("%s is part of %q", harness.Name(o), owners)
	})
}
