package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/mirror"
)

type imagesOptions struct {
	*app
	inspect bool
}

func newImages(a *app) *cobra.Command {
	o := &imagesOptions{app: a}
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List every image that the lock and the clusters need",
		Long: doc(`
			List every image that quayside.lock needs: the catalogs and bundles that resolve
			and render read, and the images that the operators run, as their authors list
			them. Beyond these, list what the clusters run: what your own patches, components
			and resources set in their overlays. An image that not every cluster gets has the
			names of those that do.

			The overlays are built over the rendered tree if that is what the lock says, else
			over what the lock renders to. --inspect asks the registries for digests and
			platforms.

			With -o imageset the list is an ImageSetConfiguration for oc-mirror that lists
			every image individually, so that exactly those of the lock are mirrored.`),
		Example: examples(`
			quayside images
			quayside images -o imageset`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addOutput(cmd, a, []string{"imageset"}, imagesView{})
	addAll(cmd, a)
	cmd.Flags().BoolVar(&o.inspect, "inspect", false, "ask the registries for the digest, the platforms and the size of each image")
	addOffline(cmd, o.app)
	return cmd
}

// imagesView is what `quayside images` prints.
type imagesView struct {
	Images []mirror.Image `json:"images"`
}

func (o *imagesOptions) run(ctx context.Context) error {
	s, lock, err := o.locked()
	if err != nil {
		return err
	}
	images, err := state.Images(ctx, s, lock)
	if err != nil {
		return err
	}
	if o.inspect {
		client, err := s.Client()
		if err != nil {
			return err
		}
		for i := range images {
			if err := o.ask(ctx, client, &images[i]); err != nil {
				return err
			}
		}
		o.talk.Done()
	}
	if o.output == "imageset" {
		data, err := mirror.ImageSet(images)
		if err != nil {
			return err
		}
		_, err = o.out.Write(data)
		return err
	}
	return o.printTable(imagesView{append([]mirror.Image{}, images...)}, o.table(images))
}

func (o *imagesOptions) ask(ctx context.Context, client *registry.Client, im *mirror.Image) error {
	o.talk.Progress("inspecting %s", im.Image)
	found, err := client.Inspect(ctx, im.Source())
	if err != nil {
		return err
	}
	im.Digest, im.Platforms, im.Bytes = found.Digest, found.Platforms, found.Bytes
	return nil
}

func (o *imagesOptions) table(images []mirror.Image) *terminal.Table {
	t := &terminal.Table{Head: []string{"image", "role", "operators"}}
	somewhere := slices.ContainsFunc(images, func(im mirror.Image) bool { return im.Clusters != nil })
	if somewhere {
		t.Head = append(t.Head, "clusters")
	}
	if o.inspect {
		t.Head = append(t.Head, "digest", "platforms")
	}
	for _, im := range images {
		row := []string{im.Image, strings.Join(im.Roles, ","), strings.Join(im.Operators, ",")}
		if somewhere {
			row = append(row, strings.Join(im.Clusters, ","))
		}
		if o.inspect {
			row = append(row, im.Digest, strings.Join(im.Platforms, ","))
		}
		t.Add(row...)
	}
	return t
}
