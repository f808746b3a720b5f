package project

import (
	"context"

	"github.com/quayside/quayside/adopt"
)

// Diagnose says what the operators in the lock need OLM for, by what the lock
// renders to.
func (p *Project) Diagnose(ctx context.Context) (*adopt.Diagnosis, error) {
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
