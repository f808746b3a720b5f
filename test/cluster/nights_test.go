package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestNightsArgoCD simulates thirty nights with two repositories. The first has the declarations and locks of
// two environments with one cluster each. quayside proposes their trees in the second repository, which Argo CD
// reads. After each night, each cluster has exactly the objects of the last merged tree, none of them recreated.
func TestNightsArgoCD(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: only Flux")
	}
	t.Parallel() // mostly waits; each test has its own servers
	harness.Require(t, "argocd")
	second := harness.Start(t, harness.Options{}) // it ends after the controllers that watch it
	cluster := harness.Start(t, harness.Options{})
	startResyncing(t, cluster, 3*time.Minute) // the test refreshes, like a webhook
	playNights(t, cluster, second, argoEngine{}, 30)
}

// TestNightsFlux simulates the nights of TestNightsArgoCD with Flux.
func TestNightsFlux(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	second := harness.Start(t, harness.Options{}) // it ends after the controllers that watch it
	cluster := harness.Start(t, harness.Options{})
	startFlux(t, cluster, source, kustomize)
	playNights(t, cluster, second, fluxEngine{}, map[bool]int{true: 10, false: 30}[testing.Short()])
}

// twoRepositories has a person's clones of both repositories: desk is the clone with the declarations, and
// deploy is the clone with the trees.
type twoRepositories struct {
	*testing.T
	rand         *rand.Rand
	night        int
	desk, deploy quayside
	source       repository
	environments []*nightEnvironment
	published    map[string]int    // last version in the catalog, by package
	foreign      map[string]string // files in the repository with the trees that are not quayside's
	seen         map[string]int
}

// nightEnvironment is an environment, with the cluster that its operators run in.
type nightEnvironment struct {
	*pieceFleet // its tree is in the clone
	name        string
	cluster     *harness.Applier
	installed   map[string]string            // UIDs, by name
	kept        []*unstructured.Unstructured // CRDs and Namespaces, which no engine deletes
	last        string                       // last merge of a tree, or its revert; "": the first one
	undone      bool                         // whether last is a revert
	leftover    bool                         // whether the branch of last still exists
	reverted    string                       // commit of the declarations whose tree was reverted last
	pruned      bool                         // whether a removed operator has left the lock
}

// nightOperator returns an operator in a catalog: d is a chart, e is a release with manifests, and the others
// are bundles. Only web has a Deployment, and web is only in the first environment.
func nightOperator(name string, version int) tinyOperator {
	o := tinyOperator{namespace: "ops", name: name, version: fmt.Sprint("v", version), noDeployment: name != "web", hasCRD: name == "a" || name == "c"}
	if name == "b" {
		o.requires = []string{"a"}
	}
	o.isChart, o.isRelease = name == "d", name == "e"
	return o
}

// catalogOf returns the directory of the catalog for this kind of operator, and the directory of a version in
// that catalog.
func (o tinyOperator) catalogOf(version string) (catalog, dir string) {
	switch {
	case o.isChart:
		return "charts", o.name + "-" + version
	case o.isRelease:
		return "releases", o.name + "/" + version
	}
	return "bundles", o.name + "/" + version
}

// playNights simulates nights. Before each night, it changes the repositories as people do by day.
func playNights(t *testing.T, cluster, second *harness.Cluster, engine pieceEngine, nights int) {
	ctx, start := within(t, 25*time.Minute), time.Now()
	n := newTwoRepositories(ctx, t, cluster, second, engine)
	for n.night = 1; n.night <= nights; n.night++ {
		n.revertSome(ctx)
		n.changeDeclarations(nights)
		n.mergeUpgrades()
		n.proposeTrees()
		for _, e := range n.environments {
			if n.tip(e) == "" {
				continue
			}
			if n.night < nights && n.rand.IntN(5) < 2 {
				n.seen["trees left open"]++
				continue
			}
			n.merge(e)
			n.seen["trees merged"]++
		}
		if n.rand.IntN(3) == 0 {
			n.foreign["README.md"] = fmt.Sprintln("edited in night", n.night)
			n.deploy.write(t, "README.md", n.foreign["README.md"])
			n.commit(n.deploy, "edit")
		}
		n.sync(ctx)
	}
	n.proposeTrees()
	for _, e := range n.environments {
		if tip := n.tip(e); tip != "" {
			t.Errorf("%s: all is merged, but %s is open", e.name, tip)
		}
	}
	t.Logf("%v in %s", n.seen, time.Since(start).Round(time.Second))
	for _, what := range []string{"upgrades merged", "upgrades left open", "trees merged", "trees left open", "trees reverted", "trees declined"} {
		if n.seen[what] == 0 {
			t.Errorf("the test shows little: no %s", what)
		}
	}
}

// newTwoRepositories creates both repositories, and installs the first versions of the operators.
func newTwoRepositories(ctx context.Context, t *testing.T, cluster, second *harness.Cluster, engine pieceEngine) *twoRepositories {
	t.Helper()
	target := newRepository(t)
	n := &twoRepositories{
		T: t, rand: rand.New(rand.NewPCG(1, 30)), source: newRepository(t), published: map[string]int{}, seen: map[string]int{},
		desk: quayside{build(t), t.TempDir()}, deploy: quayside{build(t), t.TempDir()},
		foreign: map[string]string{"README.md": "trees\n", "envs/OWNERS": "team\n", "envs/dev/rendered/operators/ops.c/NOTES.md": "of the team\n"},
	}
	n.source.git(t, "", "clone", "--quiet", n.source.url, n.desk.dir)
	n.source.git(t, "", "clone", "--quiet", target.url, n.deploy.dir)
	for name, text := range n.foreign {
		n.deploy.write(t, name, text)
	}
	n.commit(n.deploy, "start")

	n.desk.write(t, ".gitignore", ".cache/\n")
	buildIn(t, "quayside-charts", "./cmd/quayside-charts")
	for _, name := range []string{"a", "b", "c", "d", "e", "web"} {
		n.publish(name)
	}
	for i, name := range []string{"dev", "prod"} {
		f := newPieceFleet(t, cluster, second, engine, name)
		f.repository, f.at, f.tree.dir = target, "envs/"+name+"/", filepath.Join(n.deploy.dir, "envs", name)
		e := &nightEnvironment{pieceFleet: f, name: name, cluster: f.live, installed: map[string]string{}}
		if i == 1 {
			e.cluster = applier(t, second)
			f.state.clusters = []pieceCluster{engine.register(ctx, t, f, "second", second)}
		}
		n.environments = append(n.environments, e)
		n.writeSettings(e)
		for _, pkg := range []string{"a", "b", "c", "e", "web"}[:5-i] {
			n.declare(e, pkg)
		}
	}
	n.desk.must(t, "resolve", "--all", "--offline")
	n.commit(n.desk, "start")
	n.proposeTrees()
	for _, e := range n.environments {
		n.merge(e)
	}
	n.pull(n.deploy)
	for _, e := range n.environments {
		engine.follow(ctx, t, e.pieceFleet)
		e.last = ""
		e.applyParents(ctx, t)
	}
	n.sync(ctx)
	return n
}

// writeSettings writes the quayside.yaml of an environment.
func (n *twoRepositories) writeSettings(e *nightEnvironment) {
	engine, c := e.engine.settings(e.pieceFleet), e.state.clusters[0]
	n.desk.write(n.T, "envs/"+e.name+"/quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: %s}
spec:
  catalogs: [{name: bundles, source: "bundles:../../bundles"}, {name: charts, helm: "dir:../../charts"}, {name: releases, manifests: "dir:../../releases"}]
  kubernetesVersion: "1.36"
  profile: %s
  output: {repository: %q, path: envs/%[1]s/rendered}
  gitops: {%[4]s}
  clusters: [{name: %[5]s%[6]s}]
`, e.name, engine.profile, e.repository.url, engine.gitops, c.name, c.destination))
}

// declare declares an operator.
func (n *twoRepositories) declare(e *nightEnvironment, name string) {
	catalog, _ := nightOperator(name, 1).catalogOf("")
	n.desk.write(n.T, "envs/"+e.name+"/subscriptions/"+name+".yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: %s, namespace: ops}
spec: {package: %[1]s, catalog: %s}
`, name, catalog))
}

// publish adds the next version of an operator to the catalog.
func (n *twoRepositories) publish(name string) {
	n.published[name]++
	version := fmt.Sprintf("1.%d.0", n.published[name])
	o := nightOperator(name, n.published[name])
	catalog, dir := o.catalogOf(version)
	for file, text := range o.bundle() {
		if !strings.HasSuffix(file, "hooks.yaml") { // each upgrade recreates them
			n.desk.write(n.T, catalog+"/"+dir+"/"+file, strings.ReplaceAll(text, "SEMVER", version))
		}
	}
}

// git runs git in a clone.
func (n *twoRepositories) git(clone quayside, args ...string) string {
	n.Helper()
	args = append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)
	return repository{dir: filepath.Join(clone.dir, ".git")}.git(n.T, clone.dir, args...)
}

// pull updates a clone to the main branch of its repository.
func (n *twoRepositories) pull(clone quayside) {
	n.Helper()
	n.git(clone, "fetch", "--quiet", "--prune", "origin")
	n.git(clone, "checkout", "--quiet", "-B", "main", "origin/main")
}

// commit commits all files of a clone, and pushes main.
func (n *twoRepositories) commit(clone quayside, message string) {
	n.Helper()
	n.git(clone, "add", "--all")
	n.git(clone, "commit", "--quiet", "--allow-empty", "-m", message)
	n.git(clone, "push", "--quiet", "origin", "HEAD:main")
}

// changeDeclarations commits the changes of people and of the catalog's publisher: new versions, and in some
// nights an added or removed operator, or a renamed cluster.
func (n *twoRepositories) changeDeclarations(nights int) {
	n.pull(n.desk)
	for _, name := range slices.Sorted(maps.Keys(n.published)) {
		if n.rand.IntN(4) == 0 {
			n.publish(name)
		}
	}
	pruned := true
	for _, e := range n.environments {
		_, err := os.Stat(filepath.Join(e.tree.dir, "rendered", "leaving", "ops.c"))
		pruned = pruned && err == nil
	}
	for i, e := range n.environments {
		q := quayside{n.desk.program, filepath.Join(n.desk.dir, "envs", e.name)}
		switch {
		case n.night == nights/5:
			n.declare(e, "d")
			q.must(n.T, "resolve", "--offline")
		case n.night == nights*2/5 && i == 1:
			e.state.clusters[0].name = "renamed"
			n.writeSettings(e)
		case n.night == nights*3/5:
			q.must(n.T, "remove", "ops/c", "--offline")
		case n.night >= nights*4/5 && pruned && !e.pruned:
			q.must(n.T, "resolve", "--offline", "--prune")
			e.pruned = true
			n.seen["pruned"]++
		}
	}
	n.commit(n.desk, fmt.Sprint("night ", n.night))
}

// date returns the simulated time of the current night.
func (n *twoRepositories) date() string {
	return time.Date(2026, 5, n.night, 2, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

// mergeUpgrades proposes the upgrades of the night, and merges some of them.
func (n *twoRepositories) mergeUpgrades() {
	n.desk.must(n.T, "propose", "--all", "--offline", "--push", "origin", "--now", n.date())
	n.git(n.desk, "fetch", "--quiet", "--prune", "origin")
	for _, branch := range strings.Fields(n.git(n.desk, "for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/upgrade/")) {
		if n.rand.IntN(3) == 0 {
			n.seen["upgrades left open"]++
			continue
		}
		n.git(n.desk, "merge", "--quiet", "--no-ff", "--no-edit", branch)
		n.seen["upgrades merged"]++
	}
	n.git(n.desk, "push", "--quiet", "origin", "main")
}

// proposeTrees runs the job that proposes trees, and checks the job's branches. Each environment has at most one
// branch, with one commit. The tree of the newest commit is on this branch or on main, unless it was reverted.
func (n *twoRepositories) proposeTrees() {
	n.pull(n.desk)
	out := n.desk.must(n.T, "propose", "--all", "--tree", "--offline", "--now", n.date())
	n.pull(n.deploy)
	for _, e := range n.environments {
		e.leftover = false // the job has deleted the branch or replaced it
	}
	head := n.git(n.desk, "rev-parse", "HEAD")
	open := strings.Fields(n.git(n.deploy, "for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/render/"))
	for _, e := range n.environments {
		tip := n.tip(e)
		open = slices.DeleteFunc(open, func(name string) bool { return name == "origin/render/"+e.name })
		declined := e.reverted != "" && n.git(n.desk, "log", "--format=%h", e.reverted+"..HEAD", "--", "envs/"+e.name+"/quayside.lock", "envs/"+e.name+"/quayside.yaml") == ""
		switch {
		case declined && (tip != "" || !strings.Contains(out, "keep\trender/"+e.name)):
			n.Errorf("night %d: %s: the reverted tree of %s was proposed again: %q:\n%s", n.night, e.name, e.reverted, tip, out)
		case declined:
			n.seen["trees declined"]++
		case tip != "":
			if list := n.git(n.deploy, "log", "--oneline", "main.."+tip); strings.Count(list, "\n") != 0 {
				n.Errorf("night %d: %s has several commits:\n%s", n.night, tip, list)
			}
			n.git(n.deploy, "checkout", "--quiet", "--detach", tip)
			n.verify(e, "@"+head)
			if source := n.git(n.deploy, "log", "-1", "--format=%(trailers:key=Quayside-Source,valueonly)"); !strings.HasSuffix(source, "@"+n.record(e)) {
				n.Errorf("night %d: %s: the commit names %q, the tree %s", n.night, e.name, source, n.record(e))
			}
			n.git(n.deploy, "checkout", "--quiet", "main")
		default:
			n.verify(e, "@"+head)
		}
	}
	if len(open) > 0 {
		n.Errorf("night %d: branches of no environment: %q", n.night, open)
	}
}

// tip returns the commit that is proposed for an environment, or "".
func (n *twoRepositories) tip(e *nightEnvironment) string {
	n.Helper()
	return n.git(n.deploy, "for-each-ref", "--format=%(objectname)", "refs/remotes/origin/render/"+e.name)
}

// verify checks that the tree of an environment in the clone is the rendered tree of a commit of the
// declarations. commit is "@COMMIT", or "" for the commit that the tree records.
func (n *twoRepositories) verify(e *nightEnvironment, commit string) {
	n.Helper()
	if out, log, code := n.deploy.run(n.T, "verify", "envs/"+e.name+"/rendered", "--offline", "--source", n.source.dir+commit); code != 0 {
		n.Errorf("night %d: %s: verify exits with %d:\n%s%s", n.night, e.name, code, out, log)
	}
}

// revertSome reverts the last merges (or their reverts) of some trees, and then runs the job again.
func (n *twoRepositories) revertSome(ctx context.Context) {
	before := n.seen["trees reverted"]
	for _, e := range n.environments {
		if e.last == "" || e.pruned || n.rand.IntN(3) > 0 || !n.isRevertible(e) {
			continue
		}
		if e.reverted = n.record(e); e.undone {
			e.reverted = ""
		}
		args := []string{"revert", "--no-edit", e.last}
		if n.git(n.deploy, "rev-list", "--no-walk", "--min-parents=2", e.last) != "" {
			args = append(args, "--mainline=1")
		}
		n.git(n.deploy, args...)
		n.git(n.deploy, "push", "--quiet", "origin", "main")
		if e.leftover {
			n.git(n.deploy, "push", "--quiet", "origin", "--delete", "render/"+e.name)
		}
		e.last, e.undone, e.leftover = n.git(n.deploy, "rev-parse", "HEAD"), !e.undone, false
		n.seen["trees reverted"]++
	}
	if n.seen["trees reverted"] > before {
		n.proposeTrees()
		n.sync(ctx)
	}
}

// isRevertible reports whether a revert of the last merge would uninstall every operator that the revert removes.
func (n *twoRepositories) isRevertible(e *nightEnvironment) bool {
	dir := "envs/" + e.name + "/rendered/"
	return n.git(n.deploy, "diff", "--diff-filter=A", "--name-only", e.last+"^1", e.last, "--", dir+"operators") == "" &&
		n.git(n.deploy, "diff", "--diff-filter=D", "--name-only", e.last+"^1", e.last, "--", dir+"leaving") == ""
}

// record returns the commit that the tree of an environment was rendered from.
func (n *twoRepositories) record(e *nightEnvironment) string {
	text, err := os.ReadFile(filepath.Join(e.tree.dir, "rendered", "hydrator.metadata"))
	if err != nil {
		n.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"drySha": "`)
	commit, _, _ := strings.Cut(rest, `"`)
	return commit
}

// merge merges the proposed tree of an environment, with or without squash. It may keep the branch.
func (n *twoRepositories) merge(e *nightEnvironment) {
	n.Helper()
	branch := "render/" + e.name
	if n.rand.IntN(2) == 0 {
		n.git(n.deploy, "merge", "--quiet", "--no-ff", "--no-edit", "origin/"+branch)
	} else {
		n.git(n.deploy, "merge", "--quiet", "--squash", "origin/"+branch)
		n.git(n.deploy, "commit", "--quiet", "-m", "Squash "+branch)
	}
	n.git(n.deploy, "push", "--quiet", "origin", "main")
	if e.leftover = n.rand.IntN(2) == 0; !e.leftover {
		n.git(n.deploy, "push", "--quiet", "origin", "--delete", branch)
	}
	e.last, e.undone = n.git(n.deploy, "rev-parse", "HEAD"), false
}

// sync lets the engine apply the main branch, and compares the clusters with the trees on that branch.
func (n *twoRepositories) sync(ctx context.Context) {
	n.pull(n.deploy)
	for _, e := range n.environments {
		e.commit, e.lastCommitTime = n.git(n.deploy, "rev-parse", "HEAD"), time.Now()
		e.engine.refresh(ctx, n.T, e.pieceFleet)
	}
	for _, e := range n.environments {
		e.settle(ctx, n.T)
		n.Logf("night %d: %s: settled in %.1f s", n.night, e.name, time.Since(e.lastCommitTime).Seconds())
		n.verify(e, "")
		n.checkCluster(ctx, e)
	}
	for name, want := range n.foreign {
		if got, err := os.ReadFile(filepath.Join(n.deploy.dir, name)); err != nil || string(got) != want {
			n.Errorf("night %d: %s is %q: %v, want %q", n.night, name, got, err, want)
		}
	}
}

// checkCluster checks that the cluster has exactly the objects of the tree, each with the right version, and
// that no object was recreated.
func (n *twoRepositories) checkCluster(ctx context.Context, e *nightEnvironment) {
	n.Helper()
	rendered := e.tree.manifestsOf(n.T, "crds", "namespaces", "operators")
	if len(rendered) == 0 {
		n.Fatalf("night %d: %s: the tree has no objects", n.night, e.name)
	}
	awaitRendered(ctx, n.T, e.cluster, rendered, e.kept)
	e.kept = append(e.kept, only(rendered, holdsData)...)
	for _, o := range rendered {
		live, err := e.cluster.Get(ctx, o)
		if err != nil {
			n.Errorf("night %d: %s: %s: %v", n.night, e.name, harness.Name(o), err)
			continue
		}
		if got, want := live.GetLabels()["example.com/version"], o.GetLabels()["example.com/version"]; got != want {
			n.Errorf("night %d: %s: %s is of version %q, want %q", n.night, e.name, harness.Name(o), got, want)
		}
	}
	now, all := identities(ctx, n.T, e.cluster), names(append(rendered, e.kept...))
	for name, uid := range e.installed {
		if slices.Contains(all, name) && now[name] != uid {
			n.Errorf("night %d: %s: %s was recreated: the UID was %s, now %q", n.night, e.name, name, uid, now[name])
		}
	}
	e.installed = now
}
