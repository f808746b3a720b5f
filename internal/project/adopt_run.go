package project

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
)

// ForPlan renders the lock for a plan's cluster. The error says so where that is not
// what the plan was made of.
func (p *Project) ForPlan(ctx context.Context, pl *plan.Plan) ([]kobj.Object, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	cluster, err := p.Cluster(pl.Cluster, "cluster in the plan")
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	rendered, err := res.In(cluster)
	if err != nil {
		return nil, err
	}
	if err := pl.Fits(lock, rendered); err != nil {
		return nil, err
	}
	out := make([]kobj.Object, len(rendered))
	for i, r := range rendered {
		out[i] = r.Object
	}
	return out, nil
}

// JournalOf returns the directory in which what is done of a plan is noted: it lies
// beside the plan's file.
func JournalOf(file string) (string, error) {
	base, ok := strings.CutSuffix(file, filepath.Ext(file))
	if !ok || base == "" || filepath.Base(base) == "." {
		return "", fmt.Errorf("%s: want a file named PLAN.yaml, as the journal lies beside it in PLAN.journal", file)
	}
	return base + ".journal", nil
}
