package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// checkFinishedCleanUp adopts the operators of some dumps, finishes the adoption by `adopt run --finish` or by
// an upgrade, and executes the plan for the leftover OLM objects with random kills. Afterwards, only CRDs,
// APIServices and Namespaces of the tree may have fields of OLM. All objects must keep their UIDs. Pods must
// restart once, and only if planned. A further plan must be empty. Reverting must restore the previous state.
// These dumps cover all install modes, webhooks, an aggregated API and conversions.
func checkFinishedCleanUp(t *testing.T, all fstest.MapFS) dumpCheck {
	random := rand.New(rand.NewPCG(7, 8))
	files := []string{"aggregated/before.json", "dynatrace/before.json", "grafana/before.json", "rabbitmq/before.json", "windup/before.json"}
	if !*whole {
		files = files[2:3]
	}
	operators := 0
	each := func(file string, d clusterDump, _ *adopt.Inspection) {
		if !slices.Contains(files, file) {
			return
		}
		a := adoptDump(t, all, file, d, random)
		finish, err := inspect.Finish(context.Background(), a.open(t, d.found.Lock), nil)
		check(t, err)
		operators += a.cleanUp(t, file+", finished", finish.Lock, random)
		if lock := upgradeLock(t, a.open(t, d.found.Lock)); lock != nil {
			operators += a.cleanUp(t, file+", upgraded", lock, random)
		}
	}
	return dumpCheck{each, func() { t.Log(operators, "operators cleaned up") }}
}

// adoptedCluster is a workspace with the objects of a cluster whose operators were adopted.
type adoptedCluster struct {
	testWorkspace
	objects []k8s.Object
}

// open opens the workspace with a lock.
func (a adoptedCluster) open(t *testing.T, lock *lockfile.File) *workspace.Project {
	t.Helper()
	a.write(t, workspace.LockFile, lockfile.Format(lock))
	return a.testWorkspace.open(t)
}

// adoptDump executes the plan of a dump. At random, it omits the clean-up.
func adoptDump(t *testing.T, all fstest.MapFS, file string, d clusterDump, random *rand.Rand) adoptedCluster {
	t.Helper()
	ctx := context.Background()
	p, err := plan.Make(plan.Input{Snapshot: d.seen, Report: d.found.Report, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "kustomize-controller"})
	check(t, err)
	if cleanUp := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Name == plan.CleanUp }); random.IntN(3) == 0 {
		p.Steps = p.Steps[:cleanUp]
	}
	s := newPlanRun(t, all[file].Data, d, p)
	check(t, s.runRequests(0))
	for _, kind := range []string{"Certificate", "Issuer"} {
		crd := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", strings.ToLower(kind)+"s.cert-manager.io")
		s.cluster.Put(k8s.With(crd, any(map[string]any{"group": "cert-manager.io", "names": map[string]any{"kind": kind}}), "spec"))
	}
	for _, o := range s.rendered { // a user restarts one Deployment
		if o.Is("apps", "Deployment") {
			at := map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "2026-01-01"}}
			_, err := s.cluster.Patch(ctx, k8s.RefTo(o), cluster.Patch{Merge: map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": at}}}}, false)
			check(t, err)
			break
		}
	}
	s.cluster.Settle()
	return adoptedCluster{d.stand, s.cluster.Objects()}
}

// upgradeLock returns the lock with all available upgrades, or nil if there are none.
func upgradeLock(t *testing.T, p *workspace.Project) *lockfile.File {
	t.Helper()
	ctx := context.Background()
	opt := p.ResolveOptions()
	lock, err := p.NeedLock()
	check(t, err)
	for _, pin := range lock.Pins {
		opt.Named = append(opt.Named, resolve.Target{Namespace: pin.Namespace, Package: pin.Package})
	}
	opt.Upgrade, opt.Hops = true, -1
	in, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: opt})
	check(t, err)
	res, err := workspace.Resolve(ctx, in)
	check(t, err)
	check(t, res.Failed)
	if len(res.Changes) == 0 {
		return nil
	}
	return res.Lock
}

// cleanUp executes the plan that deletes the leftover OLM objects. The plan is made with the given lock.
// cleanUp returns the number of operators in the plan.
func (a adoptedCluster) cleanUp(t *testing.T, name string, lock *lockfile.File, random *rand.Rand) int {
	t.Helper()
	p := a.open(t, lock)
	made, found := planCleanUp(t, p, a.objects)
	if len(made.Operators) == 0 {
		t.Fatal("no leftover OLM objects")
	}
	restarts, actions := 0, 0
	for _, op := range made.Operators {
		restarts += len(op.Restarts)
	}
	for _, s := range made.Steps {
		actions += len(s.Actions)
	}
	first := a.newRun(made, found)
	before := comparableState(first.cluster)
	check(t, first.runRequests(0))
	a.checkCluster(t, made, first.cluster)
	second := a.newRun(made, found)
	kills := 0
	for dead := true; dead; kills++ {
		err := second.runRequests(1 + random.IntN(1+actions/3))
		if dead = err == errKilled; !dead { //nolint:errorlint // never wrapped
			check(t, err)
		}
	}
	if diff := cmp.Diff(comparableState(first.cluster), comparableState(second.cluster)); diff != "" {
		t.Errorf("the cluster differs after kills:\n%s", diff)
	}
	again, after := planCleanUp(t, p, first.cluster.Objects())
	if len(again.Operators) > 0 || len(again.Steps) > 0 || len(again.Skipped) > 0 {
		t.Errorf("leftover OLM objects: %+v", again)
	}
	for _, list := range append([][]adopt.ClassifiedObject{after.Report.Shared}, objectsOf(after.Report)...) {
		for _, o := range list {
			checkEqual(t, o)
		}
	}
	t.Logf("%s: %d operators, %d Deployments restart, %d actions, %d kills", name, len(made.Operators), restarts, actions, kills-1)
	for range 3 {
		a.revert(t, made, found, before, random)
	}
	return len(made.Operators)
}

// checkEqual checks that a live object equals the object in the tree. It skips kinds whose objects may keep
// fields of OLM.
func checkEqual(t *testing.T, o adopt.ClassifiedObject) {
	t.Helper()
	if o.Class != adopt.Equal && o.Class != adopt.Changed || slices.Contains([]string{"APIService", "CustomResourceDefinition", "Namespace"}, o.Kind) {
		return
	}
	for _, f := range o.Fields {
		if !strings.HasSuffix(f.Path, "restartedAt") {
			t.Errorf("%s: %+v", o.Key, f)
		}
	}
}

// planCleanUp returns the plan for the leftover OLM objects of a cluster.
func planCleanUp(t *testing.T, p *workspace.Project, objects []k8s.Object) (*plan.Plan, *inspect.Inspection) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	check(t, err)
	seen, err := snapshot.Read("cluster", bytes.NewReader(text), snapshot.Selection{ManagedFields: true})
	check(t, err)
	found, err := inspect.Inspect(context.Background(), p, seen, "default")
	check(t, err)
	lock, err := p.NeedLock()
	check(t, err)
	if !bytes.Equal(lockfile.Format(lock), lockfile.Format(found.Lock)) {
		t.Error("the lock has OLM settings to keep again")
	}
	made, err := plan.Make(plan.Input{Snapshot: seen, Report: found.Report, Lock: lock, Rendered: found.Rendered, Manager: "kustomize-controller"})
	check(t, err)
	return made, found
}

func (a adoptedCluster) newRun(p *plan.Plan, found *inspect.Inspection) *planRun {
	s := &planRun{cluster: runtest.New(a.objects...), plan: p, files: &runtest.Files{}, say: sayYes{}}
	for _, r := range found.Rendered {
		s.rendered = append(s.rendered, r.Object)
	}
	s.cluster.OLM = true
	s.cluster.Settle()
	return s
}

// checkCluster compares a cluster with the executed plan.
func (a adoptedCluster) checkCluster(t *testing.T, p *plan.Plan, c *runtest.Cluster) {
	t.Helper()
	named, goes := map[string]bool{}, map[k8s.Key]bool{}
	for _, op := range p.Operators {
		if !op.Detached {
			t.Errorf("%s/%s did not leave OLM", op.Namespace, op.Package)
		}
		for _, name := range op.Restarts {
			named[op.Namespace+"/"+name] = true
		}
	}
	for _, s := range p.Steps {
		for _, act := range s.Actions {
			goes[act.Object.Key()] = goes[act.Object.Key()] || act.Do == plan.Delete
		}
	}
	uids, sets := map[k8s.Key]string{}, map[string]int{}
	for _, o := range c.Objects() {
		uids[o.Key()] = k8s.Text(o, "metadata", "uid")
		sets[owningDeployment(o)]++
	}
	for _, o := range a.objects {
		sets[owningDeployment(o)]--
		uid := uids[o.Key()]
		switch {
		case o.Is(k8s.OLMGroup, "OperatorCondition") && strings.Contains(o.Name(), ".v") && uid != "":
			t.Errorf("%s still exists", o.Key())
		case o.Is(k8s.OLMGroup, "OperatorCondition"), len(k8s.List(o, "metadata", "ownerReferences")) > 0:
		case goes[o.Key()] != (uid == ""), uid != "" && uid != k8s.Text(o, "metadata", "uid"):
			t.Errorf("%s: the UID was %s, now %q", o.Key(), k8s.Text(o, "metadata", "uid"), uid)
		}
	}
	delete(sets, "")
	for d, n := range sets {
		if n != 0 != named[d] || n > 1 {
			t.Errorf("Deployment %s has %d new ReplicaSets; the plan names it: %v", d, n, named[d])
		}
	}
}

// owningDeployment returns the Deployment of a ReplicaSet, or "" for other objects.
func owningDeployment(o k8s.Object) string {
	if by := k8s.Items(o, "metadata", "ownerReferences"); o.Is("apps", "ReplicaSet") && len(by) > 0 {
		return o.Namespace() + "/" + k8s.Text(by[0], "name")
	}
	return ""
}

// revert stops the execution of the plan at a random request before the clean-up, and reverts the plan.
func (a adoptedCluster) revert(t *testing.T, p *plan.Plan, found *inspect.Inspection, before map[k8s.Key]k8s.Object, random *rand.Rand) {
	t.Helper()
	last := 0
	for _, step := range p.Steps {
		if step.Name == plan.CleanUp {
			break
		}
		last = step.Number
	}
	s := a.newRun(p, found)
	if err := s.runToStep(last, 1+random.IntN(120)); err != nil && err != errKilled { //nolint:errorlint // never wrapped
		t.Fatal(err)
	}
	check(t, s.revert())
	s.cluster.Settle()
	after := comparableState(s.cluster)
	maps.DeleteFunc(after, func(key k8s.Key, _ k8s.Object) bool { return key.Kind == "ReplicaSet" && before[key] == nil }) // remains without pods
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after the revert (-before +after):\n%s", diff)
	}
	for _, o := range a.objects {
		live := s.cluster.Object(k8s.RefTo(o))
		olms := func(o k8s.Object) bool {
			return slices.ContainsFunc(k8s.Items(o, "metadata", "managedFields"), plan.IsWrittenByOLM)
		}
		if olms(o) != olms(live) {
			t.Errorf("after the revert, OLM manages fields of %s: %v, before: %v", o.Key(), olms(live), olms(o))
		}
	}
}
