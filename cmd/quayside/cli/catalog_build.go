package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/build"
)

type catalogBuildOptions struct {
	*app
	repository string
}

func newCatalogBuild(a *app) *cobra.Command {
	o := &catalogBuildOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build <source>... <oci:path[:tag]>",
		Short: "Build a catalog image from bundles or a file-based catalog",
		Long: doc(`
			Build a catalog image in an OCI layout from one or more sources: directories of
			bundle directories, file-based catalogs (directories or images), and bundle
			images. The channels and upgrade edges of bundles are those that they declare.
			The catalog is validated before anything is written. The same sources give the
			same image, byte for byte, on every machine; neither Docker nor opm is needed.

			The catalog refers to a bundle image by its digest. A bundle directory is
			embedded, unless --bundle-repository says where its image is, or will be: then
			the catalog refers to it by the digest that 'quayside bundle push' gives that
			directory.`),
		Example: examples(`
			# embed the bundles
			quayside catalog build catalog-src oci:dist/catalog:v1

			# name the images that 'quayside bundle push' pushes
			quayside catalog build catalog-src oci:dist/catalog:v2 --bundle-repository registry.example.com/ops/{package}`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return wantArgs("a source", "oci:path")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	addOutput(cmd, a, nil, builtView{})
	addBundleRepository(cmd, &o.repository)
	addOffline(cmd, o.app)
	return cmd
}

func addBundleRepository(cmd *cobra.Command, repository *string) {
	cmd.Flags().StringVar(repository, "bundle-repository", "", "name bundles' images in `REPOSITORY` instead of embedding directories; {package} is replaced by the package's name")
}

func (o *catalogBuildOptions) run(ctx context.Context, args []string) error {
	last := len(args) - 1
	dir, tag, err := o.layoutTarget(args[last])
	if err != nil {
		return err
	}
	built, err := o.buildCatalog(ctx, args[:last], o.repository)
	if err != nil {
		return err
	}
	if err := built.Packed.WriteLayout(dir, tag); err != nil {
		return err
	}
	return o.printBuilt(catalogView(built, args[last]))
}

// buildCatalog makes a catalog's image of sources.
func (a *app) buildCatalog(ctx context.Context, sources []string, repository string) (*build.CatalogImage, error) {
	_, here, err := a.here()
	if err != nil {
		return nil, err
	}
	opt := build.Options{Place: here.Place(), Repository: repository}
	if opt.Client, err = here.Client(); err != nil {
		return nil, err
	}
	var parts []build.Source
	for _, text := range sources {
		ref, err := here.Ref(text)
		if err != nil {
			return nil, err
		}
		parts = append(parts, build.Source{Text: text, Ref: ref})
	}
	built, err := build.Catalog(ctx, parts, opt)
	a.talk.Warn(here.Waive(built.Warnings))
	return built, err
}

func catalogView(c *build.CatalogImage, ref string) builtView {
	v := builtView{Packages: c.Packages, Image: ref, Digest: c.Packed.Digest()}
	for _, b := range c.Bundles {
		v.Bundles = append(v.Bundles, b.Ref)
	}
	return v
}
