package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
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
	addOutput(cmd, a, []string{"imageset"}, mirror.List{})
	addAll(cmd, a)
	cmd.Flags().BoolVar(&o.inspect, "inspect", false, "ask the registries for the digest, the platforms and the size of each image")
	addOffline(cmd, o.app)
	return cmd
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
	l := mirror.List{Images: append([]mirror.Image{}, images...)}
	if o.inspect {
		client, err := s.Client()
		if err != nil {
			return err
		}
		if err := l.Inspect(ctx, client, o.talk.Progress); err != nil {
			return err
		}
		o.talk.Done()
	}
	if o.output == "imageset" {
		data, err := mirror.ImageSet(l.Images)
		if err != nil {
			return err
		}
		_, err = o.out.Write(data)
		return err
	}
	return o.printTable(l, l.Table())
}
