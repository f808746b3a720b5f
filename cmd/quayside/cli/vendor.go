package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/registry"
)

// vendorDir is the OCI layout, beside quayside.yaml, that is looked into before
// a registry is asked.
const vendorDir = "quayside.vendor"

type vendorOptions struct {
	*app
	output  format
	check   bool
	offline bool

	lockedOnly bool
	refresh    bool
}

func newVendor(a *app) *cobra.Command {
	o := &vendorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "vendor",
		Short: "Keep what resolve and render read beside the lock",
		Long: doc(`
			Keep every bundle image that quayside.lock names, and every catalog image of the
			workspace, in quayside.vendor, an OCI layout beside the lock, so that resolve and
			render work from the repository alone, without a registry and without a cache.
			Bundles are looked for embedded in their catalog, in the cache, in
			quayside.vendor, and in their registry, in this order. Catalogs and bundles that
			are files of the repository already stay as they are.

			A catalog that no pin of the lock comes from is kept as well, for a new
			subscription may need it. Where it is named by tag, it stays the one that is in
			quayside.vendor until --refresh looks the tag up again. --locked-only leaves such
			catalogs out: what is left is enough to render, and to resolve what the lock
			holds.

			The signatures of what spec.trust of quayside.yaml demands to be signed are
			verified and kept with it.

			Only what is missing is fetched, and what is no longer needed is removed. The
			same lock and the same catalogs give the same bytes.

			Exit codes: 0 done; 1 with --check, the layout is not what the lock says; 2 an
			error.`),
		Example: examples(`
			quayside vendor

			# in CI: does the layout hold what the lock needs?
			quayside vendor --check --offline`),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything is missing or superfluous")
	cmd.Flags().BoolVar(&o.lockedOnly, "locked-only", false, "leave out the catalogs that no pin of the lock comes from")
	cmd.Flags().BoolVar(&o.refresh, "refresh", false, "look up the tags of these catalogs again")
	addOutput(cmd, &o.output)
	addOffline(cmd, &o.offline)
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
	s, err := o.open()
	if err != nil {
		return err
	}
	lock, err := s.needLock()
	if err != nil {
		return err
	}
	client, err := s.client(o.offline)
	if err != nil {
		return err
	}
	images, err := o.vendored(ctx, s, client, lock)
	o.talk.done()
	if err != nil {
		return err
	}
	if len(images) == 0 && !isLayout(s.path(vendorDir)) {
		o.talk.note("nothing to keep: every catalog and bundle is in the repository already")
		return nil
	}
	report, err := client.Vendor(ctx, s.path(vendorDir), images, registry.VendorOptions{Check: o.check})
	o.talk.done()
	if err != nil {
		return err
	}
	return o.finish(images, report)
}

func (o *vendorOptions) finish(images []registry.VendoredImage, r *registry.VendorReport) error {
	v := vendorView{
		Directory: vendorDir, Written: !o.check && r.Changed(), Images: []vendoredImage{},
		Added: append([]string{}, r.Added...), Removed: append([]string{}, r.Removed...), Kept: r.Kept, Bytes: r.Bytes,
	}
	for _, im := range images {
		v.Images = append(v.Images, vendoredImage{im.Name, im.Digest})
	}
	err := o.print(o.output, v, func(w io.Writer) error {
		for _, name := range r.Added {
			fmt.Fprintf(w, "%s %s\n", o.out.paint(green, "+"), name)
		}
		for _, name := range r.Removed {
			fmt.Fprintf(w, "%s %s\n", o.out.paint(red, "-"), name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	size := fmt.Sprintf("%s, %.1f MB", count(len(images), "image"), float64(r.Bytes)/1e6)
	switch {
	case o.check && r.Changed():
		return &differsError{fmt.Sprintf("%s is not what %s says (%s): run 'quayside vendor'", vendorDir, lockFile, count(len(r.Added)+len(r.Removed), "file"))}
	case r.Changed():
		o.talk.note("wrote %s (%s)", vendorDir, size)
	default:
		o.talk.note("%s is up to date (%s)", vendorDir, size)
	}
	return nil
}
