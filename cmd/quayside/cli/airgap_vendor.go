package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

type vendorOptions struct {
	*app
	check bool

	lockedOnly bool
	refresh    bool
}

func newVendor(a *app) *cobra.Command {
	o := &vendorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "vendor",
		Short: "Keep everything that resolve and render read beside the lock",
		Long: doc(`
			Keep every bundle image that quayside.lock names, and every catalog image of the
			workspace, in quayside.vendor, an OCI layout beside the lock, so that resolve
			and render work from the repository alone, without a registry and without a
			cache. Bundles are looked up in this order: embedded in their catalog, in the
			cache, in quayside.vendor, in their registry. Catalogs and bundles that are
			already files in the repository stay as they are.

			A catalog that no pin of the lock comes from is kept as well, because a new
			subscription may need it. If it is named by tag, it stays as it is in
			quayside.vendor until --refresh looks the tag up again. --locked-only leaves such
			catalogs out: what is left is enough to render, and to resolve what the lock
			holds.

			Images that have to be signed (spec.trust in quayside.yaml) are verified, and
			their signatures are kept with them.

			Only what is missing is fetched, and what is no longer needed is removed. The
			same lock and the same catalogs give the same bytes.

			Exit codes: 0 done; 1 with --check, the layout is not what the lock says; 2 an
			error.`),
		Example: examples(`
			quayside vendor

			# in CI: does the layout hold what the lock needs?
			quayside vendor --check --offline`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything is missing or superfluous")
	cmd.Flags().BoolVar(&o.lockedOnly, "locked-only", false, "leave out the catalogs that no pin of the lock comes from")
	cmd.Flags().BoolVar(&o.refresh, "refresh", false, "look up the tags of these catalogs again")
	addOutput(cmd, a, nil, vendorView{})
	addOffline(cmd, o.app)
	return cmd
}

// vendorView is what `quayside vendor` prints.
type vendorView struct {
	Directory string          `json:"directory"`
	Written   bool            `json:"written"`
	Images    []vendoredImage `json:"images"`
	Added     []string        `json:"added"` // files; with --check, those that are missing
	Removed   []string        `json:"removed"`
	Kept      int             `json:"kept"`
	Bytes     int64           `json:"bytes"` // of the whole layout
}

type vendoredImage struct {
	Image  string `json:"image"`
	Digest string `json:"digest"`
}

func (o *vendorOptions) run(ctx context.Context) error {
	s, lock, err := o.locked()
	if err != nil {
		return err
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	images, warnings, err := s.Vendored(ctx, lock, project.VendorOptions{LockedOnly: o.lockedOnly, Refresh: o.refresh, Check: o.check})
	o.talk.Done()
	o.talk.Warn(warnings)
	if err != nil {
		return err
	}
	if len(images) == 0 && !source.IsLayout(os.DirFS(s.Path(project.VendorDir))) {
		return o.finish(images, nil)
	}
	report, err := client.Vendor(ctx, s.Path(project.VendorDir), images, registry.VendorOptions{Check: o.check})
	o.talk.Done()
	if err != nil {
		return err
	}
	return o.finish(images, report)
}

// finish prints what came of it; r is nil where there is nothing to keep.
func (o *vendorOptions) finish(images []registry.VendoredImage, r *registry.VendorReport) error {
	nothing := r == nil
	if nothing {
		r = &registry.VendorReport{}
	}
	v := vendorView{
		Directory: project.VendorDir, Written: !o.check && r.Changed(), Images: []vendoredImage{},
		Added: append([]string{}, r.Added...), Removed: append([]string{}, r.Removed...), Kept: r.Kept, Bytes: r.Bytes,
	}
	for _, im := range images {
		v.Images = append(v.Images, vendoredImage{im.Name, im.Digest})
	}
	err := o.print(v, func(w io.Writer) {
		for _, name := range r.Added {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("+"), inert.Line(name))
		}
		for _, name := range r.Removed {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("-"), inert.Line(name))
		}
	})
	if err != nil {
		return err
	}
	size := fmt.Sprintf("%s, %.1f MB", diag.Count(len(images), "image"), float64(r.Bytes)/1e6)
	switch {
	case nothing:
		o.talk.Note("nothing to keep: every catalog and bundle is in the repository already")
	case o.check && r.Changed():
		return &project.DiffersError{Msg: fmt.Sprintf("%s is not what %s says (%s): run 'quayside vendor'", project.VendorDir, project.LockFile, diag.Count(len(r.Added)+len(r.Removed), "file"))}
	case r.Changed():
		o.talk.Note("wrote %s (%s)", project.VendorDir, size)
	default:
		o.talk.Note("%s is up to date (%s)", project.VendorDir, size)
	}
	return nil
}
