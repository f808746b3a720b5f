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

func newBundleBuild(a *app) *cobra.Command {
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
		Args: wantArgs("a directory", "oci:path"),
		RunE: func(_ *cobra.Command, args []string) error { return a.bundleBuild(args[0], args[1]) },
	}
	addOutput(cmd, a, nil, builtView{})
	return cmd
}

func (a *app) bundleBuild(from, to string) error {
	_, here, err := a.here()
	if err != nil {
		return err
	}
	arg, err := here.Argument(from)
	if err != nil {
		return err
	}
	dir, tag, err := a.layoutTarget(to)
	if err != nil {
		return err
	}
	return a.makeBundle(here, arg, to, func(p *registry.Packed) error { return p.WriteLayout(dir, tag) })
}

// makeBundle makes an image of a bundle's directory, has it put where it
// belongs, and prints what it is.
func (a *app) makeBundle(here *project.Project, arg project.Argument, to string, put func(*registry.Packed) error) error {
	if arg.Dir == "" {
		return fmt.Errorf("%q is an image already", arg.Text)
	}
	b, warnings, err := build.Bundle(os.DirFS(arg.Dir), arg.Text)
	a.talk.Warn(here.Waive(warnings))
	if err == nil {
		err = put(b.Packed)
	}
	if err != nil {
		return err
	}
	return a.printBuilt(builtView{Package: b.Bundle.Package, Bundle: b.Bundle.CSV.Name, Image: to, Digest: b.Packed.Digest()})
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
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, inert.Line(registry.ByDigest(v.Image, v.Digest))) })
}
