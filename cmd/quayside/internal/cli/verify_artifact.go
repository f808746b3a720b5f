package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

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
	return errors.Join(err, o.print(r, func(io.Writer) { o.printArtifact(r) }))
}

// verifyTreeOf checks the tree in dir, whose workspace is in another repository.
func (o *verifyOptions) verifyTreeOf(cmd *cobra.Command, dir string) error {
	if o.all {
		return Usagef(cmd, "--all cannot be used with --source")
	}
	p, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	r, err := deliver.CheckTreeOf(cmd.Context(), p.Env, here.Root, dir, o.source)
	if r == nil {
		return err
	}
	return errors.Join(err, o.print(r, func(io.Writer) { o.printArtifact(r) }))
}

// printArtifact prints the differences, and logs the signers, the provenance and the result.
func (a *app) printArtifact(r *deliver.ArtifactReport) {
	for _, c := range r.Changes {
		fmt.Fprintf(a.out, "%s %s\n", a.out.Sign(c.Kind.Sign()), sanitize.Line(c.Path))
	}
	for _, who := range r.SignedBy {
		a.log.Note("signed by %s", sanitize.Line(who))
	}
	if m := r.Provenance; m != nil {
		a.log.Note("from %s of %s, lock %s (%s, %s)", sanitize.Line(m.Workspace), sanitize.Line(m.Revision), m.Lock,
			diag.Count(len(m.Operators), "operator"), diag.Count(len(m.Catalogs), "catalog"))
	}
	if r.UpToDate && r.Digest == "" {
		a.log.Note("%s equals the rendered tree of commit %.12s (%s)", sanitize.Line(r.Reference), r.Revision, diag.Count(r.Files, "file"))
	} else if r.UpToDate {
		result := "content verified"
		if len(r.Unchecked) > 0 {
			result = "complete; its overlays build"
		}
		a.log.Note("%s (%s) %s (%s)", sanitize.Line(r.Reference), r.Digest, result, diag.Count(r.Files, "file"))
	}
}
