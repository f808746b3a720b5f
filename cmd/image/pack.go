package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
)

// program describes the image of a program.
type program struct {
	path   string            // file in the image: "usr/local/bin/quayside"
	user   string            // user that runs the program: "65532:65532"
	dir    string            // working directory, added to the image: "work"; empty: root directory
	env    []string          // environment variables: "HOME=/tmp"
	labels map[string]string // image labels
}

// pack returns an index with one image for each platform. programs are keyed by platform; the
// program is the entrypoint. With a base, an image gets the base's layers and environment
// variables for its platform, but no other settings of the base. The same programs and base
// give the same bytes.
func (p program) pack(programs map[string][]byte, from *base) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, err
		}
		image, err := p.packFor(platform, programs[name], from)
		if err != nil {
			return nil, fmt.Errorf("packing for %s: %w", name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

func (p program) packFor(platform *v1.Platform, text []byte, from *base) (v1.Image, error) {
	layers, env, err := from.layers(platform)
	if err != nil {
		return nil, err
	}
	top, err := p.layer(text)
	if err != nil {
		return nil, err
	}
	layers = append(layers, mutate.Addendum{Layer: top, History: v1.History{CreatedBy: "quayside"}})
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, p.labels)
	if from != nil {
		maps.Copy(labels, from.labels)
	}
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config = v1.Config{Entrypoint: []string{"/" + p.path}, User: p.user, WorkingDir: "/" + p.dir, Labels: labels, Env: p.environment(env)}
	return mutate.ConfigFile(image, config)
}

// layer returns the layer with the program.
func (p program) layer(text []byte) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if p.dir != "" {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: p.dir + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.path, Size: int64(len(text)), Mode: 0o755, Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// environment returns the environment variables of the base, overridden by those of the
// program. If PATH is set, it adds the program's directory.
func (p program) environment(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(p.env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
	out = append(out, p.env...)
	own := "/" + path.Dir(p.path)
	for i, v := range out {
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok && !slices.Contains(strings.Split(dirs, ":"), own) {
			out[i] = "PATH=" + own + ":" + dirs
		}
	}
	return out
}

// base is the base image of other images.
type base struct {
	index  v1.ImageIndex
	needs  []string          // required programs
	labels map[string]string // labels for the new image: base.name and base.digest
}

// openBase opens an image in a layout, or an image with a digest in a registry, which it copies
// below a directory. It rejects a tag, because a tag can be moved.
func openBase(ctx context.Context, client *oci.Client, source, tmp string, needs []string) (*base, error) {
	src, err := oci.ParseReference(source)
	if err != nil {
		return nil, err
	}
	dir, labels := src.Name, map[string]string{}
	switch {
	case src.Kind == oci.Remote && src.Digest == "":
		return nil, fmt.Errorf("%s: use a digest: a tag can be moved", src)
	case src.Kind == oci.Remote:
		dir, labels["org.opencontainers.image.base.name"] = filepath.Join(tmp, "base"), src.Name
		if _, err := client.Vendor(ctx, filetree.OpenUserDir(dir), []oci.VendoredImage{{Name: src.String(), Digest: src.Digest}}, oci.VendorOptions{Mirror: true}); err != nil {
			return nil, err
		}
	case src.Kind != oci.Layout || src.Tag != "" || src.Digest != "":
		return nil, fmt.Errorf("%s: must be a registry image with a digest, or oci: and a layout with one image", src)
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	list, err := root.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s: the layout must contain exactly one image", src))
	}
	labels["org.opencontainers.image.base.digest"] = list.Manifests[0].Digest.String()
	index, err := root.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return &base{index: index, needs: needs, labels: labels}, nil
}

// layers returns the verified layers and the environment variables of the base's image for a
// platform. The image must have all required programs.
func (b *base) layers(platform *v1.Platform) ([]mutate.Addendum, []string, error) {
	if b == nil {
		return nil, nil, nil
	}
	images, err := partial.FindImages(b.index, match.Platforms(*platform))
	if err == nil && len(images) != 1 {
		err = fmt.Errorf("the base has %d images for this platform, expected one", len(images))
	}
	if err != nil {
		return nil, nil, err
	}
	image := images[0]
	if err := validate.Image(image); err != nil {
		return nil, nil, err
	}
	if err := b.check(image); err != nil {
		return nil, nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, nil, err
	}
	var out []mutate.Addendum
	for _, l := range layers {
		kind, err := l.MediaType()
		switch {
		case err != nil:
			return nil, nil, err
		case kind == types.DockerLayer:
			kind = types.OCILayer
		case kind == types.DockerUncompressedLayer:
			kind = types.OCIUncompressedLayer
		case !slices.Contains([]types.MediaType{types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer}, kind):
			return nil, nil, fmt.Errorf("the base has a layer of type %q, which cannot be copied", kind)
		}
		out = append(out, mutate.Addendum{Layer: l, MediaType: kind, History: v1.History{CreatedBy: digest.String()}})
	}
	return out, config.Config.Env, nil
}

// check returns an error if a required program is missing.
func (b *base) check(image v1.Image) error {
	r := mutate.Extract(image)
	defer func() { _ = r.Close() }() // read only
	found := map[string]bool{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break // validate.Image has already read everything
		}
		if err != nil {
			return err
		}
		link := h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink
		found[path.Clean(h.Name)] = link || h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0
	}
	for _, f := range b.needs {
		if !found[f] {
			return fmt.Errorf("the base has no /%s, which the program needs", f)
		}
	}
	return nil
}
