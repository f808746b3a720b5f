package inventory

import (
	"context"

	"github.com/quayside/quayside/internal/oci"
)

// ImageList is a list of images, for output as JSON.
type ImageList struct {
	Images []Image `json:"images"`

	Inspected bool `json:"-"` // whether Inspect was called
}

// Inspect fetches the digest, the platforms and the size of each image from its registry. It
// calls progress before each request.
func (l *ImageList) Inspect(ctx context.Context, client *oci.Client, progress func(format string, args ...any)) error {
	l.Inspected = true
	for i := range l.Images {
		im := &l.Images[i]
		progress("inspecting %s", im.Image)
		found, err := client.Inspect(ctx, im.Source())
		if err != nil {
			return err
		}
		im.Digest, im.Platforms, im.Bytes = found.Digest, found.Platforms, found.Bytes
	}
	return nil
}
