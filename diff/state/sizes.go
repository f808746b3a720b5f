package state

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/registry"
)

// maxSizes bounds how many images registries are asked for.
const maxSizes = 500

// measure tells how large the images are that come and go by what was found. Of an
// index it is the image for linux/amd64, or else the one that is taken for it. An
// image of which that cannot be found out is noted, and its size is not told.
func (c *Comparison) measure(ctx context.Context, r *diff.Report) error {
	images := r.Images()
	if len(images) == 0 {
		return nil
	}
	client, err := c.project.Client()
	if err != nil {
		return err
	}
	defer c.project.Talk.Done()
	sizes := map[string]int64{}
	for i, image := range images {
		if i == maxSizes {
			c.notes = append(c.notes, fmt.Sprintf("the sizes of %d images: no more than %d are asked for", len(images)-maxSizes, maxSizes))
			break
		}
		c.project.Talk.Progress("size of %s", image)
		if sizes[image], err = size(ctx, client, image); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.notes = append(c.notes, fmt.Sprintf("the size of an image is not known: %v", err))
		}
	}
	r.Measure(sizes)
	return nil
}

// size returns the bytes of an image's layers as they are stored.
func size(ctx context.Context, client *registry.Client, image string) (int64, error) {
	im, err := client.Open(ctx, "image:"+image)
	if err != nil {
		return 0, err
	}
	defer im.Close()
	var sum int64
	for _, l := range im.Layers() {
		sum += l.Size
	}
	return sum, nil
}
