package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/oci"
)

// pushImage pushes a bundle or a catalog. A directory is built first; an existing image is copied.
func (o *pushOptions) pushImage(cmd *cobra.Command, from, to string) error {
	_, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	if arg, err := here.ParseArgument(from); err == nil && arg.Image != "" {
		if o.repository != "" {
			return Usagef(cmd, "--bundle-repository is for directories: %q is an image already", from)
		}
		digest, err := here.CopyImage(cmd.Context(), arg, to)
		if err != nil {
			return err
		}
		return o.printImage(imageView{Image: to, Digest: digest})
	}
	built, err := o.build(cmd.Context(), here, []string{from}, o.repository)
	if err != nil {
		return err
	}
	if err := o.send(cmd.Context(), here, built, to); err != nil {
		return err
	}
	return o.printImage(built.view(to))
}

// send pushes the bundle images that a catalog refers to, each with its version as the tag. Then it
// pushes the image itself.
func (o *pushOptions) send(ctx context.Context, here *workspace.Project, built *builtImage, to string) error {
	client, err := here.Client()
	if err != nil {
		return err
	}
	if built.catalog != nil {
		defer o.log.Done()
		for _, b := range built.catalog.Bundles {
			src, err := oci.ParseReference(b.Ref)
			if err != nil {
				return err
			}
			o.log.Progress("pushing %s", b.Ref)
			tag := oci.Reference{Kind: oci.Remote, Name: src.Name, Tag: "v" + strings.ReplaceAll(b.Bundle.CSV.Version, "+", "_")}
			if err := client.Push(ctx, tag.String(), b.Packed); err != nil {
				return err
			}
		}
	}
	return client.Push(ctx, to, built.packed)
}
