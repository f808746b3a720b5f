package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/terminal"
	"github.com/quayside/quayside/internal/oci"
)

// ImageList is a list of images as a document.
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

// Table returns the list as a table.
func (l *ImageList) Table() *terminal.Table {
	t := &terminal.Table{Head: []string{"image", "role", "operators"}}
	hasClusters := slices.ContainsFunc(l.Images, func(im Image) bool { return im.Clusters != nil })
	if hasClusters {
		t.Head = append(t.Head, "clusters")
	}
	if l.Inspected {
		t.Head = append(t.Head, "digest", "platforms")
	}
	for _, im := range l.Images {
		row := []string{im.Image, strings.Join(im.Roles, ","), strings.Join(im.Operators, ",")}
		if hasClusters {
			row = append(row, strings.Join(im.Clusters, ","))
		}
		if l.Inspected {
			row = append(row, im.Digest, strings.Join(im.Platforms, ","))
		}
		t.Add(row...)
	}
	return t
}
