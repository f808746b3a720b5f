package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// PackOptions are the options of [Pack].
type PackOptions struct {
	Labels      map[string]string // labels in the image configuration
	Annotations map[string]string // annotations of the manifest
	Prefix      string            // directory for the files in the image, such as "configs"; default: its root
	Platform    string            // default: "linux/amd64"
}

// Packed is an image or artifact in memory: a manifest, a configuration and one compressed layer.
type Packed struct {
	manifest, config, layer       []byte
	digest, configDigest, layerID string
}

// Pack builds an image with one gzip layer from the files of fsys. The same files give the same
// bytes: entries are sorted, owned by root and dated 1970, with the modes 0644 and 0755. Symbolic
// links and special files are an error.
func Pack(fsys fs.FS, opt PackOptions) (*Packed, error) {
	layer, diff, err := packLayer(func(tw *tar.Writer) error { return packFiles(tw, fsys, opt.Prefix) })
	if err != nil {
		return nil, err
	}
	system, arch, _ := strings.Cut(cmp.Or(opt.Platform, "linux/amd64"), "/")
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": system,
		"config":  map[string]any{"Labels": opt.Labels},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{diff}},
		"history": []any{map[string]any{"created_by": "quayside"}},
	})
	if err != nil {
		return nil, fmt.Errorf("packing the image: %w", err)
	}
	return Artifact{
		ConfigType: string(types.OCIConfigJSON), Config: config,
		LayerType: string(types.OCILayer), Layer: layer, Annotations: opt.Annotations,
	}.Pack()
}

// Artifact is the content of an OCI artifact with one blob. An artifact is not an image that can run.
type Artifact struct {
	ConfigType  string
	Config      []byte
	LayerType   string
	Layer       []byte
	Annotations map[string]string // annotations of the manifest
}

// Pack builds the manifest of the artifact. The same artifact gives the same bytes.
func (a Artifact) Pack() (*Packed, error) {
	p := &Packed{
		config: a.Config, configDigest: store.DigestOf(a.Config),
		layer: a.Layer, layerID: store.DigestOf(a.Layer),
	}
	manifest := map[string]any{
		"schemaVersion": 2,
		"mediaType":     types.OCIManifestSchema1,
		"config":        descriptorFields(a.ConfigType, p.config, p.configDigest),
		"layers":        []any{descriptorFields(a.LayerType, p.layer, p.layerID)},
	}
	if len(a.Annotations) > 0 {
		manifest["annotations"] = a.Annotations
	}
	var err error
	if p.manifest, err = json.Marshal(manifest); err != nil {
		return nil, fmt.Errorf("packing the image: %w", err)
	}
	p.digest = store.DigestOf(p.manifest)
	return p, nil
}

// Digest returns the digest of the manifest.
func (p *Packed) Digest() string { return p.digest }

// Size returns the size of the manifest, the configuration and the layer together, in bytes.
func (p *Packed) Size() int64 { return int64(len(p.manifest) + len(p.config) + len(p.layer)) }

// PackLayer returns the files of fsys as a compressed layer, like the layer of [Pack]. diff is the digest
// of the uncompressed layer.
func PackLayer(fsys fs.FS) (layer []byte, diff string, err error) {
	return packLayer(func(tw *tar.Writer) error { return packFiles(tw, fsys, "") })
}

func descriptorFields(mediaType string, data []byte, digest string) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(data)}
}

// packLayer calls write with a tar stream, and returns what was written as a compressed layer. diff is the
// digest of the uncompressed layer.
func packLayer(write func(*tar.Writer) error) (layer []byte, diff string, err error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	h := sha256.New()
	tw := tar.NewWriter(io.MultiWriter(zw, h))
	if err := errors.Join(write(tw), tw.Close(), zw.Close()); err != nil {
		return nil, "", fmt.Errorf("packing the image: %w", err)
	}
	return buf.Bytes(), "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func packFiles(tw *tar.Writer, fsys fs.FS, prefix string) error {
	if prefix != "" && !fs.ValidPath(prefix) {
		return fmt.Errorf("prefix %q: must be a path without a leading slash", prefix)
	}
	if err := packParents(tw, prefix); err != nil {
		return err
	}
	return fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case e.IsDir():
			return packDir(tw, path.Join(prefix, name))
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory", name)
		default:
			return packFile(tw, fsys, name, path.Join(prefix, name))
		}
	})
}

func packParents(tw *tar.Writer, prefix string) error {
	if prefix == "" || prefix == "." {
		return nil
	}
	if err := packParents(tw, path.Dir(prefix)); err != nil {
		return err
	}
	return packDir(tw, prefix)
}

func packDir(tw *tar.Writer, name string) error {
	return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX})
}

func packFile(tw *tar.Writer, fsys fs.FS, from, to string) error {
	f, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // ignore the error: the file was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Size: info.Size(), Mode: 0o644, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}
