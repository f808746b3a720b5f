package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
)

// File is a file or directory.
type File struct {
	Path        string // full path; identifies the file
	DisplayPath string // path for messages
	FS          fs.FS  // the directory itself, or the directory that contains the file
	Name        string // name of the file in FS; empty for a directory
}

// maxFileSize is the maximum size in bytes of a file that File.Read reads.
const maxFileSize = 64 << 20

// Read reads a regular file of at most maxFileSize bytes.
func (f File) Read() ([]byte, error) {
	if f.Name == "" {
		return nil, fmt.Errorf("%s is not a regular file", f.DisplayPath)
	}
	info, err := fs.Stat(f.FS, f.Name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", f.DisplayPath)
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("%s: %d bytes exceed the limit of %d", f.DisplayPath, info.Size(), maxFileSize)
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(f.FS, f.Name)
	}
	if at := new(fs.PathError); errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: f.DisplayPath, Err: at.Err}
	}
	return data, err
}

// LookupIn returns a [Resolver.Lookup] that resolves relative paths against dir. Messages show
// such a path as dir joined with the path.
func LookupIn(dir string) func(path string) (File, error) {
	return func(name string) (File, error) {
		shown := filepath.FromSlash(name)
		if !filepath.IsAbs(shown) {
			shown = filepath.Join(dir, shown)
		}
		at, base := filetree.NamedFile(shown)
		return FileIn(at, base, shown)
	}
}

// FileIn returns the file or directory with this name in dir. shown is its path for messages.
func FileIn(dir filetree.Dir, name, shown string) (File, error) {
	f := File{DisplayPath: shown}
	var err error
	if f.Path, err = filepath.Abs(shown); err != nil {
		return f, err
	}
	f.FS, f.Name, err = dir.Lookup(name)
	if at := new(fs.PathError); errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: shown, Err: at.Err}
	}
	return f, err
}

// source returns f as a source: one file, or all files of a directory.
func (f File) source(name string, open func(ctx context.Context) (*OpenedCatalog, error)) *Source {
	return &Source{Name: name, Files: f.FS, File: f.Name, Open: open}
}

// findDir returns the source for a catalog that is a directory. form returns the format of its
// files.
func findDir(at Resolver, scheme, path string, form func(*OpenedCatalog) (Format, error)) (*Source, error) {
	d, err := at.Lookup(path)
	if err != nil {
		return nil, err
	}
	if d.Name != "" {
		return nil, fmt.Errorf("%s is not a directory", d.DisplayPath)
	}
	return d.source(scheme+":"+d.Path, func(context.Context) (*OpenedCatalog, error) {
		c := &OpenedCatalog{FS: d.FS, Digest: func() (catalog.Digest, error) { return treeDigest(d.FS) }}
		var err error
		c.Format, err = form(c)
		return c, err
	}), nil
}
