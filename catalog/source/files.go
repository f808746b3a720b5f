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
	Path        string // full path, unique
	DisplayPath string // path for messages
	FS          fs.FS  // the directory, or the parent directory of the file
	Name        string // name of the file in FS; empty for a directory
}

// LookupIn returns a [Resolver.Lookup] for paths named by the user, relative to dir. Messages show
// paths with dir as given.
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

// FileIn finds a file or directory in dir. shown is its path for messages.
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

// source returns a source for a file, or for all files of a directory.
func (f File) source(name string, open func(ctx context.Context) (*Catalog, error)) *Source {
	return &Source{Name: name, Files: f.FS, File: f.Name, Open: open}
}

// findDir finds a catalog that is a directory. form returns the format of its files.
func findDir(at Resolver, scheme, path string, form func(*Catalog) (Format, error)) (*Source, error) {
	d, err := at.Lookup(path)
	if err != nil {
		return nil, err
	}
	if d.Name != "" {
		return nil, fmt.Errorf("%s is not a directory", d.DisplayPath)
	}
	return d.source(scheme+":"+d.Path, func(context.Context) (*Catalog, error) {
		c := &Catalog{FS: d.FS, Digest: func() (catalog.Digest, error) { return treeDigest(d.FS) }}
		var err error
		c.Format, err = form(c)
		return c, err
	}), nil
}
