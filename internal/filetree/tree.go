// Package filetree holds a tree of files in memory, compares trees, and
// writes one to disk, each file whole and the lists of files last, so that the next
// write completes a tree after an interruption.
//
// Each directory of a written tree carries an [Index] of its files that are the
// program's own. Files that are in none are the user's: they are never changed,
// and never removed. The package never follows a symbolic link.
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

// Tree is a set of files. The zero value is not ready to use: call New.
type Tree struct {
	files  map[string][]byte
	folded map[string]string // lower case → path as added, directories included
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{files: map[string][]byte{}, folded: map[string]string{}}
}

// Add puts a file into the tree, which keeps data. A path that is not
// fs.ValidPath, that is there already, that differs from another only in case,
// or that makes a directory of a file, is an error.
func (t *Tree) Add(name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00\n") {
		return fmt.Errorf("%q is not a valid path", name)
	}
	if _, ok := t.files[name]; ok {
		return fmt.Errorf("%q is in the tree already", name)
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

// All yields the files by path.
func (t *Tree) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, name := range slices.Sorted(maps.Keys(t.files)) {
			if !yield(name, t.files[name]) {
				return
			}
		}
	}
}

// Names yields the paths of the files, in order.
func (t *Tree) Names() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(t.files)))
}

// Get returns a file's content.
func (t *Tree) Get(name string) ([]byte, bool) {
	data, ok := t.files[name]
	return data, ok
}

// Len returns the number of files.
func (t *Tree) Len() int { return len(t.files) }

// Read returns the regular files of fsys, whatever they are. Symbolic links
// and other special files are left out.
func Read(fsys fs.FS) (*Tree, error) { return ReadLike(fsys, New()) }

// ReadLike is Read for what hardly differs from like: what is the same there and
// here is held once.
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

// readLike returns the content of a file: like itself where that is the same.
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
