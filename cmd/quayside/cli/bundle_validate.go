package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/build"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/terminal"
)

func newBundleValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate {<directory> | <image>}",
		Short: "Report everything that is wrong with a bundle",
		Long: doc(`
			Report everything that keeps a bundle from being installed, with file and field:
			what either generation of the Operator Lifecycle Manager refuses, and what the
			API server would refuse of what the bundle renders to, in every install mode
			that it supports. Warnings say what the bundle expects from its surroundings.

			Exit codes: 0 no faults; 1 faults; 2 the bundle could not be read.`),
		Example: examples(`
			# a directory with manifests/ and metadata/
			quayside bundle validate catalog-src/etcd/0.9.4

			# an image, in a registry or a layout
			quayside bundle build catalog-src/vault/0.1.9 oci:dist/vault
			quayside bundle validate oci:dist/vault -o json`),
		Args: wantArgs("a directory or an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.bundleValidate(cmd.Context(), args[0]) },
	}
	addOutput(cmd, a, nil, validateReport{})
	addOffline(cmd, a)
	return cmd
}

func (a *app) bundleValidate(ctx context.Context, text string) error {
	p, here, err := a.here()
	if err != nil {
		return err
	}
	arg, err := here.Argument(text)
	if err != nil {
		return err
	}
	fsys, prefix, done, err := here.BundleFiles(ctx, arg)
	if err != nil {
		return err
	}
	defer done()
	r := &validateReport{Subject: text}
	b, warnings, err := build.Check(fsys, prefix)
	if b != nil {
		r.Package, r.Bundle, r.Version = b.Package, b.CSV.Name, b.CSV.Version
		r.Warnings = append([]diag.Warning{}, p.Acknowledge(warnings)...)
	}
	return a.validated(r, err)
}

// validateReport is what `bundle validate` and `catalog validate` print.
type validateReport struct {
	Subject  string         `json:"subject"`
	Package  string         `json:"package,omitempty"`
	Bundle   string         `json:"bundle,omitempty"`
	Version  string         `json:"version,omitempty"`
	Packages int            `json:"packages,omitempty"` // of a catalog
	Bundles  int            `json:"bundles,omitempty"`  // of a catalog
	Valid    bool           `json:"valid"`
	Faults   []diag.Fault   `json:"faults"`
	Warnings []diag.Warning `json:"warnings"`
}

// validated prints a report with the faults that err holds, and returns what
// the command ends with.
func (a *app) validated(r *validateReport, err error) error {
	var faults diag.List
	if !errors.As(err, &faults) {
		faults.Add(diag.Pos{}, err)
	}
	r.Valid = len(faults) == 0
	r.Faults = []diag.Fault{}
	for _, f := range faults {
		r.Faults = append(r.Faults, diag.FaultOf(f))
	}
	if r.Warnings == nil {
		r.Warnings = []diag.Warning{}
	}
	err = a.print(r, func(w io.Writer) {
		for _, v := range r.Faults {
			fmt.Fprintln(w, v.Line(a.out.Paint(terminal.Red, "fault:")+" "))
		}
		for _, v := range r.Warnings {
			if !v.Acknowledged {
				fmt.Fprintln(w, v.Line(a.out.Paint(terminal.Yellow, "warning:")+" "))
			}
		}
	})
	if err != nil {
		return err
	}
	if !r.Valid {
		return &project.DiffersError{Msg: fmt.Sprintf("%s is not valid (%s, %s)", r.Subject, diag.Count(len(r.Faults), "fault"), diag.Count(len(r.Warnings), "warning"))}
	}
	a.talk.Note("%s is valid (%s, %s)", r.Subject, r.what(), diag.Count(len(r.Warnings), "warning"))
	return nil
}

// what says in words what was validated.
func (r *validateReport) what() string {
	if r.Bundle != "" {
		return fmt.Sprintf("%s %s", r.Package, r.Version)
	}
	return fmt.Sprintf("%s, %s", diag.Count(r.Packages, "package"), diag.Count(r.Bundles, "bundle"))
}
