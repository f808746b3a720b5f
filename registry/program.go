package registry

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// ProgramOptions says what image a program becomes.
type ProgramOptions struct {
	Name   string            // "quayside-report": its file at the root of the image
	User   string            // "65532:65532": who runs it
	Labels map[string]string // of the images' configurations
}

// PackedIndex is an image for several platforms. It is held in memory.
type PackedIndex struct {
	images   []*Packed
	manifest []byte
	digest   string
}

// PackProgram makes images that hold one program and nothing else, no shell
// and no library, one for each platform ("linux/amd64"), and the index that
// lists them. The program is the entrypoint. The same programs and options give
// the same bytes.
func PackProgram(programs map[string][]byte, opt ProgramOptions) (*PackedIndex, error) {
	if !fs.ValidPath(opt.Name) || strings.Contains(opt.Name, "/") || len(programs) == 0 {
		return nil, fmt.Errorf("packing the image: %d programs named %q", len(programs), opt.Name)
	}
	out := new(PackedIndex)
	index := layoutIndex{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, platform := range slices.Sorted(maps.Keys(programs)) {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("packing the image: platform %q: want linux/amd64", platform)
		}
		p, err := packProgram(programs[platform], platform, opt)
		if err != nil {
			return nil, err
		}
		out.images = append(out.images, p)
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

func packProgram(program []byte, platform string, opt ProgramOptions) (*Packed, error) {
	layer, diff, err := packLayer(func(tw *tar.Writer) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: opt.Name, Size: int64(len(program)), Mode: 0o755, Format: tar.FormatPAX}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		_, err := tw.Write(program)
		return err
	})
	if err != nil {
		return nil, err
	}
	config := map[string]any{"Entrypoint": []string{"/" + opt.Name}, "User": opt.User, "WorkingDir": "/", "Labels": opt.Labels}
	return assemble(layer, diff, platform, config, nil)
}

// Digest returns the digest of the index.
func (p *PackedIndex) Digest() string { return p.digest }

// WriteLayout adds the image to the OCI layout in dir as [Packed.WriteLayout]
// does.
func (p *PackedIndex) WriteLayout(dir, tag string) error {
	blobs := map[string][]byte{p.digest: p.manifest}
	for _, image := range p.images {
		maps.Copy(blobs, image.blobs())
	}
	return writeLayout(dir, tag, blobs, layoutEntry{MediaType: types.OCIImageIndex, Digest: p.digest, Size: len(p.manifest)})
}
