package fbc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// selector collects the embedded manifests of one bundle.
type selector struct {
	pkg, bundle string
	found       bool
	file        string // file that contains the bundle, once it is found
	manifests   []manifest
}

func (s *selector) done() bool { return s != nil && s.found }

// canMatch reports whether o, which may be partly decoded, can be the selected bundle.
func (s *selector) canMatch(o *object) bool {
	return (o.name == "" || o.name == s.bundle) && (o.pkg == "" || o.pkg == s.pkg)
}

func (s *selector) record(o *object) {
	if o.schema == schemaBundle && o.pkg == s.pkg && o.name == s.bundle {
		s.found, s.file, s.manifests = true, o.pos.File, o.manifests
	}
}

// ObjectsOf returns the same result as [Objects] for b. If b has a Span, it first searches only this part of
// the file.
func ObjectsOf(fsys fs.FS, b *catalog.Bundle) ([][]byte, error) {
	sel := &selector{pkg: b.Package().Name(), bundle: b.Name()}
	if at := b.Span(); at.Size > 0 && at.Size <= maxObject {
		if err := sel.decodeSpan(fsys, b.Pos().File, at); err == nil && sel.found {
			return sel.objects(fsys)
		}
	}
	return Objects(fsys, sel.pkg, sel.bundle)
}

// decodeSpan searches one byte range of a file for the bundle.
func (s *selector) decodeSpan(fsys fs.FS, name string, at catalog.Span) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer closeInto(&err, f)
	r, ok := f.(io.ReaderAt)
	if !ok {
		return errors.ErrUnsupported
	}
	return newBuilder().read(name, io.NewSectionReader(r, at.Offset, at.Size), s)
}

// Objects returns the manifests of a bundle that are embedded in the catalog in fsys, unmodified
// and in catalog order. It returns none if the bundle refers to an image instead. If the bundle
// does not exist, the error wraps fs.ErrNotExist.
func Objects(fsys fs.FS, pkg, bundle string) ([][]byte, error) {
	sel := &selector{pkg: pkg, bundle: bundle}
	if err := sel.search(fsys); err != nil {
		return nil, err
	}
	if !sel.found {
		return nil, fmt.Errorf("bundle %q of package %q: %w", bundle, pkg, fs.ErrNotExist)
	}
	return sel.objects(fsys)
}

// objects returns the manifests of the bundle. If a manifest is in a separate file, it reads that file.
func (s *selector) objects(fsys fs.FS) ([][]byte, error) {
	out := make([][]byte, 0, len(s.manifests))
	for _, m := range s.manifests {
		if m.ref != "" {
			data, err := readRef(fsys, path.Join(path.Dir(s.file), m.ref))
			if err != nil {
				return nil, fmt.Errorf("bundle %q: %s %q: %w", s.bundle, catalog.TypeObject, m.ref, err)
			}
			m.data = data
		}
		out = append(out, m.data)
	}
	return out, nil
}

// search decodes files until it finds the bundle. Files whose names contain the package name come
// first.
func (s *selector) search(fsys fs.FS) error {
	var names []string
	var faults diag.List
	err := eachFile(fsys, func(name string) error {
		if len(names) == maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		names = append(names, name)
		return nil
	}, func(name string, err error) { faults.Add(diag.Pos{File: name}, err) })
	if err != nil {
		return err
	}
	rank := func(name string) int {
		if strings.Contains(name, s.pkg) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	t := &byteCounter{}
	b := newBuilder()
	for _, name := range names {
		if err := b.open(fsys, name, t, s); err != nil {
			b.fault(diag.Pos{File: name}, err)
		}
		if s.found {
			return nil
		}
	}
	faults = append(faults, b.faults...)
	return faults.Err()
}

func readRef(fsys fs.FS, name string) (data []byte, err error) {
	if !fs.ValidPath(name) {
		return nil, errors.New("not a path inside the catalog")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer closeInto(&err, f)
	data, err = io.ReadAll(io.LimitReader(f, maxObject+1))
	if len(data) > maxObject {
		return nil, fmt.Errorf("more than %d MiB", maxObject>>20)
	}
	return data, err
}
