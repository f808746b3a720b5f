package filetree

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Mount returns a file system whose root contains each of dirs as a directory. A name with a slash
// cannot be reached.
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
