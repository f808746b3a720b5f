package registry

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// ProgramOptions says what image a program becomes.
type ProgramOptions struct {
	Path   string            // "usr/local/bin/quayside": its file in the image
	User   string            // "65532:65532": who runs it
	Dir    string            // "/work": where it runs, a directory that is made for it; default: the root
	Env    []string          // "HOME=/tmp": variables
	Labels map[string]string // of the images' configurations
}

// PackedIndex is an image for several platforms. What was packed is held in memory,
// what lies below it stays where it is.
type PackedIndex struct {
	images   []*Packed
	manifest []byte
	digest   string

	below  origin // nil: nothing lies below
	parts  []part // what of it the images need
	closer io.Closer
}

// PackProgram makes images that hold one program and nothing else, no shell
// and no library, one for each platform ("linux/amd64"), and the index that
// lists them. The program is the entrypoint. The same programs and options give
// the same bytes.
func PackProgram(programs map[string][]byte, opt ProgramOptions) (*PackedIndex, error) {
	return packIndex(programs, opt, func(string) (*ground, error) { return new(ground), nil })
}

// packIndex packs every platform's program on what lies below it.
func packIndex(programs map[string][]byte, opt ProgramOptions, below func(platform string) (*ground, error)) (*PackedIndex, error) {
	if !fs.ValidPath(opt.Path) || opt.Path == "." || len(programs) == 0 {
		return nil, fmt.Errorf("packing the image: %d programs at %q", len(programs), opt.Path)
	}
	out := new(PackedIndex)
	index := layoutIndex{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, platform := range slices.Sorted(maps.Keys(programs)) {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("packing the image: platform %q: want linux/amd64", platform)
		}
		g, err := below(platform)
		if err != nil {
			return nil, err
		}
		p, err := packProgram(programs[platform], platform, opt, g)
		if err != nil {
			return nil, err
		}
		out.images = append(out.images, p)
		out.parts = append(out.parts, g.parts...)
		index.Manifests = append(index.Manifests, layoutEntry{
			MediaType: types.OCIManifestSchema1, Digest: p.digest, Size: len(p.manifest),
			Platform: &v1.Platform{Architecture: arch, OS: system},
		})
	}
	var err error
	if out.manifest, err = json.Marshal(index); err != nil {
		return nil, fmt.Errorf("packing the image: %w", err)
	}
	out.digest = store.DigestOf(out.manifest)
	return out, nil
}

func packProgram(program []byte, platform string, opt ProgramOptions, g *ground) (*Packed, error) {
	layer, diff, err := packLayer(func(tw *tar.Writer) error {
		if dir := strings.Trim(path.Clean("/"+opt.Dir), "/"); dir != "" {
			if err := packParents(tw, dir); err != nil {
				return err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: opt.Path, Size: int64(len(program)), Mode: 0o755, Format: tar.FormatPAX}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		_, err := tw.Write(program)
		return err
	})
	if err != nil {
		return nil, err
	}
	config := map[string]any{"Entrypoint": []string{"/" + opt.Path}, "User": opt.User, "WorkingDir": path.Clean("/" + opt.Dir), "Labels": opt.Labels}
	if env := environment(g, opt); len(env) > 0 {
		config["Env"] = env
	}
	return g.assemble(layer, diff, platform, config, nil)
}

// environment returns the variables of what lies below, those of the program in
// their place, and the program's directory in the path where there is one.
func environment(g *ground, opt ProgramOptions) []string {
	var out []string
	has := func(list []string, variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	}
	for _, v := range g.env {
		if !has(opt.Env, v) && !has(out, v) {
			out = append(out, v)
		}
	}
	out = append(out, opt.Env...)
	own := "/" + path.Dir(opt.Path)
	for i, v := range out {
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok && !slices.Contains(strings.Split(dirs, ":"), own) {
			out[i] = "PATH=" + own + ":" + dirs
		}
	}
	return out
}

// Digest returns the digest of the index.
func (p *PackedIndex) Digest() string { return p.digest }

// WriteLayout adds the image to the OCI layout in dir as [Packed.WriteLayout]
// does. What lies below is copied there as it is, verified.
func (p *PackedIndex) WriteLayout(ctx context.Context, dir, tag string) error {
	blobs := map[string][]byte{p.digest: p.manifest}
	for _, image := range p.images {
		maps.Copy(blobs, image.blobs())
	}
	entry := layoutEntry{MediaType: types.OCIImageIndex, Digest: p.digest, Size: len(p.manifest)}
	return addToLayout(dir, tag, entry, func() error {
		for _, b := range p.parts {
			if err := copyBlob(ctx, dir, p.below, b); err != nil {
				return err
			}
		}
		return writeBlobs(dir, blobs)
	})
}

// copyBlob copies a part into a layout that does not hold it.
func copyBlob(ctx context.Context, dir string, from origin, p part) error {
	name, err := blobPath(p.digest)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	if intact(to, p.digest) {
		return nil
	}
	r, err := whole(ctx, from, p)
	if err != nil {
		return err
	}
	return errors.Join(writeFile(to, r), r.Close())
}

// Close releases what lies below: the image cannot be written afterwards.
func (p *PackedIndex) Close() error {
	if p.closer == nil {
		return nil
	}
	return p.closer.Close()
}
