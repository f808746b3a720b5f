package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

// pushImage pushes a bundle or a catalog: a directory, which is built first, or an
// image in an OCI layout.
func (o *pushOptions) pushImage(cmd *cobra.Command, from, to string) error {
	_, here, err := o.here()
	if err != nil {
		return err
	}
	if arg, err := here.Argument(from); err == nil && arg.Image != "" {
		if o.repository != "" {
			return usagef(cmd, "--bundle-repository is for directories: what %q names is built already", from)
		}
		digest, err := here.CopyImage(cmd.Context(), arg, to)
		if err != nil {
			return err
		}
		return o.printBuilt(builtView{Image: to, Digest: digest})
	}
	built, err := o.build(cmd.Context(), here, []string{from}, o.repository)
	if err != nil {
		return err
	}
	if err := o.send(cmd.Context(), here, built, to); err != nil {
		return err
	}
	return o.printBuilt(built.view(to))
}

// send pushes the images of the bundles that a catalog names, each tagged with its
// version, and then the image itself.
func (o *pushOptions) send(ctx context.Context, here *project.Project, built *builtImage, to string) error {
	client, err := here.Client()
	if err != nil {
		return err
	}
	if built.catalog != nil {
		defer o.talk.Done()
		for _, b := range built.catalog.Bundles {
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
	}
	return client.Push(ctx, to, built.packed)
}
