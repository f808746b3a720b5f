// Package filetree holds file trees in memory, compares them and writes them to disk. It
// replaces each file atomically and writes the final indices last: after an interruption
// the next write completes the tree.
//
// Each directory of a written tree with files of the program has an [Index] of them. Files
// without an index entry belong to the user: the package never changes or removes them.
// Inside a tree it never follows a symbolic link.
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

// Tree is a set of files. The zero value is not usable: call New.
type Tree struct {
	files  map[string][]byte
	folded map[string]string // lower case → path as added, directories included
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{files: map[string][]byte{}, folded: map[string]string{}}
}

// Add adds a file to the tree without copying data. It returns an error if name is no
// fs.ValidPath, if it exists already, if it differs from another path only in case, or if
// a path would be both a file and a directory.
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

// All yields the files, sorted by path.
func (t *Tree) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, name := range slices.Sorted(maps.Keys(t.files)) {
			if !yield(name, t.files[name]) {
				return
			}
		}
	}
}

// Names yields the sorted paths of the files.
func (t *Tree) Names() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(t.files)))
}

// Get returns the content of a file and reports whether the file exists.
func (t *Tree) Get(name string) ([]byte, bool) {
	data, ok := t.files[name]
	return data, ok
}

// Len returns the number of files.
func (t *Tree) Len() int { return len(t.files) }

// Read returns the regular files of fsys, without the checks of Add. It skips symbolic
// links and other special files.
func Read(fsys fs.FS) (*Tree, error) { return ReadLike(fsys, New()) }

// ReadLike is like Read, but shares the content of unchanged files with like to save
// memory.
func ReadLike(fsys fs.FS, like *Tree) (*Tree, error) {
	t := New()
	var buf bytes.Buffer
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		t.files[name], err = readLike(fsys, name, like.files[name], &buf)
		return err
	})
	return t, err
}

// readLike returns the content of a file: like itself if the content is equal.
func readLike(fsys fs.FS, name string, like []byte, buf *bytes.Buffer) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf.Reset()
	if _, err := buf.ReadFrom(f); err != nil {
		return nil, err
	}
	if like != nil && bytes.Equal(buf.Bytes(), like) {
		return like, nil
	}
	return append([]byte{}, buf.Bytes()...), nil
}
