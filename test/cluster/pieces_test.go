package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestPiecesArgoCD has Argo CD's own controllers apply an environment in pieces, one
// per operator, by an ApplicationSet each.
func TestPiecesArgoCD(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	harness.Require(t, "argocd")
	second := harness.Start(t, harness.Options{APIOnly: true}) // it ends after what watches it
	cluster := harness.Start(t, harness.Options{})
	startResyncing(t, cluster, 3*time.Minute) // the tests ask, as a webhook does
	runPieceScenarios(t, cluster, second, argoEngine{})
}

// TestPiecesFlux has Flux's own controllers do the same, by a Kustomization each.
func TestPiecesFlux(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	second := harness.Start(t, harness.Options{APIOnly: true}) // it ends after what watches it
	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	runPieceScenarios(t, cluster, second, fluxEngine{})
}

// runPieceScenarios runs every scenario in an environment of its own.
func runPieceScenarios(t *testing.T, cluster, second *harness.Cluster, engine pieceEngine) {
	t.Helper()
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
		{"moved", "a file moves between two pieces", movesFile},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel() // each has an environment of its own, and mostly waits
			scenario.run(within(t, 4*time.Minute), t, newPieceFleet(t, cluster, second, engine, scenario.environment))
		})
	}
}

// tiny returns an operator of the scenario's own Namespace.
func (f *pieceFleet) tiny(name string) tinyOperator {
	return tinyOperator{namespace: fluxSource(f.state), name: name, version: "v1"}
}

// key returns the key of an operator in the scenario's own Namespace.
func (f *pieceFleet) key(name string) string { return f.tiny(name).key() }

func syncsAgain(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c, d := f.tiny("a"), f.tiny("b"), f.tiny("c"), f.tiny("d")
	a.api, b.uses = true, a.key()
	f.state.operators = []tinyOperator{a, b, c, d}
	f.install(ctx, t)
	before := f.identify(ctx, t, f.state.desired(t))
	f.began = time.Now()
	for _, o := range f.engineObjects(ctx, t) {
		f.engine.syncAgain(ctx, t, f, o)
	}
	f.record(t, "second sync")
	untouched(t, "second sync", before, f.identify(ctx, t, f.state.desired(t)))
}

func isolatesUnhealthy(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c := f.tiny("a"), f.tiny("b"), f.tiny("c")
	a.fault = "unhealthy"
	f.state.operators = []tinyOperator{a, b, c}
	f.install(ctx, t, a.key())
	f.awaitUnsettled(ctx, t, a.key())
	upgraded := f.state.clone()
	upgraded.operator(b.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade another operator", upgraded, a.key())
	f.awaitUnsettled(ctx, t, a.key())
	fixed := f.state.clone()
	*fixed.operator(a.key()) = f.tiny("a")
	fixed.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "fix", fixed)
}

func isolatesRefused(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b, c, d, e := f.tiny("a"), f.tiny("b"), f.tiny("c"), f.tiny("d"), f.tiny("e")
	a.api, a.fault, b.uses, d.fault, e.other = true, "CRD refused", a.key(), "object refused", []string{d.key()}
	f.state.operators = []tinyOperator{a, b, c, d, e}
	except := []string{a.key(), b.key(), d.key(), e.key()}
	f.install(ctx, t, except...)
	f.awaitUnsettled(ctx, t, a.key(), b.key(), d.key())
	upgraded := f.state.clone()
	upgraded.operator(c.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade another operator", upgraded, except...)
	fixed := f.state.clone()
	fixed.operator(a.key()).fault, fixed.operator(d.key()).fault = "", ""
	f.upgrade(ctx, t, "fix", fixed)
}

func rollsBack(ctx context.Context, t *testing.T, f *pieceFleet) {
	f.state.operators = []tinyOperator{f.tiny("a"), f.tiny("b"), f.tiny("c")}
	f.install(ctx, t)
	first := f.state
	others := f.state.desired(t, f.key("b"), f.key("c"))
	before, own := f.identify(ctx, t, others), f.identify(ctx, t, f.state.desired(t, f.key("a")))
	upgraded := f.state.clone()
	upgraded.operator(f.key("a")).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)

	f.state, f.commit, f.began = first, f.repository.revert(t, f.dir), time.Now()
	f.engine.refresh(ctx, t, f)
	f.settle(ctx, t)
	f.record(t, "rollback")
	untouched(t, "rollback", before, f.identify(ctx, t, others))
	kept(t, "rollback", own, f.identify(ctx, t, f.state.desired(t, f.key("a"))))
}

func removesOperator(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.tiny("a")
	a.api = true
	f.state.operators = []tinyOperator{a, f.tiny("b"), f.tiny("c")}
	f.install(ctx, t)
	installed := f.state
	others, own := f.state.desired(t, f.key("b"), f.key("c")), f.state.desired(t, a.key())
	definitions := only(own, isCRD)
	before, data := f.identify(ctx, t, others), f.identify(ctx, t, definitions)

	f.state = installed.without(a.key())
	f.state.leaving = []string{a.key()}
	f.push(ctx, t, "remove")
	f.awaitGone(ctx, t, only(own, func(o *unstructured.Unstructured) bool { return !isCRD(o) }))
	f.record(t, "objects gone")
	f.settle(ctx, t)
	f.record(t, "remove")
	untouched(t, "remove", before, f.identify(ctx, t, others))
	kept(t, "remove", data, f.identify(ctx, t, definitions))

	f.upgrade(ctx, t, "add again", installed)
	untouched(t, "add again", before, f.identify(ctx, t, others))
	kept(t, "add again", data, f.identify(ctx, t, definitions))

	f.upgrade(ctx, t, "remove at once", installed.without(a.key()))
}

func orphansDeletedPiece(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.tiny("a")
	a.api = true
	f.state.operators = []tinyOperator{a, f.tiny("b")}
	f.install(ctx, t)
	installed := f.state
	all := f.state.desired(t)
	before := f.identify(ctx, t, all)
	f.upgrade(ctx, t, "delete by mistake", installed.without(a.key()))
	untouched(t, "delete by mistake", before, f.identify(ctx, t, all))
	f.upgrade(ctx, t, "add again", installed)
	kept(t, "add again", before, f.identify(ctx, t, all))
}

func changesGranularity(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.tiny("a"), f.tiny("b")
	a.api, b.uses = true, a.key()
	f.state.whole = true
	f.state.operators = []tinyOperator{a, b, f.tiny("c")}
	f.install(ctx, t)
	all := f.state.desired(t)
	before := f.identify(ctx, t, all)
	for _, whole := range []bool{false, true} {
		next := f.state.clone()
		next.whole = whole
		f.upgrade(ctx, t, map[bool]string{false: "cluster to operator", true: "operator to cluster"}[whole], next)
		kept(t, "granularity", before, f.identify(ctx, t, all))
	}
	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	kept(t, "upgrade", before, f.identify(ctx, t, all))
}

func joinsPieces(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.tiny("a"), f.tiny("b")
	a.api, b.api = true, true
	f.state.operators = []tinyOperator{a, b, f.tiny("c")}
	f.install(ctx, t)
	all := f.state.desired(t)
	others := f.state.desired(t, f.key("c"))
	before, apart := f.identify(ctx, t, all), f.identify(ctx, t, others)
	parted := f.state
	joined := f.state.clone()
	joined.circles = [][]string{{a.key(), b.key()}}
	f.upgrade(ctx, t, "join", joined)
	kept(t, "join", before, f.identify(ctx, t, all))
	f.upgrade(ctx, t, "part", parted)
	kept(t, "part", before, f.identify(ctx, t, all))
	untouched(t, "join and part", apart, f.identify(ctx, t, others))
}

func renamesEnvironment(ctx context.Context, t *testing.T, f *pieceFleet) {
	a := f.tiny("a")
	a.api = true
	f.state.operators = []tinyOperator{a, f.tiny("b")}
	f.install(ctx, t)
	all := f.state.desired(t)
	before := f.identify(ctx, t, all)
	old := f.parents

	next := f.state.clone()
	next.environment += "-new"
	f.state = next
	f.push(ctx, t, "rename")
	f.awaitRenamed(ctx, t, old)
	f.record(t, "renamed by the old parent")
	for _, parent := range old {
		if err := f.live.Delete(ctx, parent); err != nil {
			t.Fatal(err)
		}
	}
	f.applyParents(ctx, t)
	f.settle(ctx, t)
	f.record(t, "rename")
	kept(t, "rename", before, f.identify(ctx, t, all))
	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	kept(t, "upgrade", before, f.identify(ctx, t, all))
}

// awaitRenamed waits until the old parents have made the engine objects of the new
// names, and deleted those of the old ones.
func (f *pieceFleet) awaitRenamed(ctx context.Context, t *testing.T, old []*unstructured.Unstructured) {
	t.Helper()
	f.await(ctx, t, "renamed", func() string {
		want, out := f.engine.engineObjects(f.state), ""
		for _, parent := range objects(t, f.engine.parents(f.state, f.repository.url)) {
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
	a, b := f.tiny("a"), f.tiny("b")
	a.idle, b.idle, a.api = true, true, true // nothing makes a Deployment available there
	f.state.operators = []tinyOperator{a, b}
	f.state.clusters = append(f.state.clusters, f.engine.register(ctx, t, f, "second", f.second))
	both := f.state
	f.install(ctx, t)
	all := f.state.desired(t)
	if err := there.Await(ctx, all); err != nil {
		t.Fatal(err)
	}
	here, before := f.identify(ctx, t, all), identifyAt(ctx, t, there, all)

	f.state = both.clone()
	f.state.clusters = f.state.clusters[:1]
	f.push(ctx, t, "take a cluster out")
	f.removeParents(ctx, t)
	f.settle(ctx, t)
	f.record(t, "take a cluster out")
	untouched(t, "the cluster that stays", here, f.identify(ctx, t, all))
	untouched(t, "the cluster that is taken out", before, identifyAt(ctx, t, there, all))

	upgraded := f.state.clone()
	upgraded.operator(a.key()).version = "v2"
	f.upgrade(ctx, t, "upgrade", upgraded)
	untouched(t, "the cluster that is taken out", before, identifyAt(ctx, t, there, all))

	f.state = both.clone()
	f.state.operator(a.key()).version = "v2"
	f.push(ctx, t, "add the cluster again")
	f.applyParents(ctx, t)
	f.settle(ctx, t)
	f.record(t, "add the cluster again")
	kept(t, "the cluster that is added again", before, identifyAt(ctx, t, there, all))
}

// removeParents deletes the parents that are no longer part of the tree, as a
// person does.
func (f *pieceFleet) removeParents(ctx context.Context, t *testing.T) {
	t.Helper()
	next := objects(t, f.engine.parents(f.state, f.repository.url))
	for _, parent := range f.parents {
		if !slices.Contains(names(next), harness.Name(parent)) {
			if err := f.live.Delete(ctx, parent); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.parents = next
}

func movesFile(ctx context.Context, t *testing.T, f *pieceFleet) {
	a, b := f.tiny("a"), f.tiny("b")
	a.shared, a.sharing, a.api, b.api = true, true, true, true
	f.state.operators = []tinyOperator{a, b}
	f.install(ctx, t)
	shared := only(f.state.desired(t), func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "shared") })
	for _, o := range shared {
		f.awaitOwner(ctx, t, a.key(), o)
	}
	definitions := only(shared, isCRD)
	before := f.identify(ctx, t, definitions)

	// In a plain directory nothing but the digests changes beside the renamed file.
	next := f.state.clone()
	next.operator(a.key()).sharing, next.operator(b.key()).sharing = false, true
	f.upgrade(ctx, t, "move a definition", next)
	renames := f.repository.git(t, f.dir, "diff", "--find-renames", "--diff-filter=R", "--name-status", "HEAD~1", "HEAD")
	if want := "R100\trendered/crds/" + a.key() + "/crd-shareds.yaml\trendered/crds/" + b.key() + "/crd-shareds.yaml"; renames != want {
		t.Fatalf("the commit renames %q, want %q", renames, want)
	}
	f.awaitOwner(ctx, t, b.key(), definitions[0])
	kept(t, "move a definition", before, f.identify(ctx, t, definitions))

	// An object that moves between two living pieces may be made anew.
	next = f.state.clone()
	next.operator(a.key()).shared, next.operator(b.key()).shared = false, true
	f.upgrade(ctx, t, "move an object", next)
	for _, o := range shared {
		f.awaitOwner(ctx, t, b.key(), o)
	}
}

// awaitUnsettled waits until each of these pieces has tried in vain to become what
// is in Git.
func (f *pieceFleet) awaitUnsettled(ctx context.Context, t *testing.T, pieces ...string) {
	t.Helper()
	f.await(ctx, t, "unsettled", func() string {
		of := map[string]string{}
		all := f.engine.engineObjects(f.state)
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

// awaitOwner waits until the engine objects of a piece, and no others, have an
// object.
func (f *pieceFleet) awaitOwner(ctx context.Context, t *testing.T, piece string, o *unstructured.Unstructured) {
	t.Helper()
	all := f.engine.engineObjects(f.state)
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
