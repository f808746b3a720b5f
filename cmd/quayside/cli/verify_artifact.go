package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/deliver"
	"github.com/quayside/quayside/internal/base/diag"
)

// verifyArtifact verifies an artifact.
func (o *verifyOptions) verifyArtifact(cmd *cobra.Command, ref string) error {
	if o.all {
		return Usagef(cmd, "--all cannot be used with an artifact")
	}
	p, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	a, err := here.Artifact(cmd.Context(), ref)
	if err != nil {
		return err
	}
	r, err := deliver.CheckArtifact(cmd.Context(), p, a, o.strict)
	for _, why := range r.Unchecked {
		o.log.Warn(p.Waive([]diag.Warning{{Code: "not-checked", Msg: "not checked: " + why}}))
	}
	return errors.Join(err, o.print(r, func(io.Writer) { r.Write(o.out, o.log) }))
}
