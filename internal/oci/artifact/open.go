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
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/store"
)

// Artifact is an opened artifact.
type Artifact struct {
	Name   string // full reference
	Digest string // digest of the manifest
	Meta   Meta   // values of annotations, which are not verified
	Files  *filetree.Tree
}

// Tree returns the directory with the rendered tree. whole is false if the artifact contains only
// the directories of selected clusters. Without a rendered tree, dir is the root.
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

// limits bounds the content of an untrusted artifact.
type limits struct {
	layer   int64 // bytes of the layer as stored
	content int64 // bytes of all files together
	file    int64 // bytes of one file
	entries int
	path    int // bytes of a path
	depth   int // nesting depth of directories
}

func defaultLimits() limits {
	return limits{layer: 256 << 20, content: 1 << 30, file: 64 << 20, entries: 500_000, path: 4096, depth: 100}
}

// Operators returns the operators ("namespace/package") that have manifests in the tree, sorted.
func (a *Artifact) Operators() []string {
	names := map[string]bool{}
	for name := range a.treePaths() {
		if operator, is := layout.Operator(name); is && strings.HasSuffix(name, ".yaml") {
			names[operator] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Layout returns the layout of the rendered tree.
func (a *Artifact) Layout() (*layout.Tree, error) {
	top, _ := a.Tree()
	return layout.Read(a.treePaths(), func(name string) ([]byte, bool) { return a.Files.Get(path.Join(top, name)) })
}

// treePaths yields the paths of the files in the tree, relative to the tree.
func (a *Artifact) treePaths() iter.Seq[string] {
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

// Clusters returns the names of the clusters in the tree, sorted. It returns nil if the list of
// clusters is missing or invalid.
func (a *Artifact) Clusters() []string {
	var names []string
	if listing, err := a.Layout(); err == nil {
		for _, c := range listing.Clusters {
			names = append(names, c.Name)
		}
	}
	return names
}

// Open opens the artifact that ref refers to ("oci://registry/name:tag", "oci:directory", …) and
// verifies its content. It first calls admit with the digest of the artifact: an error of admit
// rejects the artifact. admit may be nil. Open also rejects artifacts that GitOps tools may
// interpret differently: with several layers, links or duplicate files.
func Open(ctx context.Context, c *oci.Client, ref string, admit func(digest string) error) (*Artifact, error) {
	im, err := c.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { _ = im.Close() }() // ignore the error: the image was only read
	if admit != nil {
		if err := admit(im.Digest()); err != nil {
			return nil, err
		}
	}
	files, err := readLayer(ctx, im, defaultLimits())
	var damaged *store.CorruptError
	if errors.As(err, &damaged) { // the store has removed the damaged layer: fetch it again
		files, err = readLayer(ctx, im, defaultLimits())
	}
	if err != nil {
		return nil, wrapArtifactError(im, err)
	}
	return &Artifact{Name: im.Name(), Digest: im.ManifestDigest(), Meta: metaOf(im.Annotations()), Files: files}, nil
}

// wrapArtifactError adds the name of the artifact to err.
func wrapArtifactError(im *oci.Image, err error) error {
	var known *oci.Error
	if errors.As(err, &known) {
		return err
	}
	return &oci.Error{Image: im.Name(), Err: err}
}

// readLayer returns the files in the only layer of an artifact.
func readLayer(ctx context.Context, im *oci.Image, lim limits) (*filetree.Tree, error) {
	layers := im.Layers()
	if len(layers) != 1 || im.Digest() != im.ManifestDigest() {
		return nil, errors.New("not an artifact with a rendered tree: expected one manifest with one layer")
	}
	l := layers[0]
	if l.Size > lim.layer {
		return nil, fmt.Errorf("layer %s: %d bytes exceed the limit of %d", l.Digest, l.Size, lim.layer)
	}
	if err := im.Fetch(ctx); err != nil {
		return nil, err
	}
	r, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // ignore the error: the layer was only read
	return readTar(r, lim)
}

// readTar reads a tar stream to its end and returns the files.
func readTar(r io.Reader, lim limits) (*filetree.Tree, error) {
	whole := &cappedReader{r: r, left: lim.content + int64(lim.entries)*3*512}
	in := tar.NewReader(whole)
	x := &unpacker{lim: lim, tree: filetree.New(), dirs: map[string]bool{}}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := x.addEntry(h, in); err != nil {
			return nil, fmt.Errorf("entry %q: %w", sanitize.Truncate(h.Name, maxShown), err)
		}
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return nil, err
	}
	return x.tree, nil
}

const maxShown = 200 // maximum bytes of a path in a message

// unpacker collects the files of a tar stream.
type unpacker struct {
	lim     limits
	tree    *filetree.Tree
	dirs    map[string]bool
	entries int
	content int64
}

func (x *unpacker) addEntry(h *tar.Header, r io.Reader) error {
	if x.entries++; x.entries > x.lim.entries {
		return fmt.Errorf("more than %d entries", x.lim.entries)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch {
	case len(name) > x.lim.path:
		return fmt.Errorf("path longer than %d bytes", x.lim.path)
	case strings.Count(name, "/") >= x.lim.depth:
		return fmt.Errorf("more than %d directories deep", x.lim.depth)
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
		return nil
	}
	if err := sanitize.CheckName(name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return x.addDirectory(name)
	case tar.TypeReg:
		return x.addFile(name, h.Size, r)
	default:
		return errors.New("only files and directories are allowed, because GitOps tools treat other entries differently")
	}
}

// addDirectory adds a directory. It returns an error if there is a file of the same name.
func (x *unpacker) addDirectory(name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("%q is not a valid path", sanitize.Truncate(name, maxShown))
	}
	if _, is := x.tree.Get(name); is {
		return errors.New("both a file and a directory")
	}
	x.dirs[name] = true
	return nil
}

func (x *unpacker) addFile(name string, size int64, r io.Reader) error {
	if size > x.lim.file {
		return fmt.Errorf("%d bytes exceed the limit of %d", size, x.lim.file)
	}
	if x.content += size; x.content > x.lim.content {
		return fmt.Errorf("the files exceed the limit of %d bytes", x.lim.content)
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

// cappedReader returns an error if more than a maximum number of bytes is read.
type cappedReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		if n, err := c.r.Read(p[:min(len(p), 1)]); n == 0 {
			return 0, err
		}
		return 0, errors.New("the decompressed size exceeds the limit")
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
