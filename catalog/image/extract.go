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

// extract reads all layers and returns the files below dirs. If dirs are symbolic links, it
// reads the layers again for their targets.
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

// readLayers reads all layers once.
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

// wrapLayerError adds the layer to err.
func (im *Image) wrapLayerError(l oci.Layer, err error) error {
	var known *oci.Error
	if errors.As(err, &known) {
		return err
	}
	return im.errorf("layer %s: %w", l.Digest, err)
}

// extraction applies layers to a tree in order.
type extraction struct {
	limit   Limits
	wanted  []string
	tree    *tree
	layer   int   // number of the current layer
	left    int64 // remaining uncompressed bytes
	entries int
	kept    int64
	cleared map[string]bool // entries removed by whiteouts of the current layer
}

// applyLayer applies one layer. It reads the layer to its end, because the digest is verified there.
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
		// Read the rest to verify the digest: damage of the stored bytes may have caused the
		// other error.
		_, readErr := io.Copy(io.Discard, counted)
		if readErr != nil && (err == nil || !errors.Is(readErr, errTooLarge)) {
			err = readErr
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
		if err := x.applyEntry(h, tr); err != nil {
			return fmt.Errorf("entry %q: %w", sanitize.Truncate(h.Name, maxShown), err)
		}
	}
}

// applyEntry applies one entry of a layer.
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
	default: // devices and pipes are not stored, but replace earlier entries
		x.tree.remove(name)
	}
	return nil
}

// storeFile stores the content of an entry.
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

// hardLink adds another name of a file. The target must be in a wanted directory, because other
// files are not stored.
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

// applyWhiteout removes entries of lower layers. base is the name of the whiteout file in dir.
func (x *extraction) applyWhiteout(dir, base string) error {
	name := dir
	if base != opaque {
		name = path.Join(dir, strings.TrimPrefix(base, whiteout))
	}
	if base != opaque && (name == dir || strings.HasPrefix(base, ".wh..wh.")) {
		return nil // internal files of aufs
	}
	key := base + "\x00" + name
	if !x.isRelevant(name) || x.cleared[key] {
		return nil
	}
	x.cleared[key] = true
	x.tree.clear(name, x.layer, base == opaque)
	return nil
}

// isWanted reports whether name is a wanted directory or below one.
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

// limitedReader limits a stream and stops it when the context is canceled.
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

// maxShown is the maximum number of bytes of a path in messages.
const maxShown = 200
