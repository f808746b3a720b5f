package source

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file or directory that a path leads to.
type File struct {
	Path  string // the whole path, which tells it from all others
	Shown string // as the user would name it
	FS    fs.FS  // the directory, or the one that the file is in
	Name  string // of the file in FS; empty for a directory
}

// Below returns a [Place.Lookup] for which paths are relative to a directory,
// which is as the user would name it.
func Below(dir string) func(path string) (File, error) {
	return func(path string) (File, error) {
		f := File{Shown: filepath.FromSlash(path)}
		if !filepath.IsAbs(f.Shown) {
			f.Shown = filepath.Join(dir, f.Shown)
		}
		info, err := os.Stat(f.Shown) // whose error names it as the user does
		if err != nil {
			return f, err
		}
		if f.Path, err = filepath.Abs(f.Shown); err != nil {
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

// source returns the source that is read from a file, or from all files of a
// directory.
func (f File) source(name string, open func(ctx context.Context) (*Catalog, error)) *Source {
	return &Source{Name: name, Files: f.FS, File: f.Name, Open: open}
}

// findDir finds a catalog that is a directory, whose form is made of its files.
func findDir(at Place, scheme, path string, form func(*Catalog) (Form, error)) (*Source, error) {
	d, err := at.Lookup(path)
	if err != nil {
		return nil, err
	}
	if d.Name != "" {
		return nil, fmt.Errorf("%s is not a directory", d.Shown)
	}
	return d.source(scheme+":"+d.Path, func(context.Context) (*Catalog, error) {
		sums := newHashedFS(d.FS)
		c := &Catalog{FS: sums, sums: sums, Digest: sums.digest}
		var err error
		c.Form, err = form(c)
		return c, err
	}), nil
}
