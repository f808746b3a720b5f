package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

type vendorOptions struct {
	*app
	workspace.VendorOptions
}

func newVendor(a *app) *cobra.Command {
	o := &vendorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "vendor",
		Short: "Store in the repository all content that resolve and render read",
		Long: Doc(`
			Store every bundle image in quayside.lock, and every catalog image of the workspace, in
			quayside.vendor, an OCI layout beside the lock. 'quayside resolve' and 'quayside render'
			then need neither a registry nor a cache. quayside adds missing images and removes
			unneeded ones. The output is reproducible.

			Content is looked up in this order: embedded in the catalog, in the cache, in
			quayside.vendor, in the registry. Catalogs and bundles that are files in the repository
			are not copied.

			Catalogs without a pin in the lock are stored, too, because a new declaration may need
			them. If such a catalog is named by tag, it does not change until --refresh looks the
			tag up again. --locked-only leaves these catalogs out.

			If spec.trust requires signatures, quayside verifies them and stores them with the
			images.

			Exit codes: 0 done; 1 with --check, quayside.vendor is out of date; 2 an error.`),
		Example: Examples(`
			quayside vendor

			# in CI: check that quayside.vendor is up to date with the lock
			quayside vendor --check --offline`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.Check, "check", false, "write nothing; exit with 1 if anything is missing or superfluous")
	cmd.Flags().BoolVar(&o.LockedOnly, "locked-only", false, "omit the catalogs without a pin in the lock")
	cmd.Flags().BoolVar(&o.Refresh, "refresh", false, "look up the tags of catalogs without a pin again")
	addOutput(cmd, a, nil, workspace.Vendoring{})
	addOffline(cmd, o.app)
	addWriter(cmd, a, "check")
	return cmd
}

func (o *vendorOptions) run(ctx context.Context) error {
	p, lock, err := o.openLocked()
	if err != nil {
		return err
	}
	v, err := p.Vendor(ctx, lock, o.VendorOptions)
	if v != nil {
		o.log.Warn(v.Warnings)
	}
	if err != nil {
		return err
	}
	err = o.print(v, func(w io.Writer) {
		for _, name := range v.Added {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("+"), sanitize.Line(name))
		}
		for _, name := range v.Removed {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("-"), sanitize.Line(name))
		}
	})
	if err != nil {
		return err
	}
	size := fmt.Sprintf("%s, %.1f MB", diag.Count(len(v.Images), "image"), float64(v.Bytes)/1e6)
	switch {
	case v.None:
		o.log.Note("nothing to vendor: all catalogs and bundles are in the repository")
	case o.Check && v.Changed():
		return &workspace.DiffersError{Msg: fmt.Sprintf("%s is out of date with %s (%s): run 'quayside vendor'", workspace.VendorDir, workspace.LockFile, diag.Count(len(v.Added)+len(v.Removed), "file"))}
	case v.Written:
		o.log.Note("wrote %s (%s)", workspace.VendorDir, size)
	default:
		o.log.Note("%s is up to date (%s)", workspace.VendorDir, size)
	}
	return nil
}
