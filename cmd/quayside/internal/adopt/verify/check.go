package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Check evaluates a check of a step, and returns the violations. An object that the step itself removes does
// not count as missing. before is the state before the first step of the namespace. If before is nil, Check
// uses [PlannedEvidence], which contains only UIDs. Check returns an error if it could not evaluate c.
func Check(ctx context.Context, r Reader, p *plan.Plan, step plan.Step, before *Evidence, c plan.Check) ([]Finding, error) {
	out, err := runCheck(ctx, r, p, step, before, c)
	return slices.DeleteFunc(out, func(f Finding) bool { return f.Note }), err
}

// runCheck is like Check, but also returns informational findings (notes).
func runCheck(ctx context.Context, r Reader, p *plan.Plan, step plan.Step, before *Evidence, c plan.Check) ([]Finding, error) {
	if before == nil {
		before = PlannedEvidence(p, step.Namespace)
	}
	evaluate := conditionTable()[c.Check]
	if evaluate == nil {
		return nil, fmt.Errorf("step %d: unknown condition %q", step.Number, c.Check)
	}
	return evaluate(ctx, &checker{comparison{p, step.Number, removedBy(p, step.Number)}, r, step, before, c.Objects})
}

// checker evaluates one check of a step.
type checker struct {
	comparison
	Reader

	at     plan.Step
	before *Evidence
	refs   []k8s.Ref
}

// conditionFunc evaluates a condition, and returns the violations.
type conditionFunc func(ctx context.Context, c *checker) ([]Finding, error)

// conditionTable returns the function for each condition.
func conditionTable() map[plan.Condition]conditionFunc {
	return map[plan.Condition]conditionFunc{
		plan.Succeeded:   checkSucceeded,
		plan.Installed:   checkInstalled,
		plan.NoPlan:      checkNoPlan,
		plan.IsStopped:   checkStopped,
		plan.IsReady:     checkReady,
		plan.Deleted:     checkDeleted,
		plan.SameUID:     sameAsBefore(checkSameUID),
		plan.NoOwner:     sameAsBefore(checkNoOwner),
		plan.Conversion:  sameAsBefore(checkConversion),
		plan.Available:   sameAsBefore(checkAvailable),
		plan.Permissions: checkPermissions,
		plan.Prepared:    checkPrepared,
		plan.NoRestart:   sameAsBefore(checkNoRestart),
		plan.SameVersion: checkSameVersion,
		plan.SameRelease: checkSameRelease,
		plan.IsUnused:    checkUnused,
	}
}

// objects returns the objects that the check lists or, if it lists none, the result of the function otherwise.
func (c *checker) objects(otherwise func() []k8s.Ref) []k8s.Ref {
	if c.refs != nil {
		return c.refs
	}
	return otherwise()
}

// checkEach reads the objects in refs and calls do for each object, or with nil if the object is missing. It
// returns the findings in the order of refs.
func (c *checker) checkEach(ctx context.Context, refs []k8s.Ref, do func(context.Context, k8s.Ref, k8s.Object) ([]Finding, error)) ([]Finding, error) {
	out := make([][]Finding, len(refs))
	err := runParallel(ctx, len(refs), func(ctx context.Context, i int) error {
		o, err := c.Get(ctx, refs[i])
		if err == nil {
			out[i], err = do(ctx, refs[i], o)
		}
		return err
	})
	return slices.Concat(out...), err
}

func checkSucceeded(ctx context.Context, c *checker) ([]Finding, error) {
	refs := c.operatorRefs(func(op plan.Operator) k8s.Ref {
		return k8s.Ref{APIVersion: k8s.OLMGroup + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: op.Namespace, Name: op.CSV}
	})
	return c.checkEach(ctx, refs, func(_ context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		switch phase := k8s.Text(o, "status", "phase"); {
		case o == nil:
			return newFindings(NotFound, ref, "is missing"), nil
		case phase != "Succeeded":
			return newFindings(WrongPhase, ref, "is %s, not Succeeded: %s", cmp.Or(phase, "without a phase"), k8s.Text(o, "status", "message")), nil
		}
		return nil, nil
	})
}

// operatorRefs returns the objects that the check lists. If the check lists none, the result contains of(op)
// for each operator op of the namespace, except references without a name.
func (c *checker) operatorRefs(of func(plan.Operator) k8s.Ref) []k8s.Ref {
	return c.objects(func() []k8s.Ref {
		var out []k8s.Ref
		for _, op := range c.plan.Operators {
			if ref := of(op); op.Namespace == c.at.Namespace && ref.Name != "" {
				out = append(out, ref)
			}
		}
		return out
	})
}

func checkInstalled(ctx context.Context, c *checker) ([]Finding, error) {
	refs := c.operatorRefs(func(op plan.Operator) k8s.Ref {
		return k8s.Ref{APIVersion: k8s.OLMv1Group + "/v1", Kind: "ClusterExtension", Name: op.Extension}
	})
	return c.checkEach(ctx, refs, func(_ context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		switch {
		case o == nil:
			return newFindings(NotFound, ref, "is missing"), nil
		case !k8s.HasCondition(o, "Installed"):
			return newFindings(WrongPhase, ref, "is not installed"), nil
		}
		return nil, nil
	})
}

// checkNoPlan finds InstallPlans that OLM is executing. It ignores an InstallPlan without a phase if there is a
// later one, because OLM then never processes it.
func checkNoPlan(ctx context.Context, c *checker) ([]Finding, error) {
	plans, err := c.List(ctx, k8s.OLMGroup+"/v1alpha1", "InstallPlan", c.at.Namespace, "")
	var out []Finding
	newest := map[string]int64{} // highest generation, by namespace
	for _, o := range plans {
		newest[o.Namespace()] = max(newest[o.Namespace()], numberAt(o, "spec", "generation"))
	}
	for _, o := range plans {
		phase := k8s.Text(o, "status", "phase")
		if phase == "" && numberAt(o, "spec", "generation") < newest[o.Namespace()] {
			continue
		}
		if slices.Contains([]string{"", "Planning", "Installing"}, phase) {
			out = append(out, newFindings(InFlight, k8s.RefTo(o), "is %s: OLM is working", cmp.Or(phase, "without a phase"))...)
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return a.Object.Key().Compare(b.Object.Key()) })
	return out, err
}

func checkStopped(ctx context.Context, c *checker) ([]Finding, error) {
	return c.checkEach(ctx, c.objects(c.plan.ControllerRefs), func(ctx context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		if o == nil {
			return nil, nil
		}
		if wanted := plan.Replicas(o); wanted > 0 {
			return newFindings(Running, ref, "has %d replicas", wanted), nil
		}
		if n := numberAt(o, "status", "replicas"); n > 0 || isStale(o) {
			return newFindings(Running, ref, "is being stopped, and has %d pods", n), nil
		}
		var labels []string
		for k, v := range k8s.TextMap(o, "spec", "selector", "matchLabels") {
			labels = append(labels, k+"="+v)
		}
		slices.Sort(labels)
		if labels == nil {
			return nil, nil
		}
		// status.replicas does not include terminating pods
		ending, err := c.List(ctx, "v1", "Pod", ref.Namespace, strings.Join(labels, ","))
		if n := len(ending); err == nil && n > 0 {
			return newFindings(Running, ref, "is being stopped, and %d of its pods are terminating", n), nil
		}
		return nil, err
	})
}

func checkReady(ctx context.Context, c *checker) ([]Finding, error) {
	return c.checkEach(ctx, c.objects(c.plan.ControllerRefs), func(_ context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		if o == nil {
			return newFindings(NotFound, ref, "is missing"), nil
		}
		want := plan.Replicas(o)
		for _, w := range c.plan.OLM {
			if w.Object.Key() == ref.Key() {
				want = w.Replicas
			}
		}
		have := min(numberAt(o, "status", "readyReplicas"), numberAt(o, "status", "updatedReplicas"))
		if have < want || plan.Replicas(o) < want || isStale(o) {
			return newFindings(NotReady, ref, "has %d of %d pods ready", have, want), nil
		}
		return nil, nil
	})
}

// isStale reports whether the status of an object is older than its spec.
func isStale(o k8s.Object) bool {
	return numberAt(o, "status", "observedGeneration") < numberAt(o, "metadata", "generation")
}

func checkDeleted(ctx context.Context, c *checker) ([]Finding, error) {
	refs := c.objects(func() []k8s.Ref {
		var out []k8s.Ref
		for _, a := range c.at.Actions {
			if a.Do.Deletes() {
				out = append(out, a.Object)
			}
		}
		return out
	})
	return c.checkEach(ctx, refs, func(_ context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		switch finalizers := k8s.Texts(o, "metadata", "finalizers"); {
		case o == nil:
			return nil, nil
		case len(finalizers) > 0:
			return newFindings(StillExists, ref, "still exists, waiting for %s", strings.Join(finalizers, ", ")), nil
		}
		return newFindings(StillExists, ref, "still exists"), nil
	})
}

// checkUnused finds custom resources of the CRDs. It ignores packageserver, because this is part of OLM.
func checkUnused(ctx context.Context, c *checker) ([]Finding, error) {
	return c.checkEach(ctx, c.refs, func(ctx context.Context, _ k8s.Ref, crd k8s.Object) ([]Finding, error) {
		if crd == nil {
			return nil, nil
		}
		list, err := listResources(ctx, c, crd)
		var out []Finding
		for _, o := range list {
			if o.Name() != snapshot.Packageserver {
				out = append(out, newFindings(StillExists, k8s.RefTo(o), "still exists")...)
			}
		}
		return out, err
	})
}

// checkSameRelease finds revisions that Helm has added to the releases since the plan was made.
func checkSameRelease(ctx context.Context, c *checker) ([]Finding, error) {
	var out []Finding
	for at, planned := range c.plan.Records(c.at.Namespace) {
		records, err := c.List(ctx, "v1", "Secret", at[0], snapshot.RecordSelector(at[1]))
		if err != nil {
			return nil, err
		}
		for _, o := range records {
			if ref := k8s.RefTo(o); !slices.Contains(planned, ref) {
				out = append(out, newFindings(NotAsPlanned, ref, "is a new revision of Helm (%s): make a new plan", k8s.Text(o, "metadata", "labels", "status"))...)
			}
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return a.Object.Key().Compare(b.Object.Key()) })
	return out, nil
}

// sameAsBefore returns a function that captures the objects of the check again. For each object, the function
// applies a rule to the earlier and the current state.
func sameAsBefore(r compareRule) conditionFunc {
	return func(ctx context.Context, c *checker) ([]Finding, error) {
		before := &Evidence{Namespace: c.at.Namespace}
		var refs []k8s.Ref
		for _, o := range c.before.Objects {
			if c.refs == nil || slices.ContainsFunc(c.refs, func(ref k8s.Ref) bool { return ref.Key() == o.Ref.Key() }) {
				before.Objects, refs = append(before.Objects, o), append(refs, o.Ref)
			}
		}
		now, _, err := captureObjects(ctx, c, c.at.Namespace, refs)
		if err != nil {
			return nil, err
		}
		return c.compareEach(r, before, now), nil
	}
}

func checkPermissions(ctx context.Context, c *checker) ([]Finding, error) {
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
	if now.Answers, err = askReviews(ctx, c, asked); err != nil {
		return nil, err
	}
	return c.comparePermissions(c.before, now), nil
}

func checkPrepared(ctx context.Context, c *checker) ([]Finding, error) {
	roles, err := readRBAC(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.lostByCleanUp(roles, c.at.Namespace)
}

func checkSameVersion(ctx context.Context, c *checker) ([]Finding, error) {
	uids := map[k8s.Key]string{}
	var all []k8s.Ref
	put := func(ref k8s.Ref, uid string) {
		if uid != "" && uids[ref.Key()] == "" {
			uids[ref.Key()], all = uid, append(all, ref)
		}
	}
	for _, h := range trackedObjects(c.plan, c.at.Namespace) {
		put(h.ref, h.uid)
	}
	for _, a := range c.at.Actions {
		put(a.Object, a.UID)
	}
	out, err := FindChanges(ctx, c, c.plan, c.at.Namespace)
	if err != nil {
		return nil, err
	}
	more, err := c.checkEach(ctx, c.objects(func() []k8s.Ref { return all }), func(_ context.Context, ref k8s.Ref, o k8s.Object) ([]Finding, error) {
		planned, now, was := uids[ref.Key()], newObject(ref, o), c.before.object(ref)
		switch {
		case planned == "":
			return nil, nil
		case o == nil:
			return newFindings(NotFound, ref, "no longer exists"), nil
		case planned != now.UID:
			return newFindings(NotAsPlanned, ref, "was deleted and recreated: UID %s, now %s", planned, now.UID), nil
		case slices.ContainsFunc(c.plan.State, func(s plan.State) bool { return s.Object == ref }): // FindChanges compares the content: a change that was undone does not count
		case was != nil && was.Pods == nil && was.Generation != 0 && was.Generation != now.Generation:
			return newFindings(NotAsPlanned, ref, "was changed: generation %d, now %d", was.Generation, now.Generation), nil
		}
		return nil, nil
	})
	for _, f := range more {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out, err
}
