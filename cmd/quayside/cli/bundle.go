package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/registry"
)

func newBundle(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Validate, build and push bundles, for authors of operators",
		Long: doc(`
			A bundle is one version of an operator: a directory with manifests/ (the
			ClusterServiceVersion, the CRDs and whatever else belongs to it) and
			metadata/annotations.yaml (the package and its channels).`),
		Example: examples(`quayside bundle validate catalog-src/etcd/0.9.4`),
		RunE:    group,
	}
	cmd.AddCommand(newBundleValidate(a), newBundleBuild(a), newBundlePush(a))
	return cmd
}

// bundleFiles opens a bundle. Faults are to be told with the prefix put before
// their files.
func (a *app) bundleFiles(ctx context.Context, arg argument, offline bool) (fsys fs.FS, prefix string, done func(), err error) {
	if arg.dir != "" {
		return os.DirFS(arg.dir), arg.text, func() {}, nil
	}
	client, err := a.argClient(offline)
	if err != nil {
		return nil, "", nil, err
	}
	im, err := image.Open(ctx, client, arg.image, image.Options{})
	if err != nil {
		return nil, "", nil, err
	}
	if im.Kind() != image.Bundle {
		return nil, "", nil, errors.Join(fmt.Errorf("image %q holds a catalog, not a bundle", im.Name()), im.Close())
	}
	fsys, err = im.FS(ctx)
	if err != nil {
		return nil, "", nil, errors.Join(err, im.Close())
	}
	return fsys, "", func() { _ = im.Close() }, nil
}

// packBundle makes an image of a bundle's directory, which must be valid.
func (a *app) packBundle(arg argument) (*bundle.Bundle, *registry.Packed, error) {
	if arg.dir == "" {
		return nil, nil, fmt.Errorf("%q is an image already", arg.text)
	}
	fsys := os.DirFS(arg.dir)
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, nil, below(arg.text, err)
	}
	warnings, err := bundle.Validate(b)
	if err != nil {
		return nil, nil, below(arg.text, err)
	}
	packed, err := pack(fsys)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", arg.text, err)
	}
	a.talk.warn(warningsBelow(arg.text, warnings))
	return b, packed, nil
}

// pack makes an image of the bundle in fsys.
func pack(fsys fs.FS) (*registry.Packed, error) {
	files, labels, err := bundle.Image(fsys)
	if err != nil {
		return nil, err
	}
	return registry.Pack(files, registry.PackOptions{Labels: labels})
}
