package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/build"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/terminal"
)

func newBundleValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate {<directory> | <image>}",
		Short: "Report all faults of a bundle",
		Long: Doc(`
			Report all faults that prevent the installation of a bundle, with file and field.
			quayside checks the rules of OLM v0 and OLM v1, and validates the rendered objects like
			the API server, in every install mode that the bundle supports. Warnings list the needs
			of the bundle that the cluster must meet.

			Exit codes: 0 no faults; 1 faults; 2 the bundle cannot be read.`),
		Example: Examples(`
			# a directory with manifests/ and metadata/
			quayside bundle validate catalog-src/etcd/0.9.4

			# an image, in a registry or a layout
			quayside build catalog-src/vault/0.1.9 oci:dist/vault
			quayside bundle validate oci:dist/vault -o json`),
		Args: WantArgs("a directory or an image"),
		RunE: a.runValidate(build.ValidateBundle),
	}
	addOutput(cmd, a, nil, build.Validation{})
	addOffline(cmd, a)
	return cmd
}

// runValidate returns the RunE function of a command that validates a bundle or a catalog.
func (a *app) runValidate(validate func(ctx context.Context, p, here *workspace.Project, text string) (*build.Validation, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, here, err := a.openForArgs()
		if err != nil {
			return err
		}
		v, err := validate(cmd.Context(), p, here, args[0])
		if err != nil {
			return err
		}
		if err := a.print(v, func(io.Writer) { printValidation(a.out, v) }); err != nil {
			return err
		}
		if !v.Valid {
			return &workspace.DiffersError{Msg: v.String()}
		}
		a.log.Note("%s", v)
		return nil
	}
}

// printValidation prints the faults, and the warnings that are not waived.
func printValidation(w *terminal.Terminal, v *build.Validation) {
	for _, f := range v.Faults {
		fmt.Fprintln(w, f.Line(w.Paint(terminal.Red, "fault:")+" "))
	}
	for _, warning := range v.Warnings {
		if !warning.Waived {
			fmt.Fprintln(w, warning.Line(w.Paint(terminal.Yellow, "warning:")+" "))
		}
	}
}

func newBundle(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Validate bundles, for authors of operators",
		Long: Doc(`
			Validate bundles. A bundle is one version of an operator: a directory with manifests/
			(the ClusterServiceVersion, the CRDs and other objects) and metadata/annotations.yaml
			(the package and its channels).`),
		Example: Examples(`quayside bundle validate catalog-src/etcd/0.9.4`),
		RunE:    Group,
	}
	cmd.AddCommand(newBundleValidate(a))
	return cmd
}
