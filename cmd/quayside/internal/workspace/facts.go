package workspace

import (
	"context"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
)

// facts contains reasons to hold back operators. The reasons come from the content of the chosen bundles and
// from the history of the lock. So they are known only after the resolver has chosen bundles.
type facts struct {
	holds       []resolve.Hold
	notChecked  []diag.Warning  // warnings about upgrades whose stored versions are unknown
	notReverted map[string]bool // upgrades that nobody reverted, as "namespace/package bundle"
}

// resolveFacts resolves, calls findFacts, and resolves again with the holds found. It repeats this until
// findFacts returns no holds. It also returns the index, extended by the APIs of the chosen contents.
func resolveFacts(ctx context.Context, pr *Problem) (*resolve.Result, *catalog.Index, error) {
	opt := pr.Options
	var found facts
	for {
		res, x, err := resolveTemplates(ctx, pr, opt)
		if res == nil {
			return nil, x, err
		}
		if res.Lock != nil {
			if found, err = findFacts(ctx, pr, res, found.notReverted); err != nil {
				return nil, x, err
			}
		}
		if res.Lock == nil || len(found.holds) == 0 {
			res.Warnings = slices.Concat(res.Warnings, found.notChecked, valueWarnings(pr.Declared, res.Partial), clusterValueWarnings(pr.project.Settings))
			return res, x, err
		}
		if opt, err = opt.WithHolds(found.holds); err != nil {
			return nil, x, err
		}
	}
}

// findFacts looks for causes to hold back operators, in this order:
//   - The next bundle of an operator drops a stored version.
//   - In an unattended run, a person reverted the upgrade.
//   - With KeepGoing, the next bundle cannot be fetched.
//
// It returns only the holds for the first cause that it finds, because each hold may change the newest pin of
// a package, which determines the dropped versions.
func findFacts(ctx context.Context, pr *Problem, res *resolve.Result, notReverted map[string]bool) (facts, error) {
	f := facts{notReverted: notReverted}
	var err error
	f.holds, f.notChecked, err = pr.findStored(ctx, res.Lock)
	if pr.Unattended && len(f.holds) == 0 && err == nil {
		f.holds, f.notReverted, err = findReverted(ctx, pr, res, notReverted)
	}
	if pr.Options.KeepGoing && len(f.holds) == 0 && err == nil {
		f.holds, err = findUnreadable(ctx, pr, res)
	}
	return f, err
}
