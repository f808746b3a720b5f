package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

func newBundlePush(a *app) *cobra.Command {
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
		Args: wantArgs("a directory or a layout", "an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.bundlePush(cmd.Context(), args[0], args[1]) },
	}
	addOutput(cmd, a, nil, builtView{})
	return cmd
}

func (a *app) bundlePush(ctx context.Context, from, to string) error {
	_, here, err := a.here()
	if err != nil {
		return err
	}
	arg, err := here.Argument(from)
	if err != nil {
		return err
	}
	if arg.Image != "" {
		return a.copyImage(ctx, here, arg, to, image.Bundle)
	}
	return a.makeBundle(here, arg, to, func(p *registry.Packed) error {
		client, err := here.Client()
		if err != nil {
			return err
		}
		return client.Push(ctx, to, p)
	})
}

// copyImage pushes an image that is built already, if it is of that kind.
func (a *app) copyImage(ctx context.Context, here *project.Project, arg project.Argument, to string, kind image.Kind) error {
	digest, err := here.CopyImage(ctx, arg, to, kind)
	if err != nil {
		return err
	}
	return a.printBuilt(builtView{Image: to, Digest: digest})
}
