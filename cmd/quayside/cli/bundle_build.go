package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/build"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

type bundleBuildOptions struct {
	*app
}

func newBundleBuild(a *app) *cobra.Command {
	o := &bundleBuildOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build <directory> <oci:path[:tag]>",
		Short: "Build a bundle image in an OCI layout",
		Long: doc(`
			Validate a bundle's directory and build an image of it in an OCI layout. The
			layout is created if it does not exist, and may hold other images. The same
			files give the same image, byte for byte, on every machine; Docker is not
			needed.

			The image contains manifests/, metadata/ and tests/, and has the annotations of
			the metadata as labels.`),
		Example: examples(`
			quayside bundle build catalog-src/memcached-operator/0.0.1 oci:dist/memcached-operator:v0.0.1`),
		Args: twoArgs("a directory", "oci:path"),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0], args[1]) },
	}
	addOutput(cmd, a, nil, builtView{})
	return cmd
}

func (o *bundleBuildOptions) run(from, to string) error {
	_, here, err := o.here()
	if err != nil {
		return err
	}
	arg, err := here.Argument(from)
	if err != nil {
		return err
	}
	dir, tag, err := o.layoutTarget(to)
	if err != nil {
		return err
	}
	b, err := o.buildBundle(arg)
	if err != nil {
		return err
	}
	if err := b.Packed.WriteLayout(dir, tag); err != nil {
		return err
	}
	return o.printBuilt(bundleView(b, to))
}

// buildBundle makes an image of a bundle's directory.
func (a *app) buildBundle(arg project.Argument) (*build.BundleImage, error) {
	if arg.Dir == "" {
		return nil, fmt.Errorf("%q is an image already", arg.Text)
	}
	b, warnings, err := build.Bundle(os.DirFS(arg.Dir), arg.Text)
	a.talk.Warn(warnings)
	return b, err
}

func bundleView(b *build.BundleImage, to string) builtView {
	return builtView{Package: b.Bundle.Package, Bundle: b.Bundle.CSV.Name, Image: to, Digest: b.Packed.Digest()}
}

// builtView is what the commands that build or push an image print.
type builtView struct {
	Package  string   `json:"package,omitempty"` // of a bundle
	Bundle   string   `json:"bundle,omitempty"`  // of a bundle
	Packages int      `json:"packages,omitempty"`
	Image    string   `json:"image"`
	Digest   string   `json:"digest"`
	Bundles  []string `json:"bundles,omitempty"` // images that a catalog names
}

// printBuilt prints the image's reference by digest, for scripts to take up.
func (a *app) printBuilt(v builtView) error {
	return a.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, inert.Line(registry.ByDigest(v.Image, v.Digest)))
		return err
	})
}
