package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// Check returns what of a step's check does not hold of a cluster; nothing where it
// holds. What the step itself makes go is not missed. before is what Capture found
// before the first step of the namespace; where it is nil, what the plan says
// (Planned), by which rights cannot be compared. The error is the Reader's, or a
// condition that is none.
func Check(ctx context.Context, r Reader, p *plan.Plan, step plan.Step, before *Evidence, c plan.Check) ([]Finding, error) {
	out, err := check(ctx, r, p, step, before, c)
	return slices.DeleteFunc(out, func(f Finding) bool { return f.Note }), err
}

// check returns what Check does, and what is only told.
func check(ctx context.Context, r Reader, p *plan.Plan, step plan.Step, before *Evidence, c plan.Check) ([]Finding, error) {
	if before == nil {
		before = Planned(p, step.Namespace)
	}
	ask := conditions()[c.Check]
	if ask == nil {
		return nil, fmt.Errorf("step %d: %q is no condition", step.Number, c.Check)
	}
	return ask(ctx, &checker{comparison{p, step.Number, gone(p, step.Number)}, r, step, before, c.Objects})
}

// checker asks one check of a step.
type checker struct {
	comparison
	Reader

	at     plan.Step
	before *Evidence
	refs   []kobj.Ref
}

// condition returns what does not hold.
type condition func(ctx context.Context, c *checker) ([]Finding, error)

// Describe returns what a condition says where it holds.
func Describe(c plan.Condition) string {
	return map[plan.Condition]string{
		plan.Succeeded:   "the ClusterServiceVersions are Succeeded",
		plan.NoPlan:      "no InstallPlan is in flight",
		plan.IsStopped:   "OLM's controllers are stopped",
		plan.IsReady:     "the Deployments have their pods",
		plan.Gone:        "what goes is gone",
		plan.SameUID:     "every object of before is there, with its UID",
		plan.NoOwner:     "nothing belongs to a ClusterServiceVersion that is forgotten",
		plan.Conversion:  "custom resources are converted as before",
		plan.Available:   "aggregated APIs are available",
		plan.Rights:      "ServiceAccounts may what they might, and no more",
		plan.Prepared:    "the tree's own roles give all that OLM's do",
		plan.NoRestart:   "no pods are replaced that the plan does not name",
		plan.SameVersion: "every object is as it was planned",
	}[c]
}

// conditions lists what can be checked.
func conditions() map[plan.Condition]condition {
	return map[plan.Condition]condition{
		plan.Succeeded:   succeeded,
		plan.NoPlan:      noPlan,
		plan.IsStopped:   isStopped,
		plan.IsReady:     isReady,
		plan.Gone:        isGone,
		plan.SameUID:     asBefore(sameUID),
		plan.NoOwner:     asBefore(noOwner),
		plan.Conversion:  asBefore(converts),
		plan.Available:   asBefore(available),
		plan.Rights:      sameRights,
		plan.Prepared:    isPrepared,
		plan.NoRestart:   asBefore(noRestart),
		plan.SameVersion: sameVersion,
	}
}

// objects returns those that the check names, else those that it is about.
func (c *checker) objects(otherwise func() []kobj.Ref) []kobj.Ref {
	if c.refs != nil {
		return c.refs
	}
	return otherwise()
}

// read calls do with each object, nil for one that is not there, and returns what it
// finds, in the order of refs.
func (c *checker) read(ctx context.Context, refs []kobj.Ref, do func(context.Context, kobj.Ref, kobj.Object) ([]Finding, error)) ([]Finding, error) {
	out := make([][]Finding, len(refs))
	err := each(ctx, len(refs), func(ctx context.Context, i int) error {
		o, err := c.Get(ctx, refs[i])
		if err == nil {
			out[i], err = do(ctx, refs[i], o)
		}
		return err
	})
	return slices.Concat(out...), err
}

func succeeded(ctx context.Context, c *checker) ([]Finding, error) {
	refs := c.objects(func() []kobj.Ref {
		var out []kobj.Ref
		for _, op := range c.plan.Operators {
			if op.Namespace == c.at.Namespace {
				out = append(out, kobj.Ref{APIVersion: snapshot.OLM + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: op.Namespace, Name: op.CSV})
			}
		}
		return out
	})
	return c.read(ctx, refs, func(_ context.Context, ref kobj.Ref, o kobj.Object) ([]Finding, error) {
		switch phase := kobj.Text(o, "status", "phase"); {
		case o == nil:
			return found(NotThere, ref, "is not there"), nil
		case phase != "Succeeded":
			return found(WrongPhase, ref, "is %s, not Succeeded: %s", phaseOf(phase), kobj.Text(o, "status", "message")), nil
		}
		return nil, nil
	})
}

func phaseOf(phase string) string {
	if phase == "" {
		return "in no phase"
	}
	return phase
}

func noPlan(ctx context.Context, c *checker) ([]Finding, error) {
	plans, err := c.List(ctx, snapshot.OLM+"/v1alpha1", "InstallPlan", c.at.Namespace, "")
	var out []Finding
	for _, o := range plans {
		phase := kobj.Text(o, "status", "phase")
		if slices.Contains([]string{"", "Planning", "Installing"}, phase) {
			out = append(out, found(InFlight, kobj.RefTo(o), "is %s: OLM is at work", phaseOf(phase))...)
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return a.Object.Key().Compare(b.Object.Key()) })
	return out, err
}

// controllers returns the Deployments of OLM's controllers.
func (c *checker) controllers() []kobj.Ref {
	var out []kobj.Ref
	for _, w := range c.plan.OLM {
		out = append(out, w.Object)
	}
	return out
}

func isStopped(ctx context.Context, c *checker) ([]Finding, error) {
	return c.read(ctx, c.objects(c.controllers), func(ctx context.Context, ref kobj.Ref, o kobj.Object) ([]Finding, error) {
		if o == nil {
			return nil, nil
		}
		if wanted := replicas(o); wanted > 0 {
			return found(Running, ref, "has %d replicas", wanted), nil
		}
		if n := number(o, "status", "replicas"); n > 0 || stale(o) {
			return found(Running, ref, "is being stopped, and has %d pods", n), nil
		}
		var labels []string
		for k, v := range kobj.TextMap(o, "spec", "selector", "matchLabels") {
			labels = append(labels, k+"="+v)
		}
		slices.Sort(labels)
		if labels == nil {
			return nil, nil
		}
		// status.replicas does not count those that are still ending
		ending, err := c.List(ctx, "v1", "Pod", ref.Namespace, strings.Join(labels, ","))
		if n := len(ending); err == nil && n > 0 {
			return found(Running, ref, "is being stopped, and %d of its pods are still ending", n), nil
		}
		return nil, err
	})
}

func isReady(ctx context.Context, c *checker) ([]Finding, error) {
	return c.read(ctx, c.objects(c.controllers), func(_ context.Context, ref kobj.Ref, o kobj.Object) ([]Finding, error) {
		if o == nil {
			return found(NotThere, ref, "is not there"), nil
		}
		want := replicas(o)
		for _, w := range c.plan.OLM {
			if w.Object.Key() == ref.Key() {
				want = w.Replicas
			}
		}
		have := min(number(o, "status", "readyReplicas"), number(o, "status", "updatedReplicas"))
		if have < want || replicas(o) < want || stale(o) {
			return found(NotReady, ref, "has %d of %d pods ready", have, want), nil
		}
		return nil, nil
	})
}

// replicas returns how many a Deployment wants.
func replicas(o kobj.Object) int64 {
	if kobj.At(o, "spec", "replicas") == nil {
		return 1
	}
	return number(o, "spec", "replicas")
}

// stale reports whether a status tells of an earlier spec.
func stale(o kobj.Object) bool {
	return number(o, "status", "observedGeneration") < number(o, "metadata", "generation")
}

func isGone(ctx context.Context, c *checker) ([]Finding, error) {
	refs := c.objects(func() []kobj.Ref {
		var out []kobj.Ref
		for _, a := range c.at.Actions {
			if a.Do == plan.Delete || a.Do == plan.Orphan {
				out = append(out, a.Object)
			}
		}
		return out
	})
	return c.read(ctx, refs, func(_ context.Context, ref kobj.Ref, o kobj.Object) ([]Finding, error) {
		switch finalizers := kobj.Texts(o, "metadata", "finalizers"); {
		case o == nil:
			return nil, nil
		case len(finalizers) > 0:
			return found(There, ref, "is still there, waiting for %s", strings.Join(finalizers, ", ")), nil
		}
		return found(There, ref, "is still there"), nil
	})
}

// asBefore checks by a rule what was captured before.
func asBefore(r rule) condition {
	return func(ctx context.Context, c *checker) ([]Finding, error) {
		before := &Evidence{Namespace: c.at.Namespace}
		var refs []kobj.Ref
		for _, o := range c.before.Objects {
			if c.refs == nil || slices.ContainsFunc(c.refs, func(ref kobj.Ref) bool { return ref.Key() == o.Ref.Key() }) {
				before.Objects, refs = append(before.Objects, o), append(refs, o.Ref)
			}
		}
		now, _, err := captureObjects(ctx, c, c.at.Namespace, refs)
		if err != nil {
			return nil, err
		}
		return c.each(r, before, now), nil
	}
}

func sameRights(ctx context.Context, c *checker) ([]Finding, error) {
	roles, err := readRBAC(ctx, c)
	if err != nil {
		return nil, err
	}
	now := &Evidence{}
	if now.Accounts, err = roles.accounts(c.before.subjects(), c.plan); err != nil {
		return nil, err
	}
	var asked []Review
	for _, a := range c.before.Answers {
		asked = append(asked, a.Review)
	}
	if now.Answers, err = ask(ctx, c, asked); err != nil {
		return nil, err
	}
	return c.compareRights(c.before, now), nil
}

func isPrepared(ctx context.Context, c *checker) ([]Finding, error) {
	roles, err := readRBAC(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.prepared(roles, c.at.Namespace)
}

func sameVersion(ctx context.Context, c *checker) ([]Finding, error) {
	uids := map[kobj.Key]string{}
	var all []kobj.Ref
	put := func(ref kobj.Ref, uid string) {
		if uid != "" && uids[ref.Key()] == "" {
			uids[ref.Key()], all = uid, append(all, ref)
		}
	}
	for _, h := range tracked(c.plan, c.at.Namespace) {
		put(h.ref, h.uid)
	}
	for _, a := range c.at.Actions {
		put(a.Object, a.UID)
	}
	return c.read(ctx, c.objects(func() []kobj.Ref { return all }), func(_ context.Context, ref kobj.Ref, o kobj.Object) ([]Finding, error) {
		planned, now, was := uids[ref.Key()], described(ref, o), c.before.object(ref)
		switch {
		case planned == "":
			return nil, nil
		case o == nil:
			return found(NotThere, ref, "is not there any more"), nil
		case planned != now.UID:
			return found(NotAsPlanned, ref, "was deleted and made again: its UID was %s and is %s", planned, now.UID), nil
		case was != nil && was.Pods == nil && was.Generation != 0 && was.Generation != now.Generation:
			return found(NotAsPlanned, ref, "was changed: its generation was %d and is %d", was.Generation, now.Generation), nil
		}
		return nil, nil
	})
}
