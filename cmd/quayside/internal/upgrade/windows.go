package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// ResolveInWindows resolves a problem, and holds back the operators whose windows do not permit the
// change now. If reason is not empty, it holds back no operators, and records the reason in the
// lock. If it would hold back an operator that the user named, the error is a *rules.PolicyError.
func ResolveInWindows(ctx context.Context, p *workspace.Project, pr *workspace.Problem, reason string) (*workspace.Resolution, error) {
	for {
		res, err := workspace.Resolve(ctx, pr)
		if err != nil || res == nil || res.Lock == nil {
			return res, err
		}
		found, err := closedWindows(ctx, p, pr.Read, res.Lock)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			res.Lock = workspace.OutsideWindow(res.Lock, found, reason)
			return res, nil
		}
		var holds []resolve.Hold
		var refused []string
		for _, f := range found {
			if pr.IsNamed(f.Subject) {
				refused = append(refused, fmt.Sprintf("%s: %s [%s]\n  hint: wait, or add --outside-window REASON, which is recorded in the lock", f.Pos, f.Msg, f.Code))
			} else if !resolve.IsHeld(pr.Options.Held, f.Subject) {
				holds = append(holds, resolve.Hold{Operator: f.Subject, Reason: strings.TrimPrefix(f.Msg, f.Subject+" "), At: f.Pos})
			}
		}
		if len(refused) > 0 {
			return nil, &rules.PolicyError{Msg: strings.Join(refused, "\n")}
		}
		if len(holds) == 0 {
			return res, nil
		}
		pr = pr.Hold(holds)
	}
}

// closedWindows compares two locks. It returns a finding for each operator that the new lock
// installs or upgrades although the operator's windows do not permit this now.
func closedWindows(ctx context.Context, p *workspace.Project, before, after *lockfile.File) (rules.Findings, error) {
	found, err := compare.WindowFindings(ctx, p, before, after)
	return slices.DeleteFunc(found, func(f rules.Finding) bool {
		_, pinned := after.Operator(f.Subject)
		return f.Waived || !pinned
	}), err
}
