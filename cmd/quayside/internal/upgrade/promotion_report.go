package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/resolve"
)

// PromotionReport is the result of several promotion steps.
type PromotionReport struct {
	Steps    []PromotionStepReport `json:"steps" doc:"most downstream environment first"`
	Promoted int                   `json:"promoted" doc:"number of upgraded, added and removed operators in all steps"`
	Warnings []diag.Warning        `json:"warnings"`
}

// PromotionStepReport is the result of one promotion step.
type PromotionStepReport struct {
	From      string                     `json:"from" doc:"upstream environment"`
	To        string                     `json:"to" doc:"target environment"`
	Directory string                     `json:"directory" doc:"directory of the target environment"`
	Gate      *gate.Criteria             `json:"gate,omitempty" doc:"required observations; absent if none are required"`
	Operators []PromotionRow             `json:"operators" doc:"operators of both environments, sorted by name"`
	Changes   []workspace.Change         `json:"changes" doc:"changes to the lock"`
	Warnings  []diag.Warning             `json:"warnings"`
	Written   bool                       `json:"written" doc:"whether the lock was written"`
	Rendered  *workspace.TreeReport      `json:"rendered,omitempty" doc:"with --render"`
	Proposed  *deliver.PublishedProposal `json:"proposed,omitempty" doc:"proposal by quayside propose"`
	Obsolete  string                     `json:"obsolete,omitempty" doc:"branch of an earlier run whose promotions are all merged, superseded or no longer wanted"`
	Kept      *deliver.KeptBranch        `json:"kept,omitempty" doc:"other branch of an earlier run that this run does not propose"`

	Step       PromotionStep         `json:"-"`
	Problem    *workspace.Problem    `json:"-"` // problem of the target environment
	Resolution *workspace.Resolution `json:"-"` // nil if nothing changes

	opt PromotionOptions
}

// Choose parses names, which may be empty: an upstream environment, a target environment, and the operators to
// promote. It returns the promotion steps and the operators. Without names, it returns all steps.
func (es Environments) Choose(names []string) (steps []PromotionStep, only []string, err error) {
	if len(names) == 0 {
		steps, err = es.Steps()
		if err == nil && len(steps) == 0 {
			err = errors.New("no environment has spec.follows: specify two environments, or set spec.follows in the quayside.yaml of the downstream environment")
		}
		return steps, nil, err
	}
	from, err := es.Find(names[0])
	to, toErr := es.Find(names[1])
	if err := errors.Join(err, toErr); err != nil {
		return nil, nil, err
	}
	if from == to {
		return nil, nil, fmt.Errorf("%s and %s are the same environment", names[0], names[1])
	}
	return []PromotionStep{{From: from, To: to}}, names[2:], nil
}

// Promote runs the promotion of each step. rule returns the required observations for a target
// environment. If an operator in opt.Only is held back, Promote returns the report and a
// *rules.PolicyError.
func Promote(ctx context.Context, steps []PromotionStep, opt PromotionOptions, rule func(to *Environment) (*gate.Criteria, error)) (*PromotionReport, error) {
	r := &PromotionReport{Steps: []PromotionStepReport{}, Warnings: []diag.Warning{}}
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
		for _, row := range s.Operators {
			if row.Outcome == OutcomeHeld && slices.Contains(opt.Only, row.Operator) {
				refused = append(refused, fmt.Sprintf("%s is held back: %s", row.Operator, row.Message))
			}
		}
	}
	if len(refused) > 0 {
		return r, &rules.PolicyError{Msg: strings.Join(refused, "\n")}
	}
	return r, nil
}

// Branches returns a row for each branch of the steps, for the table of branches.
func (r *PromotionReport) Branches() []deliver.BranchRow {
	var out []deliver.BranchRow
	for _, s := range r.Steps {
		switch {
		case s.Proposed != nil:
			out = append(out, s.Proposed.Row())
		case s.Obsolete != "":
			out = append(out, deliver.ObsoleteRow(s.Obsolete))
		case s.Kept != nil:
			out = append(out, s.Kept.Row())
		}
	}
	return out
}

// CountPromoted sets r.Promoted to the number of upgraded, added and removed operators.
func (r *PromotionReport) CountPromoted() {
	r.Promoted = 0
	for _, s := range r.Steps {
		r.Promoted += s.CountPromoted()
	}
}

// CountPromoted returns the number of upgraded, added and removed operators.
func (s *PromotionStepReport) CountPromoted() (n int) {
	for _, r := range s.Operators {
		if r.isPromoted() {
			n++
		}
	}
	return n
}

// upgrade returns the input for a proposal: the resolution and, for the promoted operators, the observations.
func (s *PromotionStepReport) upgrade() workspace.Upgrade {
	u := workspace.Upgrade{Resolution: s.Resolution, Named: len(s.opt.Only) > 0}
	for _, op := range s.Operators {
		if op.isPromoted() && op.Verdict != nil {
			u.Observations = append(u.Observations, op.Operator+" "+op.From+" in "+s.From+": "+op.Verdict.Text(*s.Gate, ""))
		}
	}
	return u
}

// Propose publishes the promotion; see [deliver.Proposer.Propose]. It omits operators whose installed bundle
// cannot be opened, and operators that depend on them. If a person closed the pull request, Propose promotes
// nothing. If nothing is promoted, it decides whether the branch of an earlier run is obsolete.
func (s *PromotionStepReport) Propose(ctx context.Context, proposer *deliver.Proposer, several bool) error {
	kept := map[string]resolve.HeldUpgrade{}
	if err := s.propose(ctx, proposer, several); err != nil {
		unreadable := proposer.Unreadable(s.Resolution.Lock)
		if len(unreadable) == 0 {
			return err
		}
		for key, why := range unreadable {
			kept[key] = resolve.HeldUpgrade{By: ReasonContent, Text: "it cannot be rendered: an installed bundle cannot be opened: " + why.Error()}
		}
		if err := s.promoteAgain(ctx, kept); err != nil {
			return err
		}
		if err := s.propose(ctx, proposer, several); err != nil {
			return err
		}
	}
	if reason := s.Proposed.Declined(); reason != "" {
		for _, op := range s.Operators {
			if op.isPromoted() {
				kept[op.Operator] = resolve.HeldUpgrade{By: ReasonDeclined, Text: reason}
			}
		}
		if err := s.promoteAgain(ctx, kept); err != nil {
			return err
		}
	}
	if s.Resolution != nil {
		return nil
	}
	branch, err := proposer.JudgePromotion(ctx, s.Problem, s.whyNotPromoted)
	switch {
	case err != nil || branch.Branch == "":
	case branch.Reason == "":
		s.Obsolete = branch.Branch
	default:
		s.Kept = &branch
	}
	return err
}

// promoteAgain repeats the promotion without changes to the operators in kept.
func (s *PromotionStepReport) promoteAgain(ctx context.Context, kept map[string]resolve.HeldUpgrade) error {
	opt := s.opt
	opt.kept = kept
	again, err := s.Step.Promote(ctx, opt)
	if err == nil {
		*s = *again
	}
	return err
}

// propose publishes the promotion, unless nothing is promoted.
func (s *PromotionStepReport) propose(ctx context.Context, proposer *deliver.Proposer, several bool) (err error) {
	if s.Resolution != nil {
		s.Proposed, err = proposer.Propose(ctx, s.upgrade(), s.Problem, several)
	}
	return err
}

// whyNotPromoted returns the reason why an operator is not promoted.
func (s *PromotionStepReport) whyNotPromoted(operator string) string {
	for _, op := range s.Operators {
		if op.Operator == operator && op.Message != "" {
			return operator + ": " + op.Message
		}
	}
	return operator + ": its promotion is neither merged nor superseded"
}
