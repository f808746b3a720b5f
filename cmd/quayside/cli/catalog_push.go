package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/registry"
)

type catalogPushOptions struct {
	*app
	repository string
}

func newCatalogPush(a *app) *cobra.Command {
	o := &catalogPushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {<directory> | <layout>} <image>",
		Short: "Push a catalog to a registry",
		Long: doc(`
			Push a catalog to a registry: a directory, which is built as by 'quayside
			catalog build', or an image in an OCI layout. With --bundle-repository the
			images of the bundles are pushed before the catalog that refers to them, each
			tagged with its version. Prints the catalog's reference by digest.

			Credentials are those of 'podman login' and 'docker login'.`),
		Example: examples(`
			quayside catalog push catalog-src registry.example.com/ops/catalog:v1
			quayside catalog push catalog-src registry.example.com/ops/catalog:v1 --bundle-repository registry.example.com/ops/{package}`),
		Args: wantArgs("a directory or a layout", "an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1]) },
	}
	addOutput(cmd, a, nil, builtView{})
	addBundleRepository(cmd, &o.repository)
	return cmd
}

func (o *catalogPushOptions) run(cmd *cobra.Command, from, to string) error {
	ctx := cmd.Context()
	_, here, err := o.here()
	if err != nil {
		return err
	}
	if arg, err := here.Argument(from); err == nil && arg.Image != "" {
		if o.repository != "" {
			return usagef(cmd, "--bundle-repository is for directories: what %q names is built already", from)
		}
		return o.copyImage(ctx, here, arg, to, image.Catalog)
	}
	built, err := o.buildCatalog(ctx, []string{from}, o.repository)
	if err != nil {
		return err
	}
	client, err := here.Client()
	if err != nil {
		return err
	}
	for _, b := range built.Bundles {
		src, err := registry.ParseSource(b.Ref)
		if err != nil {
			return err
		}
		o.talk.Progress("pushing %s", b.Ref)
		tag := registry.Source{Kind: registry.Remote, Name: src.Name, Tag: "v" + strings.ReplaceAll(b.Bundle.CSV.Version, "+", "_")}
		if err := client.Push(ctx, tag.String(), b.Packed); err != nil {
			return err
		}
	}
	o.talk.Done()
	if err := client.Push(ctx, to, built.Packed); err != nil {
		return err
	}
	return o.printBuilt(catalogView(built, to))
}
