package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

const (
	maxArchiveFiles = 100_000
	maxArchiveLinks = 10
)

// tarFiles gives access to the files in a tar file by their paths.
type tarFiles struct {
	file *os.File
	temp bool // the file is a decompressed copy, which Close removes
	at   map[string]span
	link map[string]string // link → target; docker save writes symbolic and hard links for shared layers
}

type span struct{ off, size int64 }

// openTar opens a tar file and indexes its entries. If the file is compressed or not on disk, it
// reads an uncompressed temporary copy.
func (c *Client) openTar(ctx context.Context, name string) (*tarFiles, error) {
	f, err := c.Lookup.openFile(name)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	t := &tarFiles{at: map[string]span{}, link: map[string]string{}}
	in := bufio.NewReader(f)
	head, err := in.Peek(2)
	packed := bytes.Equal(head, []byte{0x1f, 0x8b}) || bytes.Equal(head, []byte{0x28, 0xb5})
	if onDisk, ok := f.(*os.File); ok && !packed {
		t.file = onDisk
	} else {
		defer f.Close()
		t.temp = true
		if t.file, err = c.createTemp("archive-"); err != nil {
			return nil, fmt.Errorf("reading the archive: %w", err)
		}
		err = c.Limits.unpack(ctx, t.file, in)
	}
	if err == nil {
		err = t.index(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the archive: %w", err), t.Close())
	}
	return t, nil
}

// openFile opens a regular file.
func (l Lookup) openFile(name string) (fs.File, error) {
	dir, base, err := l.find(name)
	if err != nil {
		return nil, err
	}
	if base == "" {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	return openRegular(dir, base)
}

// openRegular opens a file. It returns an error if the file is not regular.
func openRegular(fsys fs.FS, name string) (fs.File, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	return f, nil
}

// unpack copies a stream and uncompresses it if necessary. It returns an error if the content
// exceeds the limit for an image.
func (l Limits) unpack(ctx context.Context, to io.Writer, in io.Reader) error {
	r, err := decompress(in)
	if err != nil {
		return err
	}
	defer r.Close()
	limit := l.withDefaults().ImageBytes
	n, err := io.Copy(to, io.LimitReader(store.NewContextReader(ctx, r), limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("larger than %d bytes when decompressed", limit)
	}
	return err
}

// createTemp creates a temporary file in the store or, without a store, in the system's temporary directory.
func (c *Client) createTemp(prefix string) (*os.File, error) {
	if c.Store != nil {
		return c.Store.Temp(prefix)
	}
	return os.CreateTemp("", "quayside-"+prefix)
}

// index records the offset of each file and the target of each link.
func (t *tarFiles) index(ctx context.Context) error {
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tr := tar.NewReader(t.file)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("not a tar file, or a broken one: %w", err)
		}
		if n >= maxArchiveFiles {
			return fmt.Errorf("more than %d entries", maxArchiveFiles)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Clean("/" + h.Name)[1:]
		switch h.Typeflag {
		case tar.TypeReg:
			off, err := t.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			t.at[name] = span{off, h.Size}
			delete(t.link, name)
		case tar.TypeSymlink:
			t.link[name] = path.Clean("/" + path.Join(path.Dir(name), h.Linkname))[1:]
		case tar.TypeLink:
			t.link[name] = path.Clean("/" + h.Linkname)[1:]
		}
	}
}

// open opens the file at path p. It follows links within the archive.
func (t *tarFiles) open(p string) (io.ReadCloser, error) {
	name := path.Clean("/" + p)[1:]
	for range maxArchiveLinks {
		if s, ok := t.at[name]; ok {
			return io.NopCloser(io.NewSectionReader(t.file, s.off, s.size)), nil
		}
		next, ok := t.link[name]
		if !ok {
			break
		}
		name = next
	}
	return nil, fmt.Errorf("the archive does not contain file %q", p)
}

// Close closes the file and removes it if it is a temporary copy.
func (t *tarFiles) Close() error {
	err := t.file.Close()
	if t.temp {
		err = errors.Join(err, os.Remove(t.file.Name()))
	}
	return err
}

// findTagged returns the image with this tag. Without a tag, the archive must contain a single
// image.
func findTagged(all []dockerManifest, tag string) (dockerManifest, error) {
	var have []string
	for _, m := range all {
		for _, t := range m.RepoTags {
			if tag != "" && sameTag(t, tag) {
				return m, nil
			}
			have = append(have, t)
		}
	}
	switch {
	case len(all) == 0:
		return dockerManifest{}, errors.New("the archive contains no image")
	case tag == "" && len(all) == 1:
		return all[0], nil
	case tag == "":
		return dockerManifest{}, fmt.Errorf("the archive contains %d images: choose one of %s", len(all), joinNames(have))
	default:
		return dockerManifest{}, fmt.Errorf("image %q not found (available: %s)", tag, joinNames(have))
	}
}

// sameTag reports whether two references are equal after adding their default parts.
func sameTag(a, b string) bool {
	x, errX := parseRemote(a, a)
	y, errY := parseRemote(b, b)
	return errX == nil && errY == nil && x == y
}

// archiveLayer returns a layer of a docker archive. diff is the digest of the uncompressed layer. Reading
// the layer verifies this digest.
func archiveLayer(image string, f *tarFiles, path, diff string) Layer {
	return Layer{
		Digest: diff, Size: -1, image: image, diff: diff,
		open: func(context.Context) (*store.Verifier, error) {
			if !imageref.IsDigest(diff) {
				return nil, errors.New("only sha256 is supported")
			}
			r, err := f.open(path)
			if err != nil {
				return nil, err
			}
			return store.NewUnverified(r), nil
		},
	}
}

// dockerManifest is an entry of manifest.json in a docker archive.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// openDockerArchive opens an archive written by docker save. The configuration contains the digests
// of the uncompressed layers, which are used to verify the layers. The digest of the configuration is the
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
		return fmt.Errorf("configuration %s lists %d layers, but the archive has %d (limit: %d)", m.Config, len(diffs), len(m.Layers), lim.Layers)
	}
	im.labels = labels
	for i, path := range m.Layers {
		im.layers = append(im.layers, archiveLayer(im.name, archive, path, diffs[i]))
	}
	return nil
}
