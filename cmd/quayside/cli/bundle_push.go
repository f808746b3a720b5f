package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/project"
)

type bundlePushOptions struct {
	*app
}

func newBundlePush(a *app) *cobra.Command {
	o := &bundlePushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {<directory> | <layout>} <image>",
		Short: "Push a bundle to a registry",
		Long: doc(`
			Push a bundle to a registry: a directory, which is validated and built as by
			'quayside bundle build', or an image in an OCI layout. Prints the reference by
			digest, as catalogs refer to it.

			Credentials are those of 'podman login' and 'docker login'.`),
		Example: examples(`
			quayside bundle push catalog-src/memcached-operator/0.0.1 registry.example.com/ops/memcached-operator:v0.0.1`),
		Args: twoArgs("a directory or a layout", "an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	addOutput(cmd, a, nil, builtView{})
	return cmd
}

func (o *bundlePushOptions) run(ctx context.Context, from, to string) error {
	_, here, err := o.here()
	if err != nil {
		return err
	}
	arg, err := here.Argument(from)
	if err != nil {
		return err
	}
	if arg.Image != "" {
		return o.copyImage(ctx, here, arg, to, image.Bundle)
	}
	b, err := o.buildBundle(arg)
	if err != nil {
		return err
	}
	client, err := here.Client()
	if err != nil {
		return err
	}
	if err := client.Push(ctx, to, b.Packed); err != nil {
		return err
	}
	return o.printBuilt(bundleView(b, to))
}

// copyImage pushes an image that is built already, if it is of that kind.
func (a *app) copyImage(ctx context.Context, here *project.Project, arg project.Argument, to string, kind image.Kind) error {
	digest, err := here.CopyImage(ctx, arg, to, kind)
	if err != nil {
		return err
	}
	return a.printBuilt(builtView{Image: to, Digest: digest})
}
