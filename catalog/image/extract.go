package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/registry"
)

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	maxLinks = 16
)

// extract reads all layers and returns the files below dirs. Where one of
// these is a symbolic link, the layers are read again for what it names.
func (im *Image) extract(ctx context.Context, dirs []string) (*tree, error) {
	if err := im.from.Fetch(ctx); err != nil {
		return nil, err
	}
	wanted, moved := slices.Clone(dirs), map[string]string{}
	for range maxLinks {
		t, err := im.pass(ctx, wanted)
		if err != nil {
			return nil, err
		}
		again := false
		for i, dir := range dirs {
			real, err := t.follow(wanted[i])
			if err != nil {
				return nil, errors.Join(im.errorf("directory %q: %w", "/"+dir, err), t.spool.close())
			}
			again = again || real != wanted[i]
			wanted[i], moved[dir] = real, real
		}
		if !again {
			t.moved = moved
			if err := t.resolve(wanted); err != nil {
				return nil, errors.Join(im.errorf("%w", err), t.spool.close())
			}
			return t, nil
		}
		if err := t.spool.close(); err != nil {
			return nil, err
		}
	}
	return nil, im.errorf("directory %q: too many symbolic links", "/"+dirs[0])
}

// pass reads all layers once.
func (im *Image) pass(ctx context.Context, wanted []string) (*tree, error) {
	x := &extraction{limit: im.limit, wanted: wanted, tree: newTree(newSpool(im.limit.Memory, im.temp)), left: im.limit.Scanned}
	for i, l := range im.from.Layers() {
		x.layer = i
		if err := x.read(ctx, l); err != nil {
			return nil, errors.Join(im.blame(l, err), x.tree.spool.close())
		}
	}
	if err := x.tree.spool.flush(); err != nil {
		return nil, errors.Join(im.errorf("%w", err), x.tree.spool.close())
	}
	return x.tree, nil
}

// blame says which layer err is about.
func (im *Image) blame(l registry.Layer, err error) error {
	var known *registry.Error
	if errors.As(err, &known) {
		return err
	}
	return im.errorf("layer %s: %w", l.Digest, err)
}

// extraction applies layers to a tree, one after the other.
type extraction struct {
	limit   Limits
	wanted  []string
	tree    *tree
	layer   int   // the number of the one being read
	left    int64 // uncompressed bytes that may still be read
	entries int
	kept    int64
	cleared map[string]bool // whiteouts done in this layer
}

// read applies one layer. It is read to its end, for only there it is known to
// be what its digest names.
func (x *extraction) read(ctx context.Context, l registry.Layer) error {
	r, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	counted := &meter{ctx: ctx, r: r, left: x.limit.layerCap(x.left, l.Size)}
	before := counted.left
	x.cleared = map[string]bool{}
	err = x.apply(tar.NewReader(counted))
	if !errors.Is(err, errTooLarge) {
		// What follows the last entry, and the verdict: a fault of the stored
		// bytes explains any other.
		_, under := io.Copy(io.Discard, counted)
		if under != nil && (err == nil || !errors.Is(under, errTooLarge)) {
			err = under
		}
	}
	x.left -= before - counted.left
	return err
}

// apply reads the entries of a tar stream.
func (x *extraction) apply(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the tar stream: %w", err)
		}
		if x.entries++; x.entries > x.limit.Entries {
			return fmt.Errorf("more than %d entries in the image", x.limit.Entries)
		}
		if err := x.entry(h, tr); err != nil {
			return fmt.Errorf("entry %q: %w", inert.Cut(h.Name, maxShown), err)
		}
	}
}

// entry applies one entry.
func (x *extraction) entry(h *tar.Header, r io.Reader) error {
	if len(h.Name) > x.limit.Path || len(h.Linkname) > x.limit.Path {
		return fmt.Errorf("a path of more than %d bytes", x.limit.Path)
	}
	name, err := clean(h.Name)
	if err != nil {
		return err
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteout) {
		return x.whiteout(path.Dir(name), base)
	}
	if name == "." || !x.relevant(name) {
		return nil
	}
	if err := inert.Name(name); err != nil {
		return err
	}
	if strings.Count(name, "/") >= x.limit.Depth {
		return fmt.Errorf("more than %d directories deep", x.limit.Depth)
	}
	if x.tree.count >= x.limit.Files {
		return fmt.Errorf("more than %d files", x.limit.Files)
	}
	return x.put(name, h, r)
}

// put adds one entry to the tree.
func (x *extraction) put(name string, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		x.tree.mkdir(name, x.layer)
	case tar.TypeReg, tar.TypeGNUSparse:
		n, err := x.file(h, r)
		if err != nil {
			return err
		}
		x.tree.put(name, n)
	case tar.TypeSymlink:
		x.tree.put(name, &node{layer: x.layer, link: h.Linkname, isLink: true})
	case tar.TypeLink:
		return x.hardLink(name, h.Linkname)
	default: // devices, pipes: nobody reads them, but they take the place of what was there
		x.tree.remove(name)
	}
	return nil
}

// file copies an entry's content.
func (x *extraction) file(h *tar.Header, r io.Reader) (*node, error) {
	if h.Size > x.limit.File {
		return nil, fmt.Errorf("%d bytes: at most %d are taken", h.Size, x.limit.File)
	}
	if x.kept += h.Size; x.kept > x.limit.Kept {
		return nil, fmt.Errorf("more than %d bytes of files", x.limit.Kept)
	}
	off, err := x.tree.spool.append(r, h.Size)
	if err != nil {
		return nil, err
	}
	return &node{layer: x.layer, off: off, size: h.Size}, nil
}

// hardLink gives a file a second name. What lies outside of the wanted
// directories is not kept, so nothing there can be named.
func (x *extraction) hardLink(name, target string) error {
	to, err := clean(target)
	if err != nil {
		return fmt.Errorf("hard link: %w", err)
	}
	n := x.tree.find(to)
	if n == nil || n.isDir() {
		if !x.inside(to) {
			return fmt.Errorf("hard link to %q, which is outside of %s", inert.Cut(target, maxShown), x.where())
		}
		return fmt.Errorf("hard link to %q, which is no file", inert.Cut(target, maxShown))
	}
	same := *n
	same.layer = x.layer
	x.tree.put(name, &same)
	return nil
}

// whiteout removes what lower layers had.
func (x *extraction) whiteout(dir, base string) error {
	name := dir
	if base != opaque {
		name = path.Join(dir, strings.TrimPrefix(base, whiteout))
	}
	if base != opaque && (name == dir || strings.HasPrefix(base, ".wh..wh.")) {
		return nil // aufs' own notes, which remove nothing
	}
	key := base + "\x00" + name
	if !x.relevant(name) || x.cleared[key] {
		return nil
	}
	x.cleared[key] = true
	x.tree.clear(name, x.layer, base == opaque)
	return nil
}

// inside reports whether name lies in a wanted directory or is one.
func (x *extraction) inside(name string) bool {
	return slices.ContainsFunc(x.wanted, func(dir string) bool { return within(name, dir) })
}

// relevant reports whether an entry of that name changes what is below a
// wanted directory.
func (x *extraction) relevant(name string) bool {
	return name == "." || x.inside(name) ||
		slices.ContainsFunc(x.wanted, func(dir string) bool { return within(dir, name) })
}

func (x *extraction) where() string {
	return "/" + strings.Join(x.wanted, " and /")
}

// within reports whether name is dir or lies below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

var errTooLarge = errors.New("too large")

// meter ends a stream that is too long, or no longer asked for.
type meter struct {
	ctx  context.Context //nolint:containedctx // lives no longer than the call it belongs to
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	if m.left <= 0 {
		return 0, fmt.Errorf("%w: it grows beyond what an honest layer of its size holds, or the image beyond its limit", errTooLarge)
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// maxShown is how much of a path a message quotes, in bytes.
const maxShown = 200
