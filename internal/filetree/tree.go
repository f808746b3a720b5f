// Package filetree holds a tree of files in memory, compares trees, and
// writes one to disk so that a crash leaves the old tree or the new one.
//
// A written tree carries an [Index] of the files that are the program's own.
// Files that are not in it are the user's: they are never changed, and never
// removed. The package never follows a symbolic link.
//
// Start from [Tree], [Diff] and [Write].
package filetree

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Tree is a set of files. The zero value is not ready to use: call New.
type Tree struct {
	files    map[string][]byte
	starters map[string]bool   // files that are the user's once written
	folded   map[string]string // lower case → path as added, directories included
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{files: map[string][]byte{}, starters: map[string]bool{}, folded: map[string]string{}}
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

// AddStarter is Add for a file that is only written where none stands, and is
// the user's from then on.
func (t *Tree) AddStarter(name string, data []byte) error {
	if err := t.Add(name, data); err != nil {
		return err
	}
	t.starters[name] = true
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

// Get returns a file's content.
func (t *Tree) Get(name string) ([]byte, bool) {
	data, ok := t.files[name]
	return data, ok
}

// Starter reports whether the file was added with AddStarter.
func (t *Tree) Starter(name string) bool { return t.starters[name] }

// Len returns the number of files.
func (t *Tree) Len() int { return len(t.files) }

// Read returns the regular files of fsys, whatever they are. Symbolic links
// and other special files are left out.
func Read(fsys fs.FS) (*Tree, error) {
	t := New()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		t.files[name] = data
		return nil
	})
	return t, err
}

// FS returns the tree as a file system. It must not be added to while in use.
func (t *Tree) FS() fs.FS { return treeFS{t} }

// treeFS serves a Tree.
type treeFS struct{ t *Tree }

// Open returns a file or a directory.
func (f treeFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if data, ok := f.t.files[name]; ok {
		return &openFile{Reader: bytes.NewReader(data), info: info{name: path.Base(name), size: int64(len(data))}}, nil
	}
	entries := f.entries(name)
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openDir{info: info{name: path.Base(name), dir: true}, entries: entries}, nil
}

// entries returns what lies directly in dir, by name.
func (f treeFS) entries(dir string) []fs.DirEntry {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	found := map[string]info{}
	for name, data := range f.t.files {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			found[first] = info{name: first, dir: true}
		} else {
			found[first] = info{name: first, size: int64(len(data))}
		}
	}
	entries := make([]fs.DirEntry, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		entries = append(entries, fs.FileInfoToDirEntry(found[name]))
	}
	return entries
}

// info is an fs.FileInfo.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type openFile struct {
	*bytes.Reader
	info info
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info    info
	entries []fs.DirEntry
	read    int
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

// ReadDir returns the next n entries, all that are left where n ≤ 0.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.entries[d.read:]
	if n <= 0 {
		d.read = len(d.entries)
		return slices.Clone(left), nil
	}
	if len(left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(left))
	d.read += n
	return slices.Clone(left[:n]), nil
}
