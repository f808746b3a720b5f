package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Inspection describes an image as it is stored in its registry.
type Inspection struct {
	Digest    string   // digest of the index or manifest
	Platforms []string // platforms of all images, such as "linux/amd64"; sorted
	Bytes     int64    // bytes of all blobs of an image as stored; 0 for an index
}

// Inspect returns a description of the image that source refers to. It does not read the layers.
func (c *Client) Inspect(ctx context.Context, source string) (Inspection, error) {
	src, err := ParseReference(source)
	if err != nil {
		return Inspection{}, err
	}
	from, digest, data, closer, err := c.openRoot(ctx, src)
	if err != nil {
		return Inspection{}, wrapImageError(src.String(), err)
	}
	if closer != nil {
		defer closer.Close()
	}
	out := Inspection{Digest: digest}
	kind, err := manifestKind(data)
	if err == nil && kind == "image" {
		err = out.image(ctx, c, from, data)
	} else if err == nil {
		err = out.index(data)
	}
	slices.Sort(out.Platforms)
	out.Platforms = slices.Compact(out.Platforms)
	return out, wrapImageError(src.String(), err)
}

// PlatformSize is the size of an image for a platform as it is stored in its registry.
type PlatformSize struct {
	Platform string `json:"platform,omitempty" doc:"such as linux/amd64"`
	Bytes    int64  `json:"bytes" doc:"compressed"`
}

// Sizes returns the sizes of the image that source refers to, by platform. It does not read the layers.
func (c *Client) Sizes(ctx context.Context, source string) ([]PlatformSize, error) {
	src, err := ParseReference(source)
	if err != nil {
		return nil, err
	}
	from, digest, data, closer, err := c.openRoot(ctx, src)
	if err != nil {
		return nil, wrapImageError(src.String(), err)
	}
	if closer != nil {
		defer closer.Close()
	}
	kind, err := manifestKind(data)
	if err == nil && kind == "image" {
		one := Inspection{Digest: digest}
		err = one.image(ctx, c, from, data)
		return []PlatformSize{{strings.Join(one.Platforms, ","), one.Bytes}}, wrapImageError(src.String(), err)
	}
	var out []PlatformSize
	if err == nil {
		out, err = c.sizesOfIndex(ctx, from, digest, data)
	}
	return out, wrapImageError(src.String(), err)
}

// sizesOfIndex returns the sizes of the images in an index, sorted by platform.
func (c *Client) sizesOfIndex(ctx context.Context, from origin, digest string, data []byte) ([]PlatformSize, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", digest, err)
	}
	var out []PlatformSize
	for n := range index.Manifests {
		d := &index.Manifests[n]
		if isAttestation(d) {
			continue
		}
		child, err := from.manifest(ctx, d.Digest.String())
		if err != nil {
			return nil, err
		}
		m, err := c.Limits.parseManifest(d.Digest.String(), child)
		if err != nil {
			return nil, err
		}
		out = append(out, PlatformSize{platformOf(d), storedBytes(m)})
	}
	slices.SortFunc(out, func(a, b PlatformSize) int { return strings.Compare(a.Platform, b.Platform) })
	return out, nil
}

// storedBytes returns the number of bytes of all blobs of an image.
func storedBytes(m *v1.Manifest) int64 {
	n := m.Config.Size
	for _, l := range m.Layers {
		n += l.Size
	}
	return n
}

func (i *Inspection) index(data []byte) error {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("index %s: %w", i.Digest, err)
	}
	for n := range index.Manifests {
		if d := &index.Manifests[n]; !isAttestation(d) {
			i.Platforms = append(i.Platforms, platformOf(d))
		}
	}
	return nil
}

func (i *Inspection) image(ctx context.Context, c *Client, from origin, data []byte) error {
	m, err := c.Limits.parseManifest(i.Digest, data)
	if err != nil {
		return err
	}
	i.Bytes = storedBytes(m)
	config, err := readAll(ctx, from, m.Config)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", m.Config.Digest, err)
	}
	var p v1.Platform
	if err := json.Unmarshal(config, &p); err != nil {
		return fmt.Errorf("configuration %s: %w", m.Config.Digest, err)
	}
	if p.OS != "" {
		i.Platforms = append(i.Platforms, platformOf(&v1.Descriptor{Platform: &p}))
	}
	return nil
}
