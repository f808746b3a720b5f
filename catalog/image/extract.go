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

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/sanitize"
)

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	maxLinks = 16
)

// extract reads all layers and returns the files below dirs, which are paths in the image. If one
// of dirs is a symbolic link, it reads the layers again for the target of the link.
func (im *Image) extract(ctx context.Context, dirs []string) (*tree, error) {
	if err := im.from.Fetch(ctx); err != nil {
		return nil, err
	}
	wanted, moved := slices.Clone(dirs), map[string]string{}
	for range maxLinks {
		t, err := im.readLayers(ctx, wanted)
		if err != nil {
			return nil, err
		}
		again := false
		for i, dir := range dirs {
			real, err := t.followLinks(wanted[i])
			if err != nil {
				return nil, errors.Join(im.errorf("directory %q: %w", "/"+dir, err), t.spool.close())
			}
			again = again || real != wanted[i]
			wanted[i], moved[dir] = real, real
		}
		if !again {
			t.resolved = moved
			if err := t.resolveLinks(wanted); err != nil {
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

// readLayers reads all layers once and keeps the files below the wanted directories.
func (im *Image) readLayers(ctx context.Context, wanted []string) (*tree, error) {
	x := &extraction{limit: im.limit, wanted: wanted, tree: newTree(newSpool(im.limit.Memory, im.temp)), left: im.limit.Scanned}
	for i, l := range im.from.Layers() {
		x.layer = i
		if err := x.applyLayer(ctx, l); err != nil {
			return nil, errors.Join(im.wrapLayerError(l, err), x.tree.spool.close())
		}
	}
	if err := x.tree.spool.flush(); err != nil {
		return nil, errors.Join(im.errorf("%w", err), x.tree.spool.close())
	}
	return x.tree, nil
}

// wrapLayerError adds the image and the digest of the layer to err.
func (im *Image) wrapLayerError(l oci.Layer, err error) error {
	var known *oci.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return im.errorf("layer %s: %w", l.Digest, err)
}

// extraction is the state of applying layers to a tree, in order.
type extraction struct {
	limit   Limits
	wanted  []string
	tree    *tree
	layer   int   // index of the current layer
	left    int64 // uncompressed bytes that may still be read
	entries int
	kept    int64
	cleared map[string]bool // paths that whiteouts of the current layer removed
}

// applyLayer applies one layer. It reads the layer to its end, because only then is the digest
// verified.
func (x *extraction) applyLayer(ctx context.Context, l oci.Layer) error {
	r, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	counted := &limitedReader{ctx: ctx, r: r, left: x.limit.layerCap(x.left, l.Size)}
	before := counted.left
	x.cleared = map[string]bool{}
	err = x.apply(tar.NewReader(counted))
	if !errors.Is(err, errTooLarge) {
		// Read the rest to verify the digest. If the digest is wrong, the layer is damaged, and the damage has
		// caused err. In this case, return the digest error instead.
		_, readErr := io.Copy(io.Discard, counted)
		if readErr != nil && (err == nil || !errors.Is(readErr, errTooLarge)) {
			err = readErr
		}
	}
	x.left -= before - counted.left
	return err
}

// apply applies all entries of a tar stream.
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
		if err := x.applyEntry(h, tr); err != nil {
			return fmt.Errorf("entry %q: %w", sanitize.Truncate(h.Name, maxShown), err)
		}
	}
}

// applyEntry applies one entry of a tar stream.
func (x *extraction) applyEntry(h *tar.Header, r io.Reader) error {
	if len(h.Name) > x.limit.Path || len(h.Linkname) > x.limit.Path {
		return fmt.Errorf("path longer than %d bytes", x.limit.Path)
	}
	name, err := cleanPath(h.Name)
	if err != nil {
		return err
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteout) {
		return x.applyWhiteout(path.Dir(name), base)
	}
	if name == "." || !x.isRelevant(name) {
		return nil
	}
	if err := sanitize.CheckName(name); err != nil {
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

// put adds an entry to the tree.
func (x *extraction) put(name string, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		x.tree.mkdir(name, x.layer)
	case tar.TypeReg, tar.TypeGNUSparse:
		n, err := x.storeFile(h, r)
		if err != nil {
			return err
		}
		x.tree.put(name, n)
	case tar.TypeSymlink:
		x.tree.put(name, &node{layer: x.layer, link: h.Linkname, isLink: true})
	case tar.TypeLink:
		return x.hardLink(name, h.Linkname)
	default: // devices and pipes are ignored, but remove an earlier entry with the same name
		x.tree.remove(name)
	}
	return nil
}

// storeFile stores the content of a file and returns its node.
func (x *extraction) storeFile(h *tar.Header, r io.Reader) (*node, error) {
	if h.Size > x.limit.File {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", h.Size, x.limit.File)
	}
	if x.kept += h.Size; x.kept > x.limit.Kept {
		return nil, fmt.Errorf("the files exceed the limit of %d bytes", x.limit.Kept)
	}
	off, err := x.tree.spool.append(r, h.Size)
	if err != nil {
		return nil, err
	}
	return &node{layer: x.layer, off: off, size: h.Size}, nil
}

// hardLink adds name as another name of the file target. target must be below a wanted directory,
// because the content of other files is not kept.
func (x *extraction) hardLink(name, target string) error {
	to, err := cleanPath(target)
	if err != nil {
		return fmt.Errorf("hard link: %w", err)
	}
	n := x.tree.find(to)
	if n == nil || n.isDir() {
		if !x.isWanted(to) {
			return fmt.Errorf("hard link to %q, which is outside of %s", sanitize.Truncate(target, maxShown), x.position())
		}
		return fmt.Errorf("hard link to %q, which is not a file", sanitize.Truncate(target, maxShown))
	}
	same := *n
	same.layer = x.layer
	x.tree.put(name, &same)
	return nil
}

// applyWhiteout removes the entries of lower layers that a whiteout file in dir hides. base is the name of this file.
func (x *extraction) applyWhiteout(dir, base string) error {
	name := dir
	if base != opaque {
		name = path.Join(dir, strings.TrimPrefix(base, whiteout))
	}
	if base != opaque && (name == dir || strings.HasPrefix(base, ".wh..wh.")) {
		return nil // internal file of aufs, not a whiteout
	}
	key := base + "\x00" + name
	if !x.isRelevant(name) || x.cleared[key] {
		return nil
	}
	x.cleared[key] = true
	x.tree.clear(name, x.layer, base == opaque)
	return nil
}

// isWanted reports whether name is one of the wanted directories or below one.
func (x *extraction) isWanted(name string) bool {
	return slices.ContainsFunc(x.wanted, func(dir string) bool { return filetree.Within(name, dir) })
}

// isRelevant reports whether an entry at name can affect files below a wanted directory.
func (x *extraction) isRelevant(name string) bool {
	return name == "." || x.isWanted(name) ||
		slices.ContainsFunc(x.wanted, func(dir string) bool { return filetree.Within(dir, name) })
}

func (x *extraction) position() string {
	return "/" + strings.Join(x.wanted, " and /")
}

var errTooLarge = errors.New("too large")

// limitedReader limits the bytes that can be read from a stream, and stops when the context is
// canceled.
type limitedReader struct {
	ctx  context.Context //nolint:containedctx // lives no longer than one call
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (m *limitedReader) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	if m.left <= 0 {
		return 0, fmt.Errorf("%w: suspicious compression ratio, or the image exceeds its limit", errTooLarge)
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// maxShown is the maximum number of bytes of a path in a message.
const maxShown = 200
