// Package format converts the content of pins into bundles. Bundles of OLM (registry+v1) need no conversion.
// Each other format, such as a Helm chart, has a file of this package and an entry in the table. No other code
// depends on the name of a format.
//
// Start from [Find] and [Format].
package format

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/lockfile"
)

// Format converts the content of a pin into a bundle.
type Format struct {
	Name string // in locks and catalogs: "helm"

	// image returns the content of a pin from an image; nil: content of this format is never in an image.
	image func(ctx context.Context, im *image.Image) (fs.FS, error)
	// Asks filters the APIs in a cluster ("group/version" or "group/version/Kind"). It returns the APIs that may
	// change the bundle of a pin, in the given order.
	Asks func(files fs.FS, apis []string) ([]string, error)
	// metadata returns the metadata in the content; nil: the content has none.
	metadata func(files fs.FS) (Metadata, error)
	// Expand returns the bundle of in.Pin. files is the content as published. The same input results in the same
	// bundle on every machine.
	Expand func(ctx context.Context, files fs.FS, in Input) (bundle.Release, error)
}

// Metadata describes a bundle according to its own content.
type Metadata struct {
	Bundle, Version string // as in a pin; "": only the catalog tells
	Kubernetes      string // range of supported versions, in the format of a chart's kubeVersion; "": any
}

// Input is the input of a conversion, without the content.
type Input struct {
	Pin    lockfile.Pin
	Charts func() (*helm.Pool, error) // returns the processes that run templates
}

// table returns all formats.
func table() []Format {
	return []Format{
		{Name: charts.Helm, image: chartInImage, Asks: askedInChart, metadata: metadataOfChart, Expand: expandChart},
		{Name: charts.Manifests, Asks: askedByManifests, Expand: expandManifests},
	}
}

// Find returns the format with this name, and whether there is one. There is none for registry+v1.
func Find(name string) (Format, bool) {
	for _, f := range table() {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Image returns the published content of a pin from its image.
func (f Format) Image(ctx context.Context, im *image.Image) (fs.FS, error) {
	if f.image == nil {
		return nil, fmt.Errorf("image %q: content of format %s is not in images", im.Name(), f.Name)
	}
	return f.image(ctx, im)
}

// Metadata returns the metadata that the content has.
func (f Format) Metadata(files fs.FS) (Metadata, error) {
	if f.metadata == nil {
		return Metadata{}, nil
	}
	return f.metadata(files)
}
