package inspect_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// checkRuns executes the plan of every dump in a fake cluster with OLM and a garbage collector, once without
// interruption and once with a program that is killed at random. Objects of the tree must keep their UIDs and pods,
// objects to delete must be deleted, and all others must be unchanged. Both executions must give the same cluster.
func checkRuns(t *testing.T, all fstest.MapFS) dumpCheck {
	random := rand.New(rand.NewPCG(3, 4))
	operators, kills, targets := 0, 0, map[verify.ProbeKind]int{}
	each := func(file string, d clusterDump, rep *adopt.Inspection) {
		p, err := plan.Make(plan.Input{
			Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "kustomize-controller", Namespaces: d.sampleNamespaces(random),
		})
		check(t, err)
		if len(p.Operators) == 0 {
			return
		}
		operators += len(p.Operators)
		s := newPlanRun(t, all[file].Data, d, p)
		if err := s.runRequests(0); err != nil {
			t.Errorf("%s: %v", file, err)
			return
		}
		for _, r := range s.probes {
			if targets[r.Kind] += r.Targets; r.Failures > 0 {
				t.Errorf("%s: %+v", file, r)
			}
		}
		s.checkResult(t, file, rep)
		want := comparableState(s.cluster)
		s = newPlanRun(t, all[file].Data, d, p)
		for dead := true; dead; {
			err := s.runRequests(1 + random.IntN(100))
			if dead = err == errKilled; dead { //nolint:errorlint // never wrapped
				kills++
				continue
			}
			check(t, err)
		}
		if diff := cmp.Diff(want, comparableState(s.cluster)); diff != "" {
			t.Errorf("%s: the cluster differs after kills:\n%s", file, diff)
		}
		s.checkResult(t, file, rep)
	}
	return dumpCheck{each, func() { t.Log(operators, "operators adopted,", kills, "kills, probed:", targets) }}
}

// planRun is the execution of a plan in a fake cluster.
type planRun struct {
	cluster  *runtest.Cluster
	plan     *plan.Plan
	rendered []k8s.Object
	files    *runtest.Files
	before   map[k8s.Key]string // UIDs
	say      run.Prompter
	probes   []verify.ProbeResult // of a run without kills
}

func newPlanRun(t *testing.T, dump []byte, d clusterDump, p *plan.Plan) *planRun {
	t.Helper()
	var list map[string]any
	check(t, utiljson.Unmarshal(bytes.TrimSpace(dump), &list))
	var objects []k8s.Object
	for _, o := range k8s.Items(list, "items") {
		objects = append(objects, o)
	}
	objects = append(objects, k8s.New("apps/v1", "Deployment", "olm", "olm-operator")) // the dumps do not have it
	s := &planRun{cluster: runtest.New(objects...), plan: p, files: &runtest.Files{}, before: map[k8s.Key]string{}}
	s.say = manualOperator{cluster: s.cluster}
	for _, r := range d.found.Rendered {
		s.rendered = append(s.rendered, r.Object)
	}
	s.cluster.OLM = true
	s.cluster.Settle()
	s.cluster.Events()
	for _, o := range s.cluster.Objects() {
		s.before[o.Key()] = k8s.Text(o, "metadata", "uid")
	}
	return s
}

// killed is the panic value that ends the program.
type killed struct{}

var errKilled = context.Canceled

// runRequests executes the plan until n writing requests are sent. If n is 0, it executes the whole plan.
func (s *planRun) runRequests(n int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			err = errKilled
		}
	}()
	left, hook := n, func(runtest.Call) error {
		return nil
	}
	if n > 0 {
		hook = func(c runtest.Call) error {
			if c.Writes() {
				if left--; left == 0 {
					panic(killed{})
				}
			}
			return nil
		}
	}
	s.cluster.Before, s.cluster.After = hook, nil
	if n%2 == 1 {
		s.cluster.Before, s.cluster.After = nil, hook
	}
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		return err
	}
	in := run.Input{
		Plan: s.plan, Rendered: s.rendered, Cluster: s.cluster, Journal: j, Clock: &runtest.Clock{Cluster: s.cluster}, Prompter: s.say, CleanUp: true, SyncDelay: 15 * time.Second,
	}
	if n == 0 {
		in.Watch, in.ProbeInterval = time.Minute, time.Millisecond
	}
	res, err := run.Run(context.Background(), in)
	if n == 0 && err == nil {
		s.probes = res.Probes
	}
	return err
}

// checkResult checks the UIDs of the tree's objects after a run, the deletions by the plan, and those by the
// garbage collector.
func (s *planRun) checkResult(t *testing.T, file string, rep *adopt.Inspection) {
	t.Helper()
	goes := map[k8s.Key]bool{}
	for _, step := range s.plan.Steps {
		for _, a := range step.Actions {
			if a.Do == plan.Delete || a.Do == plan.Orphan {
				goes[a.Object.Key()] = true
			}
		}
	}
	now := map[k8s.Key]string{}
	for _, o := range s.cluster.Objects() {
		now[o.Key()] = k8s.Text(o, "metadata", "uid")
		if o.Is("apps", "ReplicaSet") && s.before[o.Key()] == "" {
			t.Errorf("%s: %s is new: pods restart", file, o.Key())
		}
	}
	for _, o := range s.rendered {
		key := o.Key()
		if was := s.before[key]; was != "" && now[key] != was {
			t.Errorf("%s: %s had the UID %s, now %q", file, key, was, now[key])
		}
	}
	for key := range goes {
		if now[key] != "" {
			t.Errorf("%s: %s still exists", file, key)
		}
	}
	lost := map[k8s.Key]bool{}
	for _, e := range s.cluster.Events() {
		if e.What == "deleted" && e.By == "gc" {
			lost[e.Key] = true
		}
	}
	known := map[k8s.Key]adopt.ClassifiedObject{}
	for _, list := range append([][]adopt.ClassifiedObject{rep.Shared}, objectsOf(rep)...) {
		for _, o := range list {
			known[o.Key] = o
		}
	}
	for key := range lost {
		if o := known[key]; o.RemovedAt != adopt.AtCleanUp && o.RemovedAt != adopt.AtDetach {
			t.Errorf("%s: the garbage collector deleted %s (%s %s)", file, key, o.Class, o.RemovedAt)
		}
	}
}

// comparableState returns the objects of a cluster without fields that differ between two runs.
func comparableState(c *runtest.Cluster) map[k8s.Key]k8s.Object {
	out := map[k8s.Key]k8s.Object{}
	for _, o := range c.Objects() {
		for _, field := range []string{"resourceVersion", "managedFields", "creationTimestamp", "generation", "uid", "ownerReferences"} {
			o = k8s.Without(o, "metadata", field)
		}
		out[o.Key()] = k8s.Without(o, "status")
	}
	return out
}

type sayYes struct{}

func (sayYes) ConfirmStep(context.Context, plan.Step) (bool, error)       { return true, nil }
func (sayYes) ConfirmManualStep(context.Context, plan.Step) (bool, error) { return true, nil }
func (sayYes) ReportAction(plan.Step, run.ActionResult)                   {}
func (sayYes) ReportWaiting(plan.Step, []verify.Finding)                  {}
func (sayYes) ReportOLM(plan.Step, bool)                                  {}
func (sayYes) ReportProbing(time.Duration)                                {}
