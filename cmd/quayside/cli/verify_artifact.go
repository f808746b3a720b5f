package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/ship"
)

// artifact verifies one.
func (o *verifyOptions) artifact(cmd *cobra.Command, ref string) error {
	if o.all {
		return usagef(cmd, "--all is for workspaces, not for an artifact")
	}
	p, here, err := o.here()
	if err != nil {
		return err
	}
	a, err := here.Artifact(cmd.Context(), ref)
	if err != nil {
		return err
	}
	r, err := ship.Check(cmd.Context(), p, a, o.strict)
	for _, why := range r.Unchecked {
		o.talk.Warn(p.Waive([]diag.Warning{{Code: "not-checked", Msg: "not checked: " + why}}))
	}
	return errors.Join(err, o.print(r, func(io.Writer) { r.Write(o.out, o.talk) }))
}
