package overlay

import (
	"io/fs"

	"github.com/quayside/quayside/internal/filetree"
)

// Source provides files by slash-separated paths without ".." and symbolic
// links. ReadFile returns fs.ErrNotExist for a missing file, and ReadLink an
// error for anything other than a symbolic link.
type Source interface {
	ReadFile(name string) ([]byte, error)
	ReadLink(name string) (string, error)
}

// FileFunc is a source without symbolic links.
type FileFunc func(name string) ([]byte, error)

// ReadFile reads a file.
func (read FileFunc) ReadFile(name string) ([]byte, error) { return read(name) }

// ReadLink returns an error.
func (FileFunc) ReadLink(string) (string, error) { return "", fs.ErrInvalid }

// ReplacingSource is a source that replaces files of another source, Base. Dir contains only the
// replacing files, and no link leads into it.
type ReplacingSource struct {
	Dir   string
	Files func(name string) ([]byte, bool) // returns false for files that are not replaced
	Base  Source
}

// ReadFile reads a file.
func (o ReplacingSource) ReadFile(name string) ([]byte, error) {
	if data, there := o.Files(name); there {
		return data, nil
	}
	if filetree.Within(name, o.Dir) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.Base.ReadFile(name)
}

// ReadLink returns the target of a symbolic link.
func (o ReplacingSource) ReadLink(name string) (string, error) {
	if filetree.Within(name, o.Dir) || filetree.Within(o.Dir, name) {
		return "", fs.ErrInvalid
	}
	return o.Base.ReadLink(name)
}
