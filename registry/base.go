package registry

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// Base is an image that programs are put on.
type Base struct {
	Source string   // as [ParseSource] reads it; one of a registry by its digest
	Needs  []string // "usr/bin/git": programs that it has to hold
}

const (
	labelBaseName   = "org.opencontainers.image.base.name"
	labelBaseDigest = "org.opencontainers.image.base.digest"

	maxBaseEntries  = 1_000_000
	maxBaseUnpacked = 8 << 30 // bytes of all layers of one image
)

// PackProgramOn is [PackProgram] on top of another image: the image for each
// platform has the layers that base has for it, untouched, and one with the program.
// Every layer of the base is read and verified. Of its configuration the variables
// stay and nothing else; labels name it and its digest. The same base, programs and
// options give the same bytes.
//
// A base of a registry without a digest is refused, for its tag may be another image
// tomorrow, and so is one that has no image for a platform, or not what it needs.
// The caller closes the image.
func (c *Client) PackProgramOn(ctx context.Context, base Base, programs map[string][]byte, opt ProgramOptions) (*PackedIndex, error) {
	src, err := ParseSource(base.Source)
	if err != nil {
		return nil, err
	}
	if src.Kind == Remote && src.Digest == "" {
		return nil, c.unpinned(ctx, src)
	}
	from, digest, data, closer, err := c.root(ctx, src)
	if err != nil {
		return nil, wrap(src.String(), err)
	}
	opt.Labels = basedOn(opt.Labels, src, digest)
	out, err := packIndex(programs, opt, func(platform string) (*ground, error) {
		g, err := c.groundFor(ctx, from, src.String(), digest, data, platform)
		if err == nil {
			err = g.holds(ctx, base.Needs)
		}
		if err != nil {
			return nil, wrap(src.String(), fmt.Errorf("for %s: %w", platform, err))
		}
		return g, nil
	})
	switch {
	case err == nil:
		out.below, out.closer = from, closer
	case closer != nil:
		err = errors.Join(err, closer.Close())
	}
	return out, err
}

// unpinned says by which digest a base could be named that has none.
func (c *Client) unpinned(ctx context.Context, src Source) error {
	const why = "name it by its digest: a tag can be another image tomorrow"
	found, err := c.Inspect(ctx, src.String())
	if err != nil {
		return wrap(src.String(), errors.New(why))
	}
	return wrap(src.String(), fmt.Errorf("%s; today it is %s", why, ByDigest(src.String(), found.Digest)))
}

// basedOn returns labels with those that name a base. A layout has no name that
// means anything elsewhere.
func basedOn(labels map[string]string, src Source, digest string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, labels)
	out[labelBaseDigest] = digest
	if src.Kind == Remote {
		out[labelBaseName] = src.Name
	}
	return out
}

// ground is what lies below a layer that is packed, for one platform. The zero value
// is nothing.
type ground struct {
	digest string // of the manifest
	parts  []part // its layers, the lowest first
	diffs  []string
	env    []string
	layers []Layer
}

// groundFor reads the manifest and the configuration of an image for a platform, and
// holds them to each other; name is what errors call it.
func (c *Client) groundFor(ctx context.Context, from origin, name, root string, data []byte, platform string) (*ground, error) {
	digest, data, err := descend(ctx, from, root, data, platform)
	if err != nil {
		return nil, err
	}
	m, err := c.parseManifest(digest, data)
	if err != nil {
		return nil, err
	}
	text, err := readAll(ctx, from, m.Config)
	var config v1.ConfigFile
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("configuration %s: %w", m.Config.Digest, err)
	case config.OS+"/"+config.Architecture != platform:
		return nil, fmt.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	case len(config.RootFS.DiffIDs) != len(m.Layers):
		return nil, fmt.Errorf("manifest %s has %d layers, its configuration %d", digest, len(m.Layers), len(config.RootFS.DiffIDs))
	}
	g := &ground{digest: digest, env: config.Config.Env}
	for i, d := range m.Layers {
		mediaType, err := layerType(d)
		if err != nil {
			return nil, err
		}
		diff := config.RootFS.DiffIDs[i].String()
		g.parts = append(g.parts, part{digest: d.Digest.String(), size: d.Size, mediaType: mediaType})
		g.diffs = append(g.diffs, diff)
		g.layers = append(g.layers, Layer{
			Digest: d.Digest.String(), Size: d.Size, image: name, diff: diff,
			open: func(ctx context.Context) (*store.Verifier, error) { return from.blob(ctx, d.Digest.String(), d.Size) },
		})
	}
	return g, nil
}

// layerType returns what an OCI manifest calls a layer, whose bytes stay the same.
func layerType(d v1.Descriptor) (types.MediaType, error) {
	switch d.MediaType {
	case types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer:
		return d.MediaType, nil
	case types.DockerLayer:
		return types.OCILayer, nil
	case types.DockerUncompressedLayer:
		return types.OCIUncompressedLayer, nil
	default:
		return "", fmt.Errorf("layer %s is %q, which cannot be copied", d.Digest, d.MediaType)
	}
}

// assemble makes an image of one gzip layer on the ground; diff is the digest of its
// uncompressed bytes.
func (g *ground) assemble(layer []byte, diff, platform string, config map[string]any, annotations map[string]string) (*Packed, error) {
	system, arch, _ := strings.Cut(platform, "/")
	if platform == "" {
		system, arch = "linux", "amd64"
	}
	var history []any // one entry a layer
	for range g.parts {
		history = append(history, map[string]any{"created_by": g.digest})
	}
	text, err := json.Marshal(map[string]any{
		"architecture": arch, "os": system,
		"config":  config,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": append(slices.Clip(g.diffs), diff)},
		"history": append(history, map[string]any{"created_by": "quayside"}),
	})
	if err != nil {
		return nil, fmt.Errorf("packing the image: %w", err)
	}
	return Artifact{
		ConfigType: string(types.OCIConfigJSON), Config: text,
		LayerType: string(types.OCILayer), Layer: layer, Annotations: annotations,
	}.packOn(g.parts)
}

// holds reads every layer, so that all of them are verified, and says what of these
// files is not there in the end.
func (g *ground) holds(ctx context.Context, files []string) error {
	s := &search{entries: maxBaseEntries, bytes: maxBaseUnpacked, has: map[string]bool{}}
	for _, f := range files {
		s.has[f] = false
	}
	for _, l := range g.layers {
		if err := s.layer(ctx, l); err != nil {
			return err
		}
	}
	for _, f := range files {
		if !s.has[f] {
			return fmt.Errorf("/%s is missing: the program needs it", f)
		}
	}
	return nil
}

// search looks for programs in the layers of an image, the lowest first.
type search struct {
	entries int             // how many more are read
	bytes   int64           // how many more are
	has     map[string]bool // by path, whether it is there
}

func (s *search) layer(ctx context.Context, l Layer) error {
	r, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read from
	bounded := &io.LimitedReader{R: r, N: s.bytes}
	put, gone, err := s.read(bounded)
	if err == nil {
		_, err = io.Copy(io.Discard, bounded) // what follows is part of what is verified
	}
	s.bytes = bounded.N
	var told *Error
	switch {
	case s.bytes <= 0:
		return l.wrap(fmt.Errorf("the image has more than %d bytes", int64(maxBaseUnpacked)))
	case errors.As(err, &told):
		return err
	case err != nil:
		return l.wrap(err)
	}
	for f := range gone {
		s.has[f] = false
	}
	maps.Copy(s.has, put)
	return nil
}

// read returns which of the programs a layer has, false where it has something else
// in a program's place, and which it takes away from the layers below.
func (s *search) read(r io.Reader) (put, gone map[string]bool, err error) {
	put, gone = map[string]bool{}, map[string]bool{}
	for tr := tar.NewReader(r); ; s.entries-- {
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			return put, gone, nil
		case err != nil:
			return nil, nil, err
		case s.entries <= 0:
			return nil, nil, fmt.Errorf("the image has more than %d files", maxBaseEntries)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if _, wanted := s.has[name]; wanted {
			put[name] = runs(h)
		}
		for f := range s.has {
			if hides(h, name, f) {
				gone[f] = true
			}
		}
	}
}

// hides reports whether an entry takes a file of the layers below away: by saying so,
// or by being no directory where the file needs one.
func hides(h *tar.Header, name, file string) bool {
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	hidden, away := strings.CutPrefix(base, ".wh.")
	switch {
	case base == ".wh..wh..opq":
		return dir == "" || strings.HasPrefix(file, dir+"/")
	case away:
		name = path.Join(dir, hidden)
		return name == file || strings.HasPrefix(file, name+"/")
	default:
		return h.Typeflag != tar.TypeDir && strings.HasPrefix(file, name+"/")
	}
}

// runs reports whether an entry can be a program: one that may be run, or a link.
func runs(h *tar.Header) bool {
	return h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0 || h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink
}
