package fbc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
)

// LoadFS reads the catalog in fsys: every file but those that .indexignore
// files name, whatever they are called and wherever they lie. Symbolic links
// are faults, for they are not followed. The content does not depend on how
// objects are spread over files; its ID, Source and Digest are the caller's to
// fill. The error is a diag.List of every fault of every file.
func LoadFS(fsys fs.FS) (catalog.Content, error) {
	b := newBuilder()
	b.walk(fsys)
	return b.content()
}

// walk reads the files of fsys in path order into b.
func (b *builder) walk(fsys fs.FS) {
	t := &tally{}
	b.file.widen()
	err := eachFile(fsys, func(name string) error {
		t.files++
		if t.files > maxFiles {
			return diag.Errorf(diag.Pos{File: name}, "more than %d files", maxFiles)
		}
		if err := b.open(fsys, name, t, nil); err != nil {
			b.fault(diag.Pos{File: name}, err)
		}
		if t.bytes > maxTotal {
			return diag.Errorf(diag.Pos{File: name}, "more than %d GiB in all", maxTotal>>30)
		}
		if b.full() {
			return fs.SkipAll
		}
		return nil
	}, func(name string, err error) { b.fault(diag.Pos{File: name}, err) })
	if err != nil {
		b.fault(diag.Pos{}, err)
	}
}

func (b *builder) open(fsys fs.FS, name string, t *tally, sel *selector) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return plain(err)
	}
	defer closeInto(&err, f)
	t.r = f
	return b.read(name, t, sel)
}

// tally counts what is read.
type tally struct {
	r     io.Reader
	bytes int64
	files int
}

func (t *tally) Read(p []byte) (int, error) {
	if t.bytes > maxTotal {
		return 0, errors.New("too much to read")
	}
	n, err := t.r.Read(p)
	t.bytes += int64(n)
	return n, err
}

// eachFile calls read for every regular file of fsys, in path order, and fault
// for what cannot be read.
func eachFile(fsys fs.FS, read func(name string) error, fault func(name string, err error)) error {
	var rules ignoreRules
	return fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case name != "." && rules.match(name) && (err != nil || !e.IsDir()):
			return nil
		case err != nil:
			fault(name, plain(err))
			return nil
		case e.IsDir():
			if err := rules.load(fsys, name); err != nil {
				fault(name, err)
			}
			return nil
		case e.Name() == ignoreFile:
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			fault(name, errors.New("symbolic links in a catalog are not followed; name it in .indexignore to leave it out"))
			return nil
		case !e.Type().IsRegular():
			fault(name, errors.New("not a regular file"))
			return nil
		}
		if err := inert.Name(name); err != nil {
			fault(name, fmt.Errorf("file name %w", err))
			return nil
		}
		return read(name)
	})
}

// plain drops the operation and the path, which the position names already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// closeInto closes f and puts the error in err where there is none yet.
func closeInto(err *error, f io.Closer) {
	if closed := f.Close(); *err == nil {
		*err = closed
	}
}
