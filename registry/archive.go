package registry

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

const (
	maxArchiveFiles = 100_000
	maxArchiveLinks = 10
)

// tarFiles gives access to the files of a tar file by their paths.
type tarFiles struct {
	file *os.File
	temp bool // the file is a decompressed copy, and ours to remove
	at   map[string]span
	link map[string]string // symbolic and hard links: docker save shares layers so
}

type span struct{ off, size int64 }

// openTar indexes a tar file. One that is compressed, or of [Client.Files], is
// copied to a temporary file first, uncompressed.
func (c *Client) openTar(ctx context.Context, name string) (*tarFiles, error) {
	f, err := c.openFile(name)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	t := &tarFiles{at: map[string]span{}, link: map[string]string{}}
	in := bufio.NewReader(f)
	head, err := in.Peek(2)
	packed := bytes.Equal(head, []byte{0x1f, 0x8b}) || bytes.Equal(head, []byte{0x28, 0xb5})
	if on, disk := f.(*os.File); disk && !packed {
		t.file = on
	} else {
		defer f.Close()
		t.temp = true
		if t.file, err = c.temp("archive-"); err != nil {
			return nil, fmt.Errorf("reading the archive: %w", err)
		}
		err = c.unpack(ctx, t.file, in)
	}
	if err == nil {
		err = t.index(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the archive: %w", err), t.Close())
	}
	return t, nil
}

// openFile opens a regular file, of [Client.Files] or of the disk.
func (c *Client) openFile(name string) (fs.File, error) {
	open := func() (fs.File, error) { return os.Open(c.path(name)) }
	if c.Files != nil {
		open = func() (fs.File, error) { return c.Files.Open(c.within(name)) }
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%q is not a regular file", c.path(name))
	}
	return f, nil
}

// unpack copies what in holds, uncompressed.
func (c *Client) unpack(ctx context.Context, to io.Writer, in io.Reader) error {
	r, err := decompress(in)
	if err != nil {
		return err
	}
	defer r.Close()
	limit := c.Limits.withDefaults().ImageBytes
	n, err := io.Copy(to, io.LimitReader(store.Until(ctx, r), limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("more than %d bytes when decompressed", limit)
	}
	return err
}

// temp makes a temporary file, in the store where there is one.
func (c *Client) temp(prefix string) (*os.File, error) {
	if c.Store != nil {
		return c.Store.Temp(prefix)
	}
	return os.CreateTemp("", "quayside-"+prefix)
}

// index notes where each file begins.
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

// open returns one file, following links within the archive.
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
	return nil, fmt.Errorf("the archive has no file %q", p)
}

// Close releases the file.
func (t *tarFiles) Close() error {
	err := t.file.Close()
	if t.temp {
		err = errors.Join(err, os.Remove(t.file.Name()))
	}
	return err
}

// tagged returns the entry with that tag, or the only one where none is given.
func tagged(all []dockerManifest, tag string) (dockerManifest, error) {
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
		return dockerManifest{}, errors.New("the archive holds no image")
	case tag == "" && len(all) == 1:
		return all[0], nil
	case tag == "":
		return dockerManifest{}, fmt.Errorf("the archive holds %d images: say which (%s)", len(all), listed(have))
	default:
		return dockerManifest{}, fmt.Errorf("no image tagged %q (have %s)", tag, listed(have))
	}
}

// sameTag compares two references in their full form.
func sameTag(a, b string) bool {
	x, errX := parseRemote(a, a)
	y, errY := parseRemote(b, b)
	return errX == nil && errY == nil && x == y
}

// archiveLayer is a layer whose stored bytes have no digest of their own.
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
