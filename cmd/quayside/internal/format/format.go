// Package format converts the content of pins into bundles. Bundles of OLM (registry+v1) need no
// conversion. Each other format, such as a Helm chart, is a file with an entry in the table: no other
// code depends on its name.
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

	// image returns the content of a pin in an image; nil: it is never in one.
	image func(ctx context.Context, im *image.Image) (fs.FS, error)
	// asks filters APIs ("group/version" or "group/version/Kind"). It returns the APIs that may change the
	// bundle of a pin, in the same order.
	asks func(files fs.FS, apis []string) ([]string, error)
	// kubernetes returns the versions of Kubernetes that a content supports, as a range; nil: any.
	kubernetes func(files fs.FS) (string, error)
	// expand returns the bundle of a pin. files is the content as published.
	expand func(ctx context.Context, files fs.FS, in Input) (bundle.Release, error)
}

// Input is the input of a conversion besides the content.
type Input struct {
	Pin    lockfile.Pin
	Charts func() (*helm.Pool, error) // returns the processes that run templates
}

// table returns all formats.
func table() []Format {
	return []Format{
		{Name: charts.Helm, image: chartInImage, asks: askedInChart, kubernetes: kubernetesOfChart, expand: expandChart},
		{Name: charts.Manifests, asks: askedByManifests, expand: expandManifests},
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

// Image returns the content of a pin whose content is an image, as published.
func (f Format) Image(ctx context.Context, im *image.Image) (fs.FS, error) {
	if f.image == nil {
		return nil, fmt.Errorf("image %q: content of format %s is not in images", im.Name(), f.Name)
	}
	return f.image(ctx, im)
}

// Asks filters the APIs in a cluster ("group/version" or "group/version/Kind"). It returns the APIs that may
// change the bundle, in the same order.
func (f Format) Asks(files fs.FS, apis []string) ([]string, error) { return f.asks(files, apis) }

// Kubernetes returns the versions of Kubernetes that a content supports, as a range like kubeVersion of a chart, or
// "" for any.
func (f Format) Kubernetes(files fs.FS) (string, error) {
	if f.kubernetes == nil {
		return "", nil
	}
	return f.kubernetes(files)
}

// Expand returns the bundle of the pin in.Pin. The same input gives the same bundle, on every machine.
func (f Format) Expand(ctx context.Context, files fs.FS, in Input) (bundle.Release, error) {
	return f.expand(ctx, files, in)
}
