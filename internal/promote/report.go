package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/propose"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/report/gate"
)

// Report is what steps come to.
type Report struct {
	Steps    []StepReport   `json:"steps" doc:"the last ring first"`
	Promoted int            `json:"promoted" doc:"operators that move or come, in all steps"`
	Warnings []diag.Warning `json:"warnings"`
}

// StepReport is what one step comes to, and what was made of that.
type StepReport struct {
	From      string              `json:"from" doc:"the environment before"`
	To        string              `json:"to" doc:"the one that takes over"`
	Directory string              `json:"directory" doc:"of the one that takes over"`
	Gate      *gate.Rule          `json:"gate,omitempty" doc:"what has to have been seen; absent: nothing"`
	Operators []Row               `json:"operators" doc:"of both, by name"`
	Changes   []project.Change    `json:"changes" doc:"to the lock"`
	Warnings  []diag.Warning      `json:"warnings"`
	Written   bool                `json:"written" doc:"the lock was"`
	Rendered  *project.TreeReport `json:"rendered,omitempty" doc:"with --render"`
	Proposed  *propose.Published  `json:"proposed,omitempty" doc:"by quayside propose"`

	Step       Step                `json:"-"`
	Inputs     *project.Inputs     `json:"-"` // of the environment that takes over
	Resolution *project.Resolution `json:"-"` // nil where nothing moves
}

// Choose returns the steps between two environments that are named, and the
// operators that are named behind them; without names all steps.
func (es Environments) Choose(names []string) (steps []Step, only []string, err error) {
	if len(names) == 0 {
		steps, err = es.Steps()
		if err == nil && len(steps) == 0 {
			err = errors.New("no environment follows another: name two, or set spec.follows in the quayside.yaml of the one that follows")
		}
		return steps, nil, err
	}
	from, err := es.Find(names[0])
	to, toErr := es.Find(names[1])
	if err := errors.Join(err, toErr); err != nil {
		return nil, nil, err
	}
	if from == to {
		return nil, nil, fmt.Errorf("%s and %s are one environment", names[0], names[1])
	}
	return []Step{{From: from, To: to}}, names[2:], nil
}

// All makes steps, each by the rule that is returned for the environment that takes
// over. Where an operator that is named is held there is a report, and the error is a
// *project.PolicyError.
func All(ctx context.Context, steps []Step, opt Options, rule func(to *Environment) (*gate.Rule, error)) (*Report, error) {
	r := &Report{Steps: []StepReport{}, Warnings: []diag.Warning{}}
	var refused []string
	for _, step := range steps {
		var err error
		if opt.Rule, err = rule(step.To); err != nil {
			return nil, err
		}
		s, err := step.Promote(ctx, opt)
		if err != nil {
			return nil, err
		}
		r.Steps = append(r.Steps, *s)
		r.Promoted += s.promoted()
		for _, row := range s.Operators {
			if row.Fate == Held && slices.Contains(opt.Only, row.Operator) {
				refused = append(refused, fmt.Sprintf("%s is held: %s", row.Operator, row.Message))
			}
		}
	}
	if len(refused) > 0 {
		return r, &project.PolicyError{Msg: strings.Join(refused, "\n")}
	}
	return r, nil
}

// promoted returns how many operators move or come.
func (s *StepReport) promoted() (n int) {
	for _, r := range s.Operators {
		if r.moves() {
			n++
		}
	}
	return n
}

// Upgrade returns what a step takes over, with what was seen of it, for a pull request.
func (s *StepReport) Upgrade() project.Upgrade {
	u := project.Upgrade{Resolution: s.Resolution}
	for _, op := range s.Operators {
		if op.moves() && op.Verdict != nil {
			u.Seen = append(u.Seen, op.Operator+" "+op.From+" in "+s.From+": "+op.Verdict.Text(*s.Gate))
		}
	}
	return u
}

// Print prints a table for each step, and notes what was done.
func (r *Report) Print(out *terminal.Terminal, talk project.Talk) {
	for i, s := range r.Steps {
		if len(r.Steps) > 1 {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintf(out, "%s → %s:\n", inert.Line(s.From), inert.Line(s.To))
		}
		t := &terminal.Table{Uncut: true, Head: []string{"operator", s.From, s.To, "result", "why"}}
		for _, op := range s.Operators {
			why := op.Message
			if why == "" && op.Verdict != nil {
				why = op.Verdict.Text(*s.Gate)
			}
			t.Add(op.Operator, terminal.Dash(op.From), terminal.Dash(op.Have), string(op.Fate), terminal.Dash(why))
		}
		t.Write(out)
		if s.Rendered != nil {
			s.Rendered.Print(out, talk)
		}
		s.note(talk)
	}
}

// note says what was done.
func (s *StepReport) note(talk project.Talk) {
	from, to, promoted := inert.Line(s.From), inert.Line(s.To), s.promoted()
	if s.Gate == nil {
		talk.Note("nothing had to be seen in %s: %s has no spec.promotion", from, to)
	}
	n := diag.Count(promoted, "operator")
	switch {
	case promoted == 0:
		talk.Note("nothing to take over from %s to %s", from, to)
	case s.Written:
		talk.Note("wrote %s of %s (%s taken over)", project.LockFile, to, n)
	case s.Proposed == nil:
		talk.Note("%s to take over from %s to %s: nothing is written", n, from, to)
	}
}
