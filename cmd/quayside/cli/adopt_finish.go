package cli

import (
	"context"
	"io"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// finish takes what the tree keeps of OLM's out of the lock, for all operators that
// were taken over or for those that are named. No cluster is read or written.
func (o *adoptRunOptions) finish(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	f, err := p.Finish(ctx, args)
	if err != nil {
		return err
	}
	if !o.check && len(f.Operators) > 0 {
		if f.Written, err = filetree.WriteFile(p.Path(project.LockFile), lockfile.Format(f.Lock)); err != nil {
			return err
		}
	}
	if err := o.print(f, func(io.Writer) { f.Print(o.out) }); err != nil {
		return err
	}
	if o.check && len(f.Operators) > 0 {
		return &project.DiffersError{Msg: "something of OLM's is kept for " + diag.Count(len(f.Operators), "operator")}
	}
	return nil
}
