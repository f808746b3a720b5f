package compare

import (
	"context"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// Severities returns the severity of the most severe finding without a waiver, by operator.
func Severities(r *diff.Report) map[string]string {
	worst := map[string]diff.Severity{}
	for _, f := range r.Findings {
		if f.Waiver == "" {
			worst[f.Operator] = max(worst[f.Operator], f.Severity)
		}
	}
	out := map[string]string{}
	for operator, severity := range worst {
		out[operator] = severity.String()
	}
	return out
}

// WindowFindings evaluates the rule about windows for the change from one lock to another. It compares the objects
// of the locks only if a window selects severities. If this comparison fails, the severities are unknown.
func WindowFindings(ctx context.Context, p *workspace.Project, before, after *lockfile.File) (rules.Findings, error) {
	if !p.Settings.HasWindows() || before == nil || after == nil {
		return nil, nil
	}
	var severities map[string]string
	if slices.ContainsFunc(p.Settings.Windows, func(w settings.Window) bool { return len(w.Severities) > 0 }) && len(rules.Rollouts(before, after)) > 0 {
		if c, err := Locks(p, Lock, [2]string{"before", "after"}, before, after); err == nil {
			if report, err := c.Report(ctx, p.Now); err == nil {
				severities = Severities(report)
			}
		}
	}
	return rules.Evaluate(workspace.ChangeState(p, before, after, severities), rules.Windows)
}

// CheckWindows evaluates the rule about windows for a change of the lock. The old lock is that of the merge base
// with the target branch; the new one is lock. If the old lock cannot be read, CheckWindows returns a warning.
func CheckWindows(ctx context.Context, p *workspace.Project, lock *lockfile.File) (rules.Findings, error) {
	if !p.Settings.HasWindows() {
		return nil, nil
	}
	c, err := newComparison(p, Lock)
	if err != nil || c.clone.Repo == nil || !c.clone.Repo.HasCommits() {
		return nil, err
	}
	before, err := c.mergedLock()
	if err != nil {
		ws := p.Waive([]diag.Warning{{Code: "not-checked", Msg: "not checked: spec.windows: " + err.Error()}})
		return rules.Findings{{Severity: rules.Warning, Code: ws[0].Code, Msg: ws[0].Msg, Waived: ws[0].Waived}}, nil
	}
	return WindowFindings(ctx, p, before, lock)
}

// mergedLock returns the lock at the merge base with the target branch, or nil if there is none.
func (c *Comparison) mergedLock() (*lockfile.File, error) {
	base, err := c.defaultBase("")
	if err != nil {
		return nil, err
	}
	merged, err := c.clone.At(base)
	if err != nil {
		return nil, err
	}
	return merged.LockIfAny()
}
