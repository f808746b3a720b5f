package compare

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/oci"
)

// maxSizes limits the number of images to look up.
const maxSizes = 500

// addSizes adds the sizes of added and removed images to the report. For a multi-platform image, this is the
// size of the linux/amd64 image or, if there is none, of the default image. If a size is unknown, addSizes adds
// a note.
func (c *Comparison) addSizes(ctx context.Context, r *diff.Report) error {
	images := r.Images()
	if len(images) == 0 {
		return nil
	}
	client, err := c.project.Client()
	if err != nil {
		return err
	}
	defer c.project.Log.Done()
	sizes := map[string]int64{}
	for i, image := range images {
		if i == maxSizes {
			c.notes = append(c.notes, fmt.Sprintf("sizes of %d images unknown: at most %d images are looked up", len(images)-maxSizes, maxSizes))
			break
		}
		c.project.Log.Progress("size of %s", image)
		if sizes[image], err = imageSize(ctx, client, image); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.notes = append(c.notes, fmt.Sprintf("image size unknown: %v", err))
		}
	}
	r.Measure(sizes)
	return nil
}

// imageSize returns the compressed size of an image's layers in bytes.
func imageSize(ctx context.Context, client *oci.Client, image string) (int64, error) {
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
