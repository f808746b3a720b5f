package inspect

import (
	"context"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/olmexit"
)

// Diagnose returns the dependences on OLM of the locked operators, derived from the rendered
// tree.
func Diagnose(ctx context.Context, p *workspace.Project) (*olmexit.Diagnosis, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	return olmexit.DiagnoseTree(lock, res.Objects), nil
}
