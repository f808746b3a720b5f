package verify

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// Report is the result of verifying a plan on a cluster, with the progress of each namespace.
type Report struct {
	Stopped    bool        `json:"stopped" doc:"Whether OLM's controllers are stopped."`
	Namespaces []Namespace `json:"namespaces" doc:"Namespaces of the plan, in its order."`
}

// Namespace is the result for one namespace's operators.
type Namespace struct {
	Namespace string        `json:"namespace"`
	Step      int           `json:"step" doc:"Last completed step according to the cluster; 0 if there is none."`
	Name      plan.StepKind `json:"name,omitempty" doc:"Kind of that step."`
	Partly    bool          `json:"partial,omitempty" doc:"Whether the next step has begun."`
	Next      int           `json:"next,omitempty" doc:"Next step. Absent if all are done."`
	Verdicts  []Verdict     `json:"verdicts" doc:"Results of the checks."`
}

// Verdict is the result of one check.
type Verdict struct {
	Check    plan.Condition `json:"check"`
	State    State          `json:"state" form:"enum=passed|failed|unknown" doc:"unknown: the earlier state is missing or cannot be read."`
	Findings []Finding      `json:"findings,omitempty" doc:"Reason of the failure, or a note."`
	Reason   string         `json:"reason,omitempty" doc:"Reason why it is unknown."`
}

// State is the state of a check.
type State string

// The states of checks.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Unknown State = "unknown"
)

// CheckCluster returns an error if a plan is for another cluster, or if it cannot read the Namespace whose UID
// identifies the cluster.
func CheckCluster(ctx context.Context, r Reader, p *plan.Plan) error {
	o, err := r.Get(ctx, k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	if err != nil {
		return err
	}
	if uid := k8s.Text(o, "metadata", "uid"); uid != p.ClusterUID {
		return fmt.Errorf("the plan is for another cluster: the UID of Namespace kube-system is %q in the plan and %q here; choose the cluster with --context, or make a new plan", p.ClusterUID, uid)
	}
	return nil
}

// KnownProgress contains information about the progress of a plan that the cluster cannot show.
type KnownProgress struct {
	Before map[string]*Evidence // state before the first step, by namespace
	Ended  func(step int) bool  // reports whether a step was completed; nil: unknown
	Step   int                  // number of the last completed step; 0: as observed in the cluster
}

func (k KnownProgress) ended(step int) bool { return k.Ended != nil && k.Ended(step) }

// Verify returns the progress of every namespace of a plan, with the results of the checks that are due. It
// returns an error if CheckCluster does, or if it cannot determine the progress or evaluate a check.
func Verify(ctx context.Context, r Reader, p *plan.Plan, known KnownProgress) (*Report, error) {
	r = &cachedReader{Reader: r, entries: map[string]*cacheEntry{}}
	if err := CheckCluster(ctx, r, p); err != nil {
		return nil, err
	}
	rep := &Report{Namespaces: []Namespace{}}
	for _, w := range p.OLM {
		o, err := r.Get(ctx, w.Object)
		if err != nil {
			return nil, err
		}
		rep.Stopped = rep.Stopped || o != nil && w.Replicas > 0 && plan.Replicas(o) == 0
	}
	for _, ns := range planNamespaces(p) {
		one, err := verifyNamespace(ctx, r, p, ns, known)
		if err != nil {
			return nil, err
		}
		rep.Namespaces = append(rep.Namespaces, *one)
	}
	return rep, nil
}

// planNamespaces returns the namespaces of a plan, in the order of its steps.
func planNamespaces(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Namespace != "" && !slices.Contains(out, s.Namespace) {
			out = append(out, s.Namespace)
		}
	}
	return out
}

func verifyNamespace(ctx context.Context, r Reader, p *plan.Plan, namespace string, known KnownProgress) (*Namespace, error) {
	out, step := &Namespace{Namespace: namespace, Verdicts: []Verdict{}}, known.Step
	if step == 0 {
		var err error
		if step, out.Partly, err = findProgress(ctx, r, p, namespace, known); err != nil {
			return nil, err
		}
	}
	last := plan.Step{Namespace: namespace}
	for _, s := range stepsOf(p, namespace) {
		s.Namespace = namespace
		switch {
		case s.Number <= step:
			last, out.Step, out.Name = s, s.Number, s.Name
		case out.Next == 0:
			out.Next = s.Number
			if out.Partly {
				last = s
			}
		}
	}
	for _, c := range dueChecks(p, last, out.Partly) {
		v, err := evaluateCheck(ctx, r, p, last, known.Before[namespace], c)
		if err != nil {
			return nil, err
		}
		out.Verdicts = append(out.Verdicts, v)
	}
	return out, nil
}

// dueChecks returns the checks that apply after last, the last executed step. If begun is true, last is not
// complete, and dueChecks returns the checks that apply during this step.
func dueChecks(p *plan.Plan, last plan.Step, begun bool) []plan.Check {
	passed := func(name plan.StepKind) bool {
		return slices.ContainsFunc(stepsOf(p, last.Namespace), func(s plan.Step) bool {
			return s.Name == name && (s.Number < last.Number || s.Number == last.Number && !begun)
		})
	}
	begins := func(name plan.StepKind) bool { return passed(name) || last.Name == name }
	var out []plan.Check
	has := func(is func(plan.Step) bool) bool { return slices.ContainsFunc(stepsOf(p, last.Namespace), is) }
	if has(func(s plan.Step) bool { return s.Name == plan.Detach }) && !begins(plan.Detach) {
		due := []plan.Condition{plan.Succeeded, plan.NoPlan}
		if p.IsForExtensions() {
			due = []plan.Condition{plan.Installed, plan.SameVersion} // a run checks these only before the detach
		}
		for _, c := range due {
			out = append(out, plan.Check{Check: c})
		}
	}
	out = append(out, plan.Check{Check: plan.SameUID})
	if passed(plan.Detach) {
		out = append(out, plan.Check{Check: plan.NoOwner})
	}
	for _, c := range []plan.Condition{plan.Conversion, plan.Available, plan.Permissions, plan.NoRestart} {
		asks := func(asked plan.Check) bool { return asked.Check == c }
		if !hasDetachedOperator(p, last.Namespace) || has(func(s plan.Step) bool { return slices.ContainsFunc(s.After, asks) }) {
			out = append(out, plan.Check{Check: c})
		}
	}
	if passed(plan.Prepare) && !begins(plan.CleanUp) {
		out = append(out, plan.Check{Check: plan.Prepared})
	}
	if begun {
		return out
	}
	for _, c := range last.After {
		if !slices.ContainsFunc(out, func(o plan.Check) bool { return o.Check == c.Check && c.Objects == nil }) {
			out = append(out, c)
		}
	}
	return out
}

// evaluateCheck evaluates a check. If the check needs evidence and none was captured, the verdict is Unknown.
func evaluateCheck(ctx context.Context, r Reader, p *plan.Plan, step plan.Step, before *Evidence, c plan.Check) (Verdict, error) {
	v := Verdict{Check: c.Check, State: Passed}
	if before == nil && c.Check.NeedsEvidence() {
		v.State, v.Reason = Unknown, "no evidence was captured before the first step"
		return v, nil
	}
	found, err := runCheck(ctx, r, p, step, before, c)
	v.Findings = found
	if slices.ContainsFunc(found, func(f Finding) bool { return !f.Note }) {
		v.State = Failed
	}
	return v, err
}

// Failed returns the number of failed checks.
func (r *Report) Failed() int {
	n := 0
	for _, ns := range r.Namespaces {
		for _, v := range ns.Verdicts {
			if v.State == Failed {
				n++
			}
		}
	}
	return n
}

// WriteText writes the progress of each namespace and the results of its checks.
func (r *Report) WriteText(w io.Writer, p *plan.Plan) {
	n := map[State]int{}
	for _, ns := range r.Namespaces {
		fmt.Fprintf(w, "%s: %s\n", sanitize.Line(ns.Namespace), sanitize.Line(formatProgress(p, ns)))
		for _, v := range ns.Verdicts {
			n[v.State]++
			line := fmt.Sprintf("    %-7s %s", v.State, v.Check.Describe())
			if v.Reason != "" {
				line += ": " + v.Reason
			}
			fmt.Fprintf(w, "%s\n", sanitize.Line(line))
			for _, f := range v.Findings {
				text := "            " + f.Message
				if f.Note {
					text = "            note: " + f.Message
				}
				fmt.Fprintf(w, "%s\n", sanitize.Line(text))
			}
		}
	}
	if r.Stopped {
		fmt.Fprintln(w, "OLM's controllers are stopped")
	}
	fmt.Fprintf(w, "%s: %d passed, %d failed, %d unknown\n", diag.Count(n[Passed]+n[Failed]+n[Unknown], "check"), n[Passed], n[Failed], n[Unknown])
}

// formatProgress describes the progress of a namespace.
func formatProgress(p *plan.Plan, ns Namespace) string {
	text := "no step is done"
	if ns.Step > 0 {
		text = fmt.Sprintf("step %d of %d is done (%s)", ns.Step, len(p.Steps), ns.Name)
	}
	switch {
	case ns.Next == 0:
		return text + "; no steps remain"
	case ns.Partly:
		return fmt.Sprintf("%s; step %d is partly done", text, ns.Next)
	}
	return fmt.Sprintf("%s; step %d is next", text, ns.Next)
}
