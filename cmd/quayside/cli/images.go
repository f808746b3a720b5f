package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/registry"
)

type imagesOptions struct {
	*app
	output  format
	inspect bool
	offline bool
}

func newImages(a *app) *cobra.Command {
	o := &imagesOptions{app: a}
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List every image that the lock needs",
		Long: doc(`
			List every image that quayside.lock needs: the catalogs and bundles that resolve
			and render read, and the images that the operators run, as their authors list
			them. Only the lock is read, unless --inspect asks the registries for digests and
			platforms.

			With -o imageset the list is an ImageSetConfiguration for oc-mirror, in which
			every image stands by itself, so that exactly those of the lock are mirrored.`),
		Example: examples(`
			quayside images
			quayside images -o imageset`),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addOutput(cmd, &o.output, "imageset")
	cmd.Flags().BoolVar(&o.inspect, "inspect", false, "ask the registries for the digest, the platforms and the size of each image")
	addOffline(cmd, &o.offline)
	return cmd
}

func (o *imagesOptions) run(ctx context.Context) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	lock, err := s.needLock()
	if err != nil {
		return err
	}
	images := lockImages(lock)
	if o.inspect {
		client, err := s.client(o.offline)
		if err != nil {
			return err
		}
		for i := range images {
			if err := o.ask(ctx, client, &images[i]); err != nil {
				return err
			}
		}
		o.talk.done()
	}
	if o.output.value == "imageset" {
		return o.imageSet(images)
	}
	v := struct {
		Images []lockImage `json:"images"`
	}{append([]lockImage{}, images...)}
	return o.print(o.output, v, func(io.Writer) error { return o.table(images) })
}

func (o *imagesOptions) ask(ctx context.Context, client *registry.Client, im *lockImage) error {
	o.talk.progress("inspecting %s", im.Image)
	ref := "image:" + im.Image
	if im.Digest != "" {
		ref = byDigest(ref, im.Digest)
	}
	found, err := client.Inspect(ctx, ref)
	if err != nil {
		return err
	}
	im.Digest, im.Platforms, im.Bytes = found.Digest, found.Platforms, found.Bytes
	return nil
}

func (o *imagesOptions) table(images []lockImage) error {
	t := &table{head: []string{"image", "role", "operators"}}
	if o.inspect {
		t.head = append(t.head, "digest", "platforms")
	}
	for _, im := range images {
		row := []string{im.Image, strings.Join(im.Roles, ","), strings.Join(im.Operators, ",")}
		if o.inspect {
			row = append(row, im.Digest, strings.Join(im.Platforms, ","))
		}
		t.add(row...)
	}
	return t.write(o.out)
}

// imageSet prints oc-mirror's ImageSetConfiguration.
func (o *imagesOptions) imageSet(images []lockImage) error {
	type named struct {
		Name string `json:"name"`
	}
	list := []named{}
	for _, im := range images {
		name := im.Image
		if im.Digest != "" {
			name = strings.TrimPrefix(byDigest("image:"+name, im.Digest), "image:")
		}
		list = append(list, named{name})
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "mirror.openshift.io/v2alpha1",
		"kind":       "ImageSetConfiguration",
		"mirror":     map[string]any{"additionalImages": list},
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.out, string(data))
	return err
}
