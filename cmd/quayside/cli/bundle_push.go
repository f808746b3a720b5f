package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/registry"
)

type bundlePushOptions struct {
	*app
	output format
}

func newBundlePush(a *app) *cobra.Command {
	o := &bundlePushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {<directory> | <layout>} <image>",
		Short: "Push a bundle to a registry",
		Long: doc(`
			Push a bundle to a registry: a directory, which is validated and built as by
			'quayside bundle build', or an image in an OCI layout. What is printed is the
			reference by digest, as catalogs name it.

			Logins are those of 'podman login' and 'docker login'.`),
		Example: examples(`
			quayside bundle push catalog-src/memcached-operator/0.0.1 registry.example.com/ops/memcached-operator:v0.0.1`),
		Args: twoArgs("a directory or a layout", "an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	addOutput(cmd, &o.output)
	return cmd
}

func (o *bundlePushOptions) run(ctx context.Context, from, to string) error {
	arg, err := o.argument(from)
	if err != nil {
		return err
	}
	client, err := o.argClient(false)
	if err != nil {
		return err
	}
	if arg.image != "" {
		return o.copyImage(ctx, client, arg, to, image.Bundle, o.output)
	}
	b, packed, err := o.packBundle(arg)
	if err != nil {
		return err
	}
	if err := client.Push(ctx, to, packed); err != nil {
		return err
	}
	return o.printBuilt(o.output, builtView{Package: b.Package, Bundle: b.CSV.Name, Image: to, Digest: packed.Digest()})
}

// copyImage pushes an image that is built already, if it is of that kind.
func (a *app) copyImage(ctx context.Context, client *registry.Client, arg argument, to string, kind image.Kind, f format) error {
	im, err := image.Open(ctx, client, arg.image, image.Options{})
	if err != nil {
		return err
	}
	got := im.Kind()
	if err := im.Close(); err != nil {
		return err
	}
	if got != kind {
		return fmt.Errorf("image %q is a %s, not a %s", arg.text, got, kind)
	}
	done, err := client.Upload(ctx, arg.image, to)
	if err != nil {
		return err
	}
	return a.printBuilt(f, builtView{Image: to, Digest: done.Digest})
}

// byDigest returns a reference with its tag replaced by a digest; a layout's
// stays what it is before the digest.
func byDigest(ref, digest string) string {
	src, err := registry.ParseSource(ref)
	if err != nil {
		return ref + "@" + digest
	}
	return registry.Source{Kind: src.Kind, Name: src.Name, Digest: digest}.String()
}
