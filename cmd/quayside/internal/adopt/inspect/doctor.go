package inspect

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// Diagnose returns the dependences on OLM of the locked operators, derived from the rendered
// tree.
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
