package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
)

// tree holds the wanted files of an image and their directories.
type tree struct {
	root     *node
	count    int // number of nodes except the root
	spool    *spool
	resolved map[string]string // wanted directory → its path after following symbolic links
}

// node is a directory, a file or a symbolic link.
type node struct {
	layer     int              // index of the layer that added the node
	children  map[string]*node // entries of a directory; nil for other nodes
	off, size int64            // content of a file: byte range of the spool
	isLink    bool
	link      string
}

func (n *node) isDir() bool { return n.children != nil }

func newTree(s *spool) *tree {
	return &tree{root: &node{children: map[string]*node{}}, spool: s}
}

// resolvedDir returns the path of a wanted directory after following symbolic links.
func (t *tree) resolvedDir(dir string) string {
	if real, ok := t.resolved[dir]; ok {
		return real
	}
	return dir
}

// find returns the node at a clean path, or nil if there is none. It does not follow symbolic
// links.
func (t *tree) find(name string) *node {
	n := t.root
	if name == "." {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		if n = n.children[part]; n == nil {
			return nil
		}
	}
	return n
}

func (t *tree) isDir(name string) bool {
	n := t.find(name)
	return n != nil && n.isDir()
}

// mkdir creates a directory with its parents and returns it. It replaces nodes on the path that are
// not directories.
func (t *tree) mkdir(name string, layer int) *node {
	n := t.root
	if name == "." {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		next := n.children[part]
		if next == nil || !next.isDir() {
			if next == nil {
				t.count++
			}
			next = &node{children: map[string]*node{}}
			n.children[part] = next
		}
		next.layer = max(next.layer, layer)
		n = next
	}
	return n
}

// put adds a file or link. It replaces a node with the same name.
func (t *tree) put(name string, n *node) {
	t.remove(name)
	t.mkdir(path.Dir(name), n.layer).children[path.Base(name)] = n
	t.count++
}

// remove removes a node and its descendants.
func (t *tree) remove(name string) {
	dir := t.find(path.Dir(name))
	if dir == nil || dir.children[path.Base(name)] == nil {
		return
	}
	t.count -= nodeSize(dir.children[path.Base(name)])
	delete(dir.children, path.Base(name))
}

func nodeSize(n *node) int {
	total := 1
	for _, c := range n.children {
		total += nodeSize(c)
	}
	return total
}

// clear removes the entries below the path name that layers before the given layer added. If inside is false,
// this includes the entry at the path itself.
func (t *tree) clear(name string, layer int, inside bool) {
	n := t.find(name)
	if n == nil {
		return
	}
	t.prune(n, layer)
	if !inside && n.layer < layer && len(n.children) == 0 && n != t.root {
		t.remove(name)
	}
}

// prune removes the descendants of n that layers before the given layer added. It keeps directories that still
// have children.
func (t *tree) prune(n *node, layer int) {
	for name, c := range n.children {
		t.prune(c, layer)
		if c.layer < layer && len(c.children) == 0 {
			delete(n.children, name)
			t.count--
		}
	}
}

// followLinks follows the symbolic links in the path name and returns the resulting path.
func (t *tree) followLinks(name string) (string, error) {
	if name == "." {
		return name, nil
	}
	n, at := t.root, "."
	parts := strings.Split(name, "/")
	for i, part := range parts {
		next := n.children[part]
		if next == nil {
			return name, nil // not an error: the caller reports a missing directory
		}
		if next.isLink {
			to, err := linkTarget(at, next.link)
			if err != nil {
				return "", err
			}
			if to = path.Join(append([]string{to}, parts[i+1:]...)...); to == name {
				return "", errors.New("the symbolic link points to itself")
			}
			return to, nil
		}
		n, at = next, path.Join(at, part)
	}
	return name, nil
}

// linkTarget returns the path in the image that a symbolic link in dir points to.
func linkTarget(dir, link string) (string, error) {
	if strings.HasPrefix(link, "/") {
		return path.Join(".", path.Clean(link)[1:]), nil
	}
	to := path.Join(dir, link)
	if to == ".." || strings.HasPrefix(to, "../") {
		return "", fmt.Errorf("symbolic link to %q points outside the image", sanitize.Truncate(link, maxShown))
	}
	return to, nil
}

// resolveLinks replaces each symbolic link by its target file. It returns an error if the target is
// missing or is a directory. A link in one of dirs must not lead out of this directory.
func (t *tree) resolveLinks(dirs []string) error {
	for _, dir := range dirs {
		if n := t.find(dir); n != nil {
			if err := t.resolveIn(n, dir, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tree) resolveIn(n *node, at, dir string) error {
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		c, here := n.children[name], path.Join(at, name)
		switch {
		case c.isDir():
			if err := t.resolveIn(c, here, dir); err != nil {
				return err
			}
		case c.isLink:
			file, err := t.linkedFile(here, c, dir)
			if err != nil {
				return fmt.Errorf("symbolic link %q to %q: %w", "/"+sanitize.Truncate(here, maxShown), sanitize.Truncate(c.link, maxShown), err)
			}
			n.children[name] = file
		}
	}
	return nil
}

// linkedFile returns the file that the symbolic link n at name points to. The file must be below
// dir.
func (t *tree) linkedFile(name string, n *node, dir string) (*node, error) {
	for range maxLinks {
		to, err := linkTarget(path.Dir(name), n.link)
		if err != nil || !filetree.Within(to, dir) {
			return nil, fmt.Errorf("it points outside of %q", "/"+dir)
		}
		if n = t.find(to); n == nil {
			return nil, errors.New("its target is missing")
		}
		if n.isDir() {
			return nil, errors.New("it points to a directory, which is not supported")
		}
		if !n.isLink {
			return n, nil
		}
		name = to
	}
	return nil, errors.New("its target is behind too many symbolic links")
}

// files returns a file system with the files of some directories. The keys of dirs are the
// directories in the result, the values those in the image. Missing directories are ignored.
func (t *tree) files(dirs map[string]string) fs.FS {
	files := map[string]func() (filetree.Content, error){}
	for as, dir := range dirs {
		if n := t.find(dir); n != nil {
			t.collect(files, as, n)
		}
	}
	return filetree.Lazy(files)
}

func (t *tree) collect(files map[string]func() (filetree.Content, error), name string, n *node) {
	switch {
	case n.isDir():
		for base, c := range n.children {
			t.collect(files, path.Join(name, base), c)
		}
	case !n.isLink:
		files[name] = func() (filetree.Content, error) { return io.NewSectionReader(t.spool, n.off, n.size), nil }
	}
}
