package inspect_test

import (
	"bytes"
	stdcmp "cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// checkPlans makes plans for every dump in both modes, for all namespaces and for random ones. It checks each
// plan with checkRules and checkPlan.
func checkPlans(t *testing.T, _ fstest.MapFS) dumpCheck {
	random := rand.New(rand.NewPCG(1, 2))
	operators, actions := 0, map[plan.Verb]int{}
	each := func(file string, d clusterDump, rep *adopt.Inspection) {
		namespaces := d.namespaces()
		for _, mode := range []plan.Mode{plan.Stopped, plan.Live} {
			choices := [][]string{nil}
			for range 2 {
				if len(namespaces) > 1 {
					random.Shuffle(len(namespaces), func(i, j int) { namespaces[i], namespaces[j] = namespaces[j], namespaces[i] })
					choices = append(choices, slices.Clone(namespaces[:1+random.IntN(len(namespaces))]))
				}
			}
			for _, some := range choices {
				name := fmt.Sprint(file, " ", mode, " ", some)
				in := plan.Input{Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Mode: mode, Namespaces: some, Manager: "m"}
				p, err := plan.Make(in)
				check(t, err)
				again, err := plan.Make(in)
				check(t, err)
				if diff := cmp.Diff(p, again); diff != "" {
					t.Errorf("%s: a second plan differs:\n%s", name, diff)
				}
				text := plan.Format(p)
				back, err := plan.Parse("plan.yaml", text)
				check(t, err)
				if diff := cmp.Diff(p, back); diff != "" {
					t.Errorf("%s: the parsed plan differs:\n%s", name, diff)
				}
				check(t, p.CheckLimits())
				checkRules(t, name, p, d.found.Rendered)
				checkPlan(t, name, d, in, p)
				if some == nil && mode == plan.Stopped {
					operators += len(p.Operators)
					for _, s := range p.Steps {
						for _, a := range s.Actions {
							actions[a.Do]++
						}
					}
				}
			}
		}
	}
	return dumpCheck{each, func() { t.Log(operators, "operators adopted, actions:", actions) }}
}

// checkRules checks that the RBAC rules of a plan permit each of its actions, and have no wildcards.
func checkRules(t *testing.T, name string, p *plan.Plan, rendered []render.Rendered) {
	t.Helper()
	var objects []k8s.Object
	for _, r := range rendered {
		objects = append(objects, r.Object)
	}
	given := map[string]bool{}
	for _, r := range plan.Rules(p, objects, nil) {
		if r.Resource == "" || slices.Contains(r.Verbs, "*") {
			t.Errorf("%s: rule %+v", name, r)
		}
		if len(r.Names) == 0 {
			for _, verb := range r.Verbs {
				if !slices.Contains([]string{"list", "create"}, verb) {
					t.Errorf("%s: rule %+v has no names", name, r)
				}
				given[fmt.Sprint(verb, r.Namespace, r.Group, r.Resource)] = true
			}
		}
		for _, object := range r.Names {
			for _, verb := range r.Verbs {
				given[fmt.Sprint(verb, r.Namespace, r.Group, r.Resource, "/", object)] = true
			}
		}
	}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			verb := map[plan.Verb]string{plan.Save: "get", plan.Delete: "delete", plan.Orphan: "delete"}[a.Do]
			key := a.Object.Key()
			resource := k8s.Resource(key.Group, key.Kind)
			if !given[fmt.Sprint(stdcmp.Or(verb, "patch"), key.Namespace, key.Group, resource, "/", key.Name)] ||
				a.Do == plan.Apply && a.UID == "" && !given[fmt.Sprint("create", key.Namespace, key.Group, resource)] {
				t.Errorf("%s: no rule permits %s %s", name, a.Do, a.Object)
			}
		}
	}
}

// plannedAction is an action with its position in the plan.
type plannedAction struct {
	plan.Action
	step *plan.Step
	at   int // number among all actions
}

// checkPlan checks the invariants of every plan.
func checkPlan(t *testing.T, name string, d clusterDump, in plan.Input, p *plan.Plan) {
	t.Helper()
	taken, left := map[string]bool{}, map[string]bool{}
	for _, op := range p.Operators {
		taken[op.Namespace+"/"+op.Package] = true
	}
	for _, l := range p.Skipped {
		left[l.Namespace+"/"+l.Package] = true
	}
	tree := map[k8s.Key]bool{}
	for _, r := range in.Rendered {
		tree[r.Object.Key()] = true
	}
	by, n := map[k8s.Key][]plannedAction{}, 0
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Number != i+1 || s.Manual != "" && len(s.Actions) > 0 || s.Manual == "" && len(s.Actions) == 0 {
			t.Errorf("%s: step %d of %d: %s", name, s.Number, i+1, s.Title)
		}
		for _, a := range s.Actions {
			key := a.Object.Key()
			live := d.seen.Get(key)
			n++
			by[key] = append(by[key], plannedAction{a, s, n})
			switch {
			case live == nil && (a.Do != plan.Apply || a.UID != ""):
				t.Errorf("%s: %s %s, which is missing", name, a.Do, a.Object)
			case live != nil && a.UID != live.UID && (a.Do != plan.Apply || p.Mode != plan.Live || key.Kind != "OperatorCondition"):
				t.Errorf("%s: %s %s has UID %q", name, a.Do, a.Object, a.UID)
			}
			deletes := a.Do == plan.Delete || a.Do == plan.Orphan
			if deletes && tree[key] && (p.Mode != plan.Live || key.Kind != "OperatorCondition") {
				t.Errorf("%s: %s is deleted, but in the tree", name, a.Object)
			}
			if deletes && live != nil && slices.ContainsFunc(live.Owners, func(by snapshot.Owner) bool {
				return tree[k8s.Key{Group: k8s.Group(by.APIVersion), Kind: by.Kind, Namespace: live.Namespace, Name: by.Name}] && by.Kind == "OperatorCondition"
			}) {
				t.Errorf("%s: %s is deleted, but OLM recreates it for the OperatorCondition", name, a.Object)
			}
			if deletes && live != nil && live.Labels["app.kubernetes.io/managed-by"] == "quayside" {
				t.Errorf("%s: %s is deleted, but belongs to quayside", name, a.Object)
			}
		}
	}
	count := func(key k8s.Key, verbs ...plan.Verb) (all []plannedAction) {
		for _, x := range by[key] {
			if slices.Contains(verbs, x.Do) {
				all = append(all, x)
			}
		}
		return all
	}
	lists := map[string][]adopt.ClassifiedObject{"": in.Report.Shared}
	for _, op := range in.Report.Operators {
		key := op.Namespace + "/" + op.Package
		lists[key] = op.Objects
		asked := len(in.Namespaces) == 0 || slices.Contains(in.Namespaces, op.Namespace)
		if taken[key] == left[key] && op.State != adopt.NotOLM || taken[key] != (op.State == adopt.Adoptable && asked) {
			t.Errorf("%s: %s is %s, planned: %v, skipped: %v", name, key, op.State, taken[key], left[key])
		}
	}
	refused := map[k8s.Key]bool{}
	for _, r := range in.Rendered {
		refused[r.Object.Key()] = r.Refused != ""
	}
	for whose, list := range lists {
		for _, o := range list {
			some, all := taken[whose], taken[whose]
			if whose == "" {
				some, all = false, len(o.Operators) > 0
				for _, other := range o.Operators {
					some, all = some || taken[other], all && (taken[other] || !left[other])
				}
				all = all && some
			}
			key := o.Key
			deleted := count(key, plan.Delete, plan.Orphan)
			applied := count(key, plan.Apply)
			applied = slices.DeleteFunc(applied, func(x plannedAction) bool { return x.step.Name == plan.Fields })
			switch {
			case !some && len(by[key]) > 0 && !onlyAnnotated(by[key]):
				t.Errorf("%s: %s of %q is changed: %v", name, key, whose, by[key][0].Do)
			case (o.RemovedAt == adopt.AtDetach || o.RemovedAt == adopt.AtCleanUp) && all != (len(deleted) == 1):
				t.Errorf("%s: %s is to be removed (%s), but deleted %d times", name, key, o.RemovedAt, len(deleted))
			case o.RemovedAt == adopt.Never && len(deleted) > 0:
				t.Errorf("%s: %s is to be kept, but deleted", name, key)
			case o.Class == adopt.Added && (some && !refused[key]) != (len(applied) == 1):
				t.Errorf("%s: %s is new, but applied %d times", name, key, len(applied))
			case (o.Class == adopt.Equal || o.Class == adopt.Changed) && all != (len(applied) == 1):
				t.Errorf("%s: %s exists, but is applied %d times", name, key, len(applied))
			}
			for _, x := range applied {
				if want := map[bool]plan.StepKind{true: plan.Prepare, false: plan.Tree}[o.Class == adopt.Added]; x.step.Name != want || x.Force != (want == plan.Tree) {
					t.Errorf("%s: %s is %s, but applied in %s", name, key, o.Class, x.step.Name)
				}
			}
			for _, x := range deleted {
				if kept := count(key, plan.Save); !strings.Contains(labelOf(d, key), "copy") && (len(kept) != 1 || kept[0].at > x.at) {
					t.Errorf("%s: %s is deleted without a backup", name, key)
				}
			}
		}
	}
	for _, o := range d.seen.All() {
		for _, op := range p.Operators {
			label := adopt.ComponentLabel(op.Namespace, op.Package)
			_, bears := o.Labels[label]
			gone := count(o.Key, plan.Delete, plan.Orphan)
			freed := slices.ContainsFunc(count(o.Key, plan.Unlabel), func(x plannedAction) bool { return slices.Contains(x.Unset, label) })
			if bears && len(gone) == 0 && !freed {
				t.Errorf("%s: %s keeps the label %s, for which OLM recreates the Operator", name, o.Key, label)
			}
		}
	}
	checkOrder(t, name, d, p, taken)
}

func labelOf(d clusterDump, key k8s.Key) string {
	if o := d.seen.Get(key); o != nil && o.Labels["olm.copiedFrom"] != "" {
		return "copy"
	}
	return ""
}

// onlyAnnotated reports whether all actions on an object are in the guard step. This step only adds
// annotations.
func onlyAnnotated(all []plannedAction) bool {
	return !slices.ContainsFunc(all, func(x plannedAction) bool { return x.step.Name != plan.Guard })
}

// checkOrder checks the order of a plan: new objects are created, OLM is stopped, OLM's objects are deleted.
// Operators leave OLM before the operators that they require. Originals are deleted before their copies.
// Leftover objects are deleted at the end, and the object of kind Operator last.
func checkOrder(t *testing.T, name string, d clusterDump, p *plan.Plan, taken map[string]bool) {
	t.Helper()
	stopped, forgotten := false, map[k8s.Key]int{}
	prepared, n := map[string]bool{}, 0
	for _, s := range p.Steps {
		switch s.Name { //nolint:exhaustive // the order of other steps is not checked
		case plan.Prepare:
			prepared[s.Namespace] = true
		case plan.Stop:
			stopped = true
		case plan.Start:
			stopped = false
		case plan.Detach:
			if stopped != (p.Mode == plan.Stopped) {
				t.Errorf("%s: step %d: OLM is stopped: %v", name, s.Number, stopped)
			}
		case plan.CleanUp:
			operator, fed := false, false
			for _, a := range s.Actions {
				if live := d.seen.Get(a.Object.Key()); a.Do == plan.Delete && live != nil && a.Object.Kind == "ClusterRole" {
					for label := range live.Labels {
						fed = fed || strings.HasPrefix(label, "olm.opgroup.permissions/aggregate-to-")
					}
					if fed && k8s.At(live.Body(), "aggregationRule") != nil {
						t.Errorf("%s: step %d: %s is deleted after the objects that it aggregates, and may be recreated", name, s.Number, a.Object)
					}
				}
				if operator = operator || a.Object.Kind == "Operator"; operator && a.Object.Kind != "Operator" {
					t.Errorf("%s: step %d: %s is deleted after the Operator", name, s.Number, a.Object)
				}
			}
		}
		for _, a := range s.Actions {
			n++
			if prepared[s.Namespace] && s.Name == plan.Prepare && len(forgotten) > 0 && forgottenIn(forgotten, s.Namespace) {
				t.Errorf("%s: step %d creates %s after operators of %s left OLM", name, s.Number, a.Object, s.Namespace)
			}
			if a.Do == plan.Orphan && a.Object.Kind == "ClusterServiceVersion" {
				forgotten[a.Object.Key()] = n
			}
		}
	}
	for key, at := range forgotten {
		live := d.seen.Get(key)
		from := live.Labels["olm.copiedFrom"]
		if from == "" {
			continue
		}
		parent := key
		parent.Namespace = from
		if before := forgotten[parent]; before > at || before == 0 && d.seen.Get(parent) != nil {
			t.Errorf("%s: the copy %s is deleted before its original", name, key)
		}
	}
	for _, pin := range d.found.Lock.Pins {
		for _, r := range d.found.Lock.RequiredBy(pin) {
			other, _ := d.found.Lock.Pin(strings.Split(r.Pin+"/", "/")[0], strings.Split(r.Pin+"/", "/")[1])
			if other.Namespace != pin.Namespace || !taken[pin.Key()] || !taken[r.Pin] {
				continue
			}
			csv := func(name string) int {
				return forgotten[k8s.Key{Group: k8s.OLMGroup, Kind: "ClusterServiceVersion", Namespace: pin.Namespace, Name: name}]
			}
			if csv(other.Bundle) > csv(pin.Bundle) {
				t.Errorf("%s: %s leaves OLM before %s, which requires it", name, pin.Key(), r.Pin)
			}
		}
	}
}

func forgottenIn(forgotten map[k8s.Key]int, namespace string) bool {
	for key := range forgotten {
		if key.Namespace == namespace {
			return true
		}
	}
	return false
}

// checkDerivation makes the plan of one namespace of a dump again, without the Secrets of other namespaces. The new
// plan must equal the first, unless an object of the plan has been recreated: CheckPlan must then return an error.
func checkDerivation(t *testing.T, all fstest.MapFS) dumpCheck {
	derived := 0
	each := func(file string, d clusterDump, _ *adopt.Inspection) {
		d.stand.write(t, workspace.LockFile, lockfile.Format(d.found.Lock))
		project := d.stand.open(t)
		read := func(fsys fs.FS, namespaces ...string) *snapshot.Snapshot {
			seen, err := snapshot.Load(fsys, file, "", snapshot.Selection{ManagedFields: true, Namespaces: namespaces})
			check(t, err)
			return seen
		}
		for _, namespace := range d.namespaces() {
			p, _, err := inspect.Plan(t.Context(), project, read(all), inspect.PlanOptions{Cluster: "default", Mode: plan.Stopped, Namespaces: []string{namespace}})
			check(t, err)
			if len(p.Operators) == 0 {
				continue
			}
			derived++
			if err := inspect.CheckPlan(t.Context(), project, p, read(all, p.Namespaces()...)); err != nil {
				t.Errorf("%s: %s: %v", file, namespace, err)
			}
			uid := p.Steps[0].Actions[0].UID
			changed := fstest.MapFS{file: {Data: bytes.ReplaceAll(all[file].Data, []byte(uid), []byte("another"))}}
			if err := inspect.CheckPlan(t.Context(), project, p, read(changed, p.Namespaces()...)); err == nil {
				t.Errorf("%s: %s: the plan is still valid after an object was recreated", file, namespace)
			}
			break
		}
	}
	return dumpCheck{each, func() {
		if derived == 0 {
			t.Error("no plan was derived again")
		}
	}}
}
