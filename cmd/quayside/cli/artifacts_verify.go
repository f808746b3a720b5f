package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/provenance"
	"github.com/quayside/quayside/internal/ship"
)

// artifactReport is what `quayside verify` prints of an artifact.
type artifactReport struct {
	Reference string            `json:"reference" doc:"as it was asked for, in full"`
	Digest    string            `json:"digest"`
	Source    string            `json:"source,omitempty" doc:"as it claims, and so are the next two"`
	Revision  string            `json:"revision,omitempty"`
	Created   string            `json:"created,omitempty"`
	SignedBy  []string          `json:"signedBy" doc:"who signed it of those whom spec.trust demands; empty where it demands nobody"`
	Made      *madeOf           `json:"provenance,omitempty" doc:"what they state of what it was made of"`
	Files     int               `json:"files"`
	Clusters  []string          `json:"clusters" doc:"that it has overlays for"`
	InStep    bool              `json:"inStep"` // nothing was found; what could not be checked is no finding
	Changes   []filetree.Change `json:"changes" doc:"of the files, against the commit: missing, differs, extra"`
	Unchecked []string          `json:"unchecked"`
	failure
}

// madeOf is a provenance, with what is wrong with it.
type madeOf struct {
	provenance.Origin
	Differences []string `json:"differences" doc:"from what the commit has"`
}

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
	found, err := ship.Check(cmd.Context(), p, a)
	r := &artifactReport{
		Reference: a.Name, Digest: a.Digest, Source: a.Meta.Source, Revision: a.Meta.Revision, Files: a.Files.Len(),
		Clusters: append([]string{}, found.Clusters...), Changes: append([]filetree.Change{}, found.Changes...), Unchecked: []string{}, failure: newFailure(),
		SignedBy: append([]string{}, a.SignedBy...),
	}
	if a.Origin != nil {
		r.Made = &madeOf{*a.Origin, append([]string{}, found.Stated...)}
	}
	if !a.Meta.Created.IsZero() {
		r.Created = a.Meta.Created.Format(time.RFC3339)
	}
	if found.Unchecked != "" {
		r.Unchecked = append(r.Unchecked, found.Unchecked)
		o.talk.Warn(p.Acknowledge([]diag.Warning{{Code: "not-checked", Msg: "not checked: " + found.Unchecked}}))
	}
	switch {
	case err != nil:
	case len(found.Changes) > 0:
		err = &project.DiffersError{Msg: fmt.Sprintf("%s is not what %s has (%s)", a.Name, a.Meta.Revision, diag.Count(len(found.Changes), "file"))}
	case len(found.Stated) > 0:
		err = &project.DiffersError{Msg: fmt.Sprintf("the provenance of %s is not what %s has: %s", a.Name, a.Meta.Revision, strings.Join(found.Stated, "; "))}
	case o.strict && len(r.Unchecked) > 0:
		err = &project.DiffersError{Msg: "--strict: not everything could be checked"}
	}
	r.InStep = err == nil
	r.add(err)
	return errors.Join(err, o.print(r, func(w io.Writer) { o.printArtifact(w, r) }))
}

func (o *verifyOptions) printArtifact(w io.Writer, r *artifactReport) {
	for _, c := range r.Changes {
		fmt.Fprintf(w, "%s %s\n", o.out.Sign(c.Kind.Sign()), inert.Line(c.Path))
	}
	for _, who := range r.SignedBy {
		o.talk.Note("signed by %s", inert.Line(who))
	}
	if m := r.Made; m != nil {
		o.talk.Note("made of %s of %s, lock %s (%s, %s)", inert.Line(m.Workspace), inert.Line(m.Revision), m.Lock,
			diag.Count(len(m.Operators), "operator"), diag.Count(len(m.Catalogs), "catalog"))
	}
	if r.InStep {
		said := "holds what it should"
		if len(r.Unchecked) > 0 {
			said = "is whole, and its overlays build"
		}
		o.talk.Note("%s (%s) %s (%s)", inert.Line(r.Reference), r.Digest, said, diag.Count(r.Files, "file"))
	}
}
