package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
)

// finish removes OLM's settings of the named operators from the lock, or of all adopted operators if args is
// empty. It does not access a cluster.
func (o *adoptRunOptions) finish(ctx context.Context, args []string) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	if !o.check {
		release, err := p.LockWorkTree("quayside adopt run --finish")
		if err != nil {
			return err
		}
		defer release()
	}
	f, err := inspect.Finish(ctx, p, args)
	if err != nil {
		return err
	}
	if !o.check && len(f.Operators) > 0 {
		if f.Written, err = p.WriteFile(workspace.LockFile, lockfile.Format(f.Lock)); err != nil {
			return err
		}
	}
	if err := o.Print(f, func(io.Writer) { showFinishing(o.Out, f) }); err != nil {
		return err
	}
	if o.check && len(f.Operators) > 0 {
		return &workspace.DiffersError{Msg: "settings of OLM are kept for " + diag.Count(len(f.Operators), "operator")}
	}
	return nil
}

// showFinishing prints the changes to each operator, and to the rest of the tree.
func showFinishing(out *terminal.Terminal, f *inspect.FinishResult) {
	for _, op := range f.Operators {
		fmt.Fprintf(out, "%s (%s)\n", sanitize.Line(op.Key()), sanitize.Line(op.Bundle))
		for _, r := range op.Restarts {
			var paths []string
			for _, field := range r.Fields {
				paths = append(paths, field.Path)
			}
			fmt.Fprintf(out, "    %s restarts: %s\n", sanitize.Line("Deployment "+r.Deployment), sanitize.Line(strings.Join(paths, ", ")))
		}
		if op.Condition.From != op.Condition.To {
			fmt.Fprintf(out, "    %s\n", sanitize.Line("OperatorCondition "+op.Condition.From+" becomes "+op.Condition.To))
		}
		for _, service := range op.Certificates {
			fmt.Fprintf(out, "    %s\n", sanitize.Line("the certificate of Service "+service+" is issued by the provider in spec.certificates"))
		}
		for _, kind := range op.Needs {
			fmt.Fprintf(out, "    %s\n", sanitize.Line("the cluster must serve "+kind+" before the tree is applied"))
		}
		listChanges(out, op.Objects)
	}
	if len(f.Shared) > 0 {
		fmt.Fprint(out, "of several operators, or of none\n")
		listChanges(out, f.Shared)
	}
	fmt.Fprintf(out, "%s\n", diag.Count(len(f.Operators), "operator"))
}

func listChanges(out *terminal.Terminal, changes []adopt.Change) {
	signs := map[string]string{"added": "+", "changed": "~", "removed": "-"}
	for _, c := range changes {
		fmt.Fprintf(out, "    %s %s\n", out.Sign(signs[c.Change]), sanitize.Line(c.String()))
	}
}
