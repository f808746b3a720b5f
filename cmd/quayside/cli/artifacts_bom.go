package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/bom"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

func newBOM(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bom",
		Short: "List operators and images as a bill of materials",
		Long: doc(`
			List what quayside.lock installs: the operators with the digests of their bundles,
			the catalogs that these come from, and every image that the clusters run, as
			'quayside images' finds them.

			With -o cyclonedx the list is a bill of materials in the form of CycloneDX 1.6, with
			package URLs and with what depends on what. The same lock gives the same bytes,
			serial number included.`),
		Example: examples(`
			quayside bom
			quayside bom -o cyclonedx`),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bom(cmd.Context()) },
	}
	addOffline(cmd, a)
	addOutput(cmd, a, []string{"cyclonedx"}, bom.List{})
	addAll(cmd, a)
	return cmd
}

func (a *app) bom(ctx context.Context) error {
	p, lock, err := a.locked()
	if err != nil {
		return err
	}
	d, err := materials(ctx, p, lock)
	if err != nil {
		return err
	}
	if a.output == "cyclonedx" {
		data, err := d.Text()
		if err != nil {
			return err
		}
		_, err = a.out.Write(data)
		return err
	}
	l := d.List()
	return a.printTable(l, l.Table())
}

// materials returns the bill of materials of a lock.
func materials(ctx context.Context, p *project.Project, lock *lockfile.File) (*bom.Document, error) {
	images, err := state.Images(ctx, p, lock)
	if err != nil {
		return nil, err
	}
	return bom.Make(cmp.Or(p.Settings.Name, "quayside"), lock, images)
}
