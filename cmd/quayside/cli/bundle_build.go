package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

type bundleBuildOptions struct {
	*app
	output format
}

func newBundleBuild(a *app) *cobra.Command {
	o := &bundleBuildOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build <directory> <oci:path[:tag]>",
		Short: "Make an image of a bundle, in an OCI layout",
		Long: doc(`
			Validate a bundle's directory and make an image of it, in an OCI layout, which
			is made where it is not there and may hold other images. The same files give
			the same image, byte for byte, on every machine; no Docker is needed.

			The image holds manifests/, metadata/ and tests/, and bears the annotations of
			the metadata as labels.`),
		Example: examples(`
			quayside bundle build catalog-src/memcached-operator/0.0.1 oci:dist/memcached-operator:v0.0.1`),
		Args: twoArgs("a directory", "oci:path"),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0], args[1]) },
	}
	addOutput(cmd, &o.output)
	return cmd
}

func (o *bundleBuildOptions) run(from, to string) error {
	arg, err := o.argument(from)
	if err != nil {
		return err
	}
	dir, tag, err := o.layoutTarget(to)
	if err != nil {
		return err
	}
	b, packed, err := o.packBundle(arg)
	if err != nil {
		return err
	}
	if err := packed.WriteLayout(dir, tag); err != nil {
		return err
	}
	return o.printBuilt(o.output, builtView{Package: b.Package, Bundle: b.CSV.Name, Image: to, Digest: packed.Digest()})
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
func (a *app) printBuilt(f format, v builtView) error {
	return a.print(f, v, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, byDigest(v.Image, v.Digest))
		return err
	})
}
