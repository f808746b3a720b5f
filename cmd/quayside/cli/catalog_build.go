package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/registry"
)

type catalogBuildOptions struct {
	*app
	output     format
	repository string
	offline    bool
}

func newCatalogBuild(a *app) *cobra.Command {
	o := &catalogBuildOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build <source>... <oci:path[:tag]>",
		Short: "Make a catalog's image of bundles or of a file-based catalog",
		Long: doc(`
			Make a catalog's image, in an OCI layout, of one or more sources: directories of
			bundle directories, file-based catalogs (directories or images), and bundles'
			images. The channels and upgrade edges of bundles are those that they declare.
			The catalog is validated before anything is written. The same sources give the
			same image, byte for byte, on every machine; no Docker and no opm is needed.

			A bundle's image is named in the catalog, by its digest. A bundle's directory is
			embedded in it, unless --bundle-repository says where its image is, or will be:
			then it is named by the digest that 'quayside bundle push' gives that directory.`),
		Example: examples(`
			# embed the bundles
			quayside catalog build catalog-src oci:dist/catalog:v1

			# name the images that 'quayside bundle push' pushes
			quayside catalog build catalog-src oci:dist/catalog:v2 --bundle-repository registry.example.com/ops/{package}`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return twoArgs("a source", "oci:path")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	addOutput(cmd, &o.output)
	addBundleRepository(cmd, &o.repository)
	addOffline(cmd, &o.offline)
	return cmd
}

func addBundleRepository(cmd *cobra.Command, repository *string) {
	cmd.Flags().StringVar(repository, "bundle-repository", "", "name bundles' images in `REPOSITORY` instead of embedding directories; {package} stands for the package")
}

func (o *catalogBuildOptions) run(ctx context.Context, args []string) error {
	last := len(args) - 1
	dir, tag, err := o.layoutTarget(args[last])
	if err != nil {
		return err
	}
	built, err := o.assembleCatalog(ctx, args[:last], o.repository, o.offline)
	if err != nil {
		return err
	}
	if err := built.packed.WriteLayout(dir, tag); err != nil {
		return err
	}
	return o.printBuilt(o.output, built.view(args[last]))
}

// view returns what is printed of a catalog that was built.
func (c *builtCatalog) view(ref string) builtView {
	v := builtView{Packages: c.packages, Image: ref, Digest: c.packed.Digest()}
	for _, b := range c.bundles {
		v.Bundles = append(v.Bundles, b.image)
	}
	return v
}

// builtCatalog is a catalog's image, and the bundles that it names and that
// were made here.
type builtCatalog struct {
	packed   *registry.Packed
	packages int
	bundles  []builtBundle
}

// builtBundle is a bundle's image.
type builtBundle struct {
	image   string // "registry.example.com/ops/etcd@sha256:…"
	version string
	packed  *registry.Packed
}
