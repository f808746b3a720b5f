// Package filetree holds file trees in memory, compares them and writes them to disk. Each file is replaced
// atomically, and the index files are written last. If a write is interrupted, the next write completes it.
//
// In a written tree, each directory with files written by quayside has an [Index] that lists these files. A
// file without an index entry belongs to the user: the package never changes or removes it. Within a tree, it
// never follows a symbolic link.
//
// Start from [Tree], [Diff] and [Write].
package filetree

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
)

// Tree is a set of files by path. Create it with New.
type Tree struct {
	files  map[string][]byte
	folded map[string]string // path in lower case → path as added, including directories
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{files: map[string][]byte{}, folded: map[string]string{}}
}

// Add adds a file to the tree. data is not copied. It returns an error if name is not a valid path
// (fs.ValidPath), is already in the tree, differs from another path only in case, or would make a path both a
// file and a directory.
func (t *Tree) Add(name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00\n") {
		return fmt.Errorf("%q is not a valid path", name)
	}
	if _, ok := t.files[name]; ok {
		return fmt.Errorf("%q is already in the tree", name)
	}
	for part := name; part != "."; part = path.Dir(part) {
		other, ok := t.folded[strings.ToLower(part)]
		if ok && other != part {
			return fmt.Errorf("%q and %q differ only in case", name, other)
		}
		if _, isFile := t.files[part]; isFile || ok && part == name {
			return fmt.Errorf("%q is both a file and a directory", part)
		}
	}
	for part := name; part != "."; part = path.Dir(part) {
		t.folded[strings.ToLower(part)] = part
	}
	t.files[name] = data
	return nil
}

// All yields the paths and contents of the files, sorted by path.
func (t *Tree) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, name := range slices.Sorted(maps.Keys(t.files)) {
			if !yield(name, t.files[name]) {
				return
			}
		}
	}
}

// Names yields the paths of the files, sorted.
func (t *Tree) Names() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(t.files)))
}

// Get returns the content of a file, and whether the file exists.
func (t *Tree) Get(name string) ([]byte, bool) {
	data, ok := t.files[name]
	return data, ok
}

// Len returns the number of files.
func (t *Tree) Len() int { return len(t.files) }

// Read returns a tree with the regular files in fsys, without the checks of Add. Symbolic links and
// special files are skipped.
func Read(fsys fs.FS) (*Tree, error) { return ReadLike(fsys, New()) }

// ReadLike is like Read, but needs less memory: a file that is equal in the tree like shares its content with like.
func ReadLike(fsys fs.FS, like *Tree) (*Tree, error) {
	t := New()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if same := like.files[name]; same != nil && bytes.Equal(data, same) {
			data = same
		}
		t.files[name] = data
		return err
	})
	return t, err
}
