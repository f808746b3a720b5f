package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/sanitize"
)

type migrateOptions struct {
	*app
	check bool
}

func newMigrate(a *app) *cobra.Command {
	o := &migrateOptions{app: a}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move files of an earlier layout to the current layout",
		Long: Doc(`
			Move your overlays from rendered/clusters/<cluster>/, the location of earlier versions,
			to overlays/<cluster>/. Run it once if 'quayside render' asks for it, and then run
			'quayside render'.

			Your own resources are moved to overlays/<cluster>/resources/. A change to named
			objects, such as a patch without a target, is moved to the overlay of the operator that
			has these objects. All other changes become the overlay of the cluster. quayside adjusts
			the paths in kustomizations, and keeps comments.

			quayside builds each cluster before and after the move. If an object would change, or if
			it finds no location for a change, it reports the file and the line, and moves nothing.

			See also: docs/gitops.md
			Exit codes: 0 done; 1 with --check, there are files to move; 2 an error.`),
		Example: Examples(`
			# list the files to move, in every workspace of the repository
			quayside migrate --check --all

			# move the files, and render
			quayside migrate
			quayside render`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if files would be moved")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, workspace.Migration{})
	addAll(cmd, a)
	addWriter(cmd, a, "check")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	m, err := p.Migrate(ctx)
	if err == nil && !o.check {
		err = m.Write()
	}
	if err != nil {
		return err
	}
	err = o.print(m, func(w io.Writer) { o.show(w, m) })
	if err == nil && o.check {
		err = m.Err()
	}
	return err
}

func (o *migrateOptions) show(w io.Writer, m *workspace.Migration) {
	for _, move := range m.Moves {
		if move.To == "" {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("-"), sanitize.Line(move.From))
			continue
		}
		fmt.Fprintf(w, "%s %s -> %s\n", o.out.Sign("~"), sanitize.Line(move.From), sanitize.Line(move.To))
	}
	switch {
	case len(m.Moves) == 0:
		o.log.Note("no files to move")
	case m.Written:
		o.log.Note("moved overlays: run 'quayside render'")
	}
}
