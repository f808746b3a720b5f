package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/store"
)

// dockerManifest is an entry of manifest.json in a docker archive.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// openDockerArchive opens an archive written by docker save. The configuration contains the digests
// of the uncompressed layers, by which they are verified. The digest of the configuration is the
// digest of the image.
func (c *Client) openDockerArchive(ctx context.Context, im *Image, src Reference) error {
	archive, err := c.openTar(ctx, src.Name)
	if err != nil {
		return err
	}
	im.closers = append(im.closers, archive)
	lim := c.Limits.withDefaults()
	l := &layout{files: archive, limit: lim.Manifest}
	data, err := l.read("manifest.json")
	if err != nil {
		return fmt.Errorf("not a docker archive: %w", err)
	}
	var all []dockerManifest
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	m, err := findTagged(all, src.Tag)
	if err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	config, err := (&layout{files: archive, limit: lim.Config}).read(m.Config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	im.digest = store.DigestOf(config)
	if hex := strings.TrimSuffix(m.Config[strings.LastIndexByte(m.Config, '/')+1:], ".json"); "sha256:"+hex != im.digest {
		return fmt.Errorf("configuration %s: %w", m.Config, &store.MismatchError{Got: im.digest, WantSize: -1})
	}
	labels, diffs, err := parseConfig(config)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", m.Config, err)
	}
	if len(diffs) != len(m.Layers) || len(diffs) > lim.Layers {
		return fmt.Errorf("configuration %s: %d layers, the archive has %d, the limit is %d", m.Config, len(diffs), len(m.Layers), lim.Layers)
	}
	im.labels = labels
	for i, path := range m.Layers {
		im.layers = append(im.layers, archiveLayer(im.name, archive, path, diffs[i]))
	}
	return nil
}
