package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/registry"
)

type catalogPushOptions struct {
	*app
	output     format
	repository string
}

func newCatalogPush(a *app) *cobra.Command {
	o := &catalogPushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {<directory> | <layout>} <image>",
		Short: "Push a catalog to a registry",
		Long: doc(`
			Push a catalog to a registry: a directory, which is built as by 'quayside catalog
			build', or an image in an OCI layout. With --bundle-repository the images of the
			bundles are pushed before the catalog that names them, each tagged with its
			version. What is printed is the catalog's reference by digest.

			Logins are those of 'podman login' and 'docker login'.`),
		Example: examples(`
			quayside catalog push catalog-src registry.example.com/ops/catalog:v1
			quayside catalog push catalog-src registry.example.com/ops/catalog:v1 --bundle-repository registry.example.com/ops/{package}`),
		Args: twoArgs("a directory or a layout", "an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1]) },
	}
	addOutput(cmd, &o.output)
	addBundleRepository(cmd, &o.repository)
	return cmd
}

func (o *catalogPushOptions) run(cmd *cobra.Command, from, to string) error {
	ctx := cmd.Context()
	client, err := o.argClient(false)
	if err != nil {
		return err
	}
	if arg, err := o.argument(from); err == nil && arg.image != "" {
		if o.repository != "" {
			return usagef(cmd, "--bundle-repository is for directories: what %q names is built already", from)
		}
		return o.copyImage(ctx, client, arg, to, image.Catalog, o.output)
	}
	built, err := o.assembleCatalog(ctx, []string{from}, o.repository, false)
	if err != nil {
		return err
	}
	if err := o.pushBundles(ctx, client, built.bundles); err != nil {
		return err
	}
	if err := client.Push(ctx, to, built.packed); err != nil {
		return err
	}
	return o.printBuilt(o.output, built.view(to))
}

func (o *catalogPushOptions) pushBundles(ctx context.Context, client *registry.Client, bundles []builtBundle) error {
	for _, b := range bundles {
		src, err := registry.ParseSource(b.image)
		if err != nil {
			return err
		}
		o.talk.progress("pushing %s", b.image)
		tag := registry.Source{Kind: registry.Remote, Name: src.Name, Tag: "v" + strings.ReplaceAll(b.version, "+", "_")}
		if err := client.Push(ctx, tag.String(), b.packed); err != nil {
			return err
		}
	}
	o.talk.done()
	return nil
}
