package overlay

import (
	"io/fs"

	"github.com/quayside/quayside/internal/filetree"
)

// Source provides files. Paths are slash-separated and contain neither ".." nor symbolic links. For
// a missing file, ReadFile returns fs.ErrNotExist. For anything but a symbolic link, ReadLink
// returns an error.
type Source interface {
	ReadFile(name string) ([]byte, error)
	ReadLink(name string) (string, error)
}

// FileFunc is a Source without symbolic links.
type FileFunc func(name string) ([]byte, error)

// ReadFile returns read(name).
func (read FileFunc) ReadFile(name string) ([]byte, error) { return read(name) }

// ReadLink returns fs.ErrInvalid.
func (FileFunc) ReadLink(string) (string, error) { return "", fs.ErrInvalid }

// ReplacingSource provides the files of Base, but replaces some of them. The directory Dir contains only
// replaced files, and no symbolic link leads into it.
type ReplacingSource struct {
	Dir   string
	Files func(name string) ([]byte, bool) // returns false for files that are not replaced
	Base  Source
}

// ReadFile returns the content of a file.
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
