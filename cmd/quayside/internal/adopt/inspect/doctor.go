package inspect

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// Diagnose renders the lock, and returns how the pinned operators of a workspace depend on OLM.
func Diagnose(ctx context.Context, p *workspace.Project) (*adopt.Diagnosis, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	return adopt.DiagnoseTree(lock, res.Objects), nil
}
