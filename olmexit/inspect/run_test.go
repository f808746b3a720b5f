package inspect_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/olmexit"
	"github.com/quayside/quayside/olmexit/plan"
	"github.com/quayside/quayside/olmexit/run"
	"github.com/quayside/quayside/olmexit/run/runtest"
	"github.com/quayside/quayside/olmexit/verify"
)

// plansRun does the plan of every dump in a cluster of values that has its objects,
// with OLM and the garbage collector at work, and again with the program killed now
// and then. What the tree has keeps its UID and its pods, what is to go is gone,
// nothing else is touched, and being killed makes no difference.
func plansRun(t *testing.T, all fstest.MapFS) inspection {
	random := rand.New(rand.NewPCG(3, 4))
	operators, kills := 0, 0
	each := func(file string, d dumped, rep *olmexit.Report) {
		p, err := plan.Make(plan.Input{
			Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "kustomize-controller", Namespaces: d.some(random),
		})
		check(t, err)
		if len(p.Operators) == 0 {
			return
		}
		operators += len(p.Operators)
		s := newStage(t, all[file].Data, d, p)
		if err := s.until(0); err != nil {
			t.Errorf("%s: %v", file, err)
			return
		}
		s.keeps(t, file, rep)
		want := stateOf(s.cluster)
		s = newStage(t, all[file].Data, d, p)
		for dead := true; dead; {
			err := s.until(1 + random.IntN(300))
			if dead = err == errKilled; dead { //nolint:errorlint // it is that very one
				kills++
				continue
			}
			check(t, err)
		}
		if diff := cmp.Diff(want, stateOf(s.cluster)); diff != "" {
			t.Errorf("%s: killed and resumed, another cluster:\n%s", file, diff)
		}
		s.keeps(t, file, rep)
	}
	return inspection{each, func() { t.Log(operators, "operators taken over, in runs that were killed", kills, "times") }}
}

// stage is a cluster in which a plan is done.
type stage struct {
	cluster  *runtest.Cluster
	plan     *plan.Plan
	rendered []k8s.Object
	files    *runtest.Files
	before   map[k8s.Key]string // UIDs
	say      run.Say
}

func newStage(t *testing.T, dump []byte, d dumped, p *plan.Plan) *stage {
	t.Helper()
	var list map[string]any
	check(t, utiljson.Unmarshal(bytes.TrimSpace(dump), &list))
	var objects []k8s.Object
	for _, o := range k8s.Items(list, "items") {
		objects = append(objects, o)
	}
	s := &stage{cluster: runtest.New(objects...), plan: p, files: &runtest.Files{}, before: map[k8s.Key]string{}, say: sayYes{}}
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

// killed is thrown where the program ends.
type killed struct{}

var errKilled = context.Canceled

// until does the plan until so many requests that write were sent, or to its end.
func (s *stage) until(n int) (err error) {
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
	_, err = run.Run(context.Background(), run.Input{
		Plan: s.plan, Rendered: s.rendered, Cluster: s.cluster, Journal: j, Clock: &runtest.Clock{Cluster: s.cluster}, Say: s.say, CleanUp: true,
	})
	return err
}

// keeps holds what the plan has left to what inspection said of each object.
func (s *stage) keeps(t *testing.T, file string, rep *olmexit.Report) {
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
			t.Errorf("%s: %s had the UID %s, and has %q", file, key, was, now[key])
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
	known := map[k8s.Key]olmexit.Object{}
	for _, list := range append([][]olmexit.Object{rep.Shared}, objectsOf(rep)...) {
		for _, o := range list {
			known[o.Key] = o
		}
	}
	for key := range lost {
		if o := known[key]; o.Goes != olmexit.AtCleanUp && o.Goes != olmexit.AtDetach {
			t.Errorf("%s: the garbage collector took %s (%s %s)", file, key, o.Class, o.Goes)
		}
	}
}

// stateOf is everything in a cluster but versions, times, and UIDs of what is new.
func stateOf(c *runtest.Cluster) map[k8s.Key]k8s.Object {
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

func (sayYes) Step(context.Context, plan.Step) (bool, error)   { return true, nil }
func (sayYes) Manual(context.Context, plan.Step) (bool, error) { return true, nil }
func (sayYes) Action(plan.Step, run.ActionResult)              {}
func (sayYes) Waiting(plan.Step, []verify.Finding)             {}
