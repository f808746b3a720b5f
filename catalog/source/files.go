package source

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quayside/quayside/internal/model"
)

// File is a file or directory.
type File struct {
	Path        string // full, unique path
	DisplayPath string // path for messages
	FS          fs.FS  // the directory, or the parent directory of the file
	Name        string // of the file in FS; empty for a directory
}

// LookupIn returns a [Place.Lookup] that resolves paths relative to dir.
// Messages show paths with dir as given.
func LookupIn(dir string) func(path string) (File, error) {
	return func(path string) (File, error) {
		f := File{DisplayPath: filepath.FromSlash(path)}
		if !filepath.IsAbs(f.DisplayPath) {
			f.DisplayPath = filepath.Join(dir, f.DisplayPath)
		}
		info, err := os.Stat(f.DisplayPath) // the error shows the path for messages
		if err != nil {
			return f, err
		}
		if f.Path, err = filepath.Abs(f.DisplayPath); err != nil {
			return f, err
		}
		if info.IsDir() {
			f.FS = os.DirFS(f.Path)
		} else {
			f.FS, f.Name = os.DirFS(filepath.Dir(f.Path)), filepath.Base(f.Path)
		}
		return f, nil
	}
}

// source returns a source for a file, or for all files of a directory.
func (f File) source(name string, open func(ctx context.Context) (*Catalog, error)) *Source {
	return &Source{Name: name, Files: f.FS, File: f.Name, Open: open}
}

// findDir finds a catalog that is a directory. form returns the form of its
// files.
func findDir(at Place, scheme, path string, form func(*Catalog) (Form, error)) (*Source, error) {
	d, err := at.Lookup(path)
	if err != nil {
		return nil, err
	}
	if d.Name != "" {
		return nil, fmt.Errorf("%s is not a directory", d.DisplayPath)
	}
	return d.source(scheme+":"+d.Path, func(context.Context) (*Catalog, error) {
		c := &Catalog{FS: d.FS, Digest: func() (model.Digest, error) { return treeDigest(d.FS) }}
		var err error
		c.Form, err = form(c)
		return c, err
	}), nil
}
