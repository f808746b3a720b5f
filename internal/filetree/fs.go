package filetree

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// FS returns the tree as a file system. Do not add files to the tree while it is in use.
func (t *Tree) FS() fs.FS {
	files := make(map[string]func() (Content, error), len(t.files))
	for name, data := range t.files {
		files[name] = func() (Content, error) { return bytes.NewReader(data), nil }
	}
	return Lazy(files)
}

// Content is the content of a file, such as a [bytes.Reader] or an [io.SectionReader].
type Content interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	Size() int64
}

// Lazy returns a file system that loads the content of a file only when the file is opened or its
// size is needed. Opened files implement Content.
func Lazy(files map[string]func() (Content, error)) fs.FS {
	l := lazyFS{files, map[string]map[string]bool{".": {}}}
	for name := range files {
		isDir := false
		for dir := path.Dir(name); ; name, dir = dir, path.Dir(dir) {
			known := l.dirs[dir] != nil
			if !known {
				l.dirs[dir] = map[string]bool{}
			}
			l.dirs[dir][path.Base(name)] = isDir
			if known || dir == "." {
				break
			}
			isDir = true
		}
	}
	return l
}

type lazyFS struct {
	files map[string]func() (Content, error)
	dirs  map[string]map[string]bool // directory → name → is a directory
}

// Open returns a file or a directory.
func (l lazyFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if content, ok := l.files[name]; ok {
		c, err := content()
		if err != nil {
			return nil, err
		}
		return &openFile{Content: c, info: info{name: path.Base(name), size: c.Size()}}, nil
	}
	names, ok := l.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var entries []fs.DirEntry
	for _, n := range slices.Sorted(maps.Keys(names)) {
		entries = append(entries, lazyEntry{info{name: n, dir: names[n]}, l, path.Join(name, n)})
	}
	return &openDir{info: info{name: path.Base(name), dir: true}, entries: entries}, nil
}

// lazyEntry is a directory entry for a file that is not loaded, or for a directory.
type lazyEntry struct {
	info
	fsys lazyFS
	path string
}

// Info returns information about the file. It loads the file, because the size is needed.
func (e lazyEntry) Info() (fs.FileInfo, error) { return fs.Stat(e.fsys, e.path) }

// Type returns the type bits of the mode.
func (e lazyEntry) Type() fs.FileMode { return e.Mode().Type() }

// info implements fs.FileInfo.
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
	Content
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

// ReadDir returns the next n entries. If n ≤ 0, it returns all remaining entries.
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

// Mount returns a file system whose root contains each of dirs as a directory. The names must not contain a
// slash.
func Mount(dirs map[string]fs.FS) fs.FS { return mounts(dirs) }

type mounts map[string]fs.FS

// Open opens a file or a directory of the mounted file systems.
func (m mounts) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		var entries []fs.DirEntry
		for _, dir := range slices.Sorted(maps.Keys(m)) {
			entries = append(entries, fs.FileInfoToDirEntry(info{name: dir, dir: true}))
		}
		return &openDir{info: info{name: ".", dir: true}, entries: entries}, nil
	}
	dir, rest, below := strings.Cut(name, "/")
	fsys, ok := m[dir]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if !below {
		entries, err := fs.ReadDir(fsys, ".")
		return &openDir{info: info{name: dir, dir: true}, entries: entries}, renameError(name, err)
	}
	f, err := fsys.Open(rest)
	return f, renameError(name, err)
}

// renameError returns an error of a mounted file system with its path replaced by name.
func renameError(name string, err error) error {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return &fs.PathError{Op: perr.Op, Path: name, Err: perr.Err}
	}
	return err
}
