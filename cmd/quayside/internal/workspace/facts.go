package workspace

import (
	"context"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
)

// facts are reasons to hold back operators that are found in the content of the chosen bundles and in
// the history of the lock. The resolver cannot know them before it has chosen.
type facts struct {
	holds       []resolve.Hold
	notChecked  []diag.Warning  // upgrades with unknown storage versions
	notReverted map[string]bool // upgrades that nobody reverted, as "namespace/package bundle"
}

// resolveFacts resolves, looks at the chosen bundles, and resolves again with the holds that it
// found, until it finds nothing new.
func resolveFacts(ctx context.Context, pr *Problem) (*resolve.Result, error) {
	opt := pr.Options
	var found facts
	for {
		res, err := resolve.Resolve(pr.Index, pr.Declared, pr.Lock, opt)
		if res == nil {
			return nil, err
		}
		if res.Lock != nil {
			if found, err = findFacts(ctx, pr, res, found.notReverted); err != nil {
				return nil, err
			}
		}
		if res.Lock == nil || len(found.holds) == 0 {
			res.Warnings = append(res.Warnings, found.notChecked...)
			return res, err
		}
		if opt, err = opt.WithHolds(found.holds); err != nil {
			return nil, err
		}
	}
}

// findFacts returns the holds for the first of these causes that applies to an operator: its next
// bundle drops a stored version; in an unattended run, a person reverted its upgrade; with KeepGoing,
// its next bundle cannot be fetched. There is one cause at a time, because the newest pin of a package
// in all namespaces determines the dropped versions.
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
