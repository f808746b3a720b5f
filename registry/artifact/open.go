package artifact

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
)

// Artifact is one that was read.
type Artifact struct {
	Name   string // its reference in full
	Digest string // of its manifest
	Meta   Meta   // as it claims
	Files  *filetree.Tree
}

// Tree returns the directory that a rendered tree lies in, and whether it is the
// whole of it, not what some clusters get. Files that no tree is among are one at
// the top.
func (a *Artifact) Tree() (dir string, whole bool) {
	dir, depth := ".", -1
	for name := range a.Files.All() {
		if n := strings.Count(name, "/"); path.Base(name) == layout.ClustersFile && (depth < 0 || n < depth) {
			dir, depth = path.Dir(name), n
		}
	}
	_, whole = a.Files.Get(path.Join(dir, ".gitattributes"))
	return dir, whole
}

// limits bounds what a stranger's artifact can make the reader do.
type limits struct {
	layer   int64 // bytes as they are stored
	content int64 // bytes of all files
	file    int64 // bytes of one file
	entries int
	path    int // bytes of a path
	depth   int // directories on a path
}

func defaults() limits {
	return limits{layer: 256 << 20, content: 1 << 30, file: 64 << 20, entries: 500_000, path: 4096, depth: 100}
}

// Operators returns the operators ("namespace/package") that the tree has
// manifests of, sorted.
func (a *Artifact) Operators() []string {
	names := map[string]bool{}
	for name := range a.inTree() {
		if operator, is := layout.Operator(name); is && strings.HasSuffix(name, ".yaml") {
			names[operator] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Layout returns where what clusters get lies in the tree.
func (a *Artifact) Layout() (*layout.Tree, error) {
	top, _ := a.Tree()
	return layout.Read(a.inTree(), func(name string) ([]byte, bool) { return a.Files.Get(path.Join(top, name)) })
}

// inTree yields the paths of the tree's files as seen from it.
func (a *Artifact) inTree() iter.Seq[string] {
	top, _ := a.Tree()
	return func(yield func(string) bool) {
		for name := range a.Files.Names() {
			rest, inside := strings.CutPrefix(name, top+"/")
			if (inside || top == ".") && !yield(rest) {
				return
			}
		}
	}
}

// Clusters returns the clusters that the tree is for, sorted; none where it has no list
// of them that can be read.
func (a *Artifact) Clusters() []string {
	var names []string
	if lies, err := a.Layout(); err == nil {
		for _, c := range lies.Clusters {
			names = append(names, c.Name)
		}
	}
	return names
}

// Open reads the artifact that ref names ("oci://registry/name:tag",
// "oci:directory", …), all of it and verified, once admit has no objection to its
// digest; nil admits everything. It is refused where an engine that
// takes it could see something else than what is returned: where it has several
// layers, links, or a file twice.
func Open(ctx context.Context, c *registry.Client, ref string, admit func(digest string) error) (*Artifact, error) {
	im, err := c.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { _ = im.Close() }() // only read from
	if admit != nil {
		if err := admit(im.Digest()); err != nil {
			return nil, err
		}
	}
	files, err := layer(ctx, im, defaults())
	var damaged *store.CorruptError
	if errors.As(err, &damaged) { // gone from the store by now
		files, err = layer(ctx, im, defaults())
	}
	if err != nil {
		return nil, named(im, err)
	}
	return &Artifact{Name: im.Name(), Digest: im.ManifestDigest(), Meta: metaOf(im.Annotations()), Files: files}, nil
}

// named returns err with the artifact that it is about.
func named(im *registry.Image, err error) error {
	var known *registry.Error
	if errors.As(err, &known) {
		return err
	}
	return &registry.Error{Image: im.Name(), Err: err}
}

// layer reads the only layer of an artifact.
func layer(ctx context.Context, im *registry.Image, lim limits) (*filetree.Tree, error) {
	layers := im.Layers()
	if len(layers) != 1 || im.Digest() != im.ManifestDigest() {
		return nil, fmt.Errorf("no artifact of a tree: want one manifest with one layer, not %d", len(layers))
	}
	l := layers[0]
	if l.Size > lim.layer {
		return nil, fmt.Errorf("layer %s: %d bytes: at most %d are taken", l.Digest, l.Size, lim.layer)
	}
	if err := im.Fetch(ctx); err != nil {
		return nil, err
	}
	r, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read to its end or given up
	return read(r, lim)
}

// read returns the files of a tar stream, which is read to its end.
func read(r io.Reader, lim limits) (*filetree.Tree, error) {
	whole := &capped{r: r, left: lim.content + int64(lim.entries)*3*512}
	in := tar.NewReader(whole)
	x := &unpacking{lim: lim, tree: filetree.New(), dirs: map[string]bool{}}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := x.entry(h, in); err != nil {
			return nil, fmt.Errorf("entry %q: %w", inert.Cut(h.Name, maxShown), err)
		}
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return nil, err
	}
	return x.tree, nil
}

const maxShown = 200 // bytes of a path that a message quotes

// unpacking takes in the entries of an archive.
type unpacking struct {
	lim     limits
	tree    *filetree.Tree
	dirs    map[string]bool
	entries int
	content int64
}

func (x *unpacking) entry(h *tar.Header, r io.Reader) error {
	if x.entries++; x.entries > x.lim.entries {
		return fmt.Errorf("more than %d entries", x.lim.entries)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch {
	case len(name) > x.lim.path:
		return fmt.Errorf("a path of more than %d bytes", x.lim.path)
	case strings.Count(name, "/") >= x.lim.depth:
		return fmt.Errorf("more than %d directories deep", x.lim.depth)
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
		return nil
	}
	if err := inert.Name(name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return x.directory(name)
	case tar.TypeReg:
		return x.file(name, h.Size, r)
	default:
		return errors.New("neither a file nor a directory: what engines make of it differs")
	}
}

// directory notes one, which must not be a file too.
func (x *unpacking) directory(name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("%q is not a valid path", inert.Cut(name, maxShown))
	}
	if _, is := x.tree.Get(name); is {
		return errors.New("both a file and a directory")
	}
	x.dirs[name] = true
	return nil
}

func (x *unpacking) file(name string, size int64, r io.Reader) error {
	if size > x.lim.file {
		return fmt.Errorf("%d bytes: at most %d are taken", size, x.lim.file)
	}
	if x.content += size; x.content > x.lim.content {
		return fmt.Errorf("more than %d bytes of files", x.lim.content)
	}
	if x.dirs[name] {
		return errors.New("both a file and a directory")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return x.tree.Add(name, data)
}

// capped ends a stream that is too long.
type capped struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		if n, err := c.r.Read(p[:min(len(p), 1)]); n == 0 {
			return 0, err
		}
		return 0, errors.New("too large: it expands beyond what is taken")
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
