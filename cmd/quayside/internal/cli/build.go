package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/build"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/sanitize"
)

type buildOptions struct {
	*app
	repository string // value of --bundle-repository
}

func newBuild(a *app) *cobra.Command {
	o := &buildOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build <source>... <oci:path[:tag]>",
		Short: "Build the image of a bundle or of a catalog in an OCI layout",
		Long: Doc(`
			Build the image of a bundle or a catalog in an OCI layout, without Docker or opm. The
			layout is created if it does not exist, and can contain other images. The sources are
			validated first. Builds are reproducible.

			A single bundle directory gives the image of the bundle, with manifests/, metadata/ and
			tests/, and with the annotations in metadata/ as labels. All other sources give the
			image of a catalog: directories of bundle directories, file-based catalogs (directories
			or images), and bundle images. With --bundle-repository, a single bundle directory gives
			a catalog, too.

			A catalog has the channels and upgrade edges that its bundles declare. It refers to
			bundle images by digest. Bundle directories are embedded in the catalog. With
			--bundle-repository, the catalog refers to their images instead, by the digests of
			'quayside push'.`),
		Example: Examples(`
			# a bundle
			quayside build catalog-src/memcached-operator/0.0.1 oci:dist/memcached-operator:v0.0.1

			# a catalog with embedded bundles
			quayside build catalog-src oci:dist/catalog:v1

			# a catalog that refers to bundle images, which 'quayside push' pushes
			quayside build catalog-src oci:dist/catalog:v2 --bundle-repository registry.example.com/ops/{package}`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return WantArgs("a source", "oci:path")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	addOutput(cmd, a, nil, imageView{})
	addBundleRepository(cmd, &o.repository)
	addOffline(cmd, a)
	return cmd
}

func addBundleRepository(cmd *cobra.Command, repository *string) {
	cmd.Flags().StringVar(repository, "bundle-repository", "", "for a catalog: refer to bundle images in `REPOSITORY` instead of embedding directories; {package} is replaced by the package's name")
}

func (o *buildOptions) run(ctx context.Context, args []string) error {
	last := len(args) - 1
	dir, tag, err := o.parseLayoutTarget(args[last])
	if err != nil {
		return err
	}
	_, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	built, err := o.build(ctx, here, args[:last], o.repository)
	if err != nil {
		return err
	}
	if err := built.packed.WriteLayout(dir, tag); err != nil {
		return err
	}
	return o.printImage(built.view(args[last]))
}

// builtImage is the image of a bundle or of a catalog.
type builtImage struct {
	packed  *oci.Packed
	bundle  *build.BundleImage  // nil for a catalog
	catalog *build.CatalogImage // nil for a bundle
}

// build builds the image of a bundle if the only source is a bundle directory and repository is
// empty. Otherwise it builds the image of a catalog from the sources.
func (a *app) build(ctx context.Context, here *workspace.Project, sources []string, repository string) (*builtImage, error) {
	if arg, ok := onlyBundle(here, sources); ok && repository == "" {
		b, warnings, err := build.Bundle(arg.Files, arg.Text)
		a.log.Warn(here.Waive(warnings))
		if err != nil {
			return nil, err
		}
		return &builtImage{packed: b.Packed, bundle: b}, nil
	}
	c, err := a.buildCatalog(ctx, here, sources, repository)
	if err != nil {
		return nil, err
	}
	return &builtImage{packed: c.Packed, catalog: c}, nil
}

// onlyBundle returns the only source if there is one source and it is a bundle directory. Otherwise it returns
// false.
func onlyBundle(here *workspace.Project, sources []string) (workspace.Argument, bool) {
	if len(sources) != 1 {
		return workspace.Argument{}, false
	}
	arg, err := here.ParseArgument(sources[0])
	if err != nil || arg.Files == nil {
		return arg, false
	}
	for _, part := range []string{"manifests", "metadata"} {
		if info, err := fs.Stat(arg.Files, part); err == nil && info.IsDir() {
			return arg, true
		}
	}
	return arg, false
}

// buildCatalog builds the image of a catalog from sources.
func (a *app) buildCatalog(ctx context.Context, here *workspace.Project, sources []string, repository string) (*build.CatalogImage, error) {
	client, err := here.Client()
	if err != nil {
		return nil, err
	}
	var parts []build.CatalogInput
	for _, text := range sources {
		ref, err := here.CatalogRef(text)
		if err != nil {
			return nil, err
		}
		parts = append(parts, build.CatalogInput{Text: text, Ref: ref})
	}
	built, err := build.Catalog(ctx, parts, build.CatalogOptions{Client: client, Resolver: here.Resolver(), Repository: repository})
	a.log.Warn(here.Waive(built.Warnings))
	return built, err
}

// imageView is the output of commands that build or push an image.
type imageView struct {
	Package  string   `json:"package,omitempty"` // only for a bundle
	Bundle   string   `json:"bundle,omitempty"`  // only for a bundle
	Packages int      `json:"packages,omitempty"`
	Image    string   `json:"image"`
	Digest   string   `json:"digest"`
	Bundles  []string `json:"bundles,omitempty"` // references of the bundle images, for a catalog
}

// view returns the output for the image at ref.
func (b *builtImage) view(ref string) imageView {
	v := imageView{Image: ref, Digest: b.packed.Digest()}
	if b.bundle != nil {
		v.Package, v.Bundle = b.bundle.Bundle.Package, b.bundle.Bundle.CSV.Name
		return v
	}
	v.Packages = b.catalog.Packages
	for _, member := range b.catalog.Bundles {
		v.Bundles = append(v.Bundles, member.Ref)
	}
	return v
}

// printImage prints an image. In text format, it prints only the reference by digest, for scripts.
func (a *app) printImage(v imageView) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, sanitize.Line(oci.ByDigest(v.Image, v.Digest))) })
}
