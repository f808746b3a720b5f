package fbc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// LoadFS decodes the catalog in fsys. It reads all files except files of Git and files that .indexignore
// excludes. A symbolic link is a fault. The content does not depend on how the objects are distributed over
// files. The caller sets ID, Source and Digest. The error is a diag.List of all faults.
func LoadFS(fsys fs.FS) (catalog.Content, error) {
	b := newBuilder()
	b.walk(fsys)
	return b.content()
}

// walk decodes the files of fsys into b, sorted by path.
func (b *builder) walk(fsys fs.FS) {
	t := &byteCounter{}
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
			return diag.Errorf(diag.Pos{File: name}, "total size exceeds the limit of %d GiB", maxTotal>>30)
		}
		if b.isFull() {
			return fs.SkipAll
		}
		return nil
	}, func(name string, err error) { b.fault(diag.Pos{File: name}, err) })
	if err != nil {
		b.fault(diag.Pos{}, err)
	}
}

func (b *builder) open(fsys fs.FS, name string, t *byteCounter, sel *selector) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return withoutPath(err)
	}
	defer closeInto(&err, f)
	t.r = f
	return b.read(name, t, sel)
}

// byteCounter counts the bytes read from a reader, and fails when the total exceeds a limit.
type byteCounter struct {
	r     io.Reader
	bytes int64
	files int
}

func (t *byteCounter) Read(p []byte) (int, error) {
	if t.bytes > maxTotal {
		return 0, errors.New("size limit exceeded")
	}
	n, err := t.r.Read(p)
	t.bytes += int64(n)
	return n, err
}

// eachFile calls the function read for every regular file of fsys, sorted by path. It calls the function fault
// for every file that cannot be read.
func eachFile(fsys fs.FS, read func(name string) error, fault func(name string, err error)) error {
	var rules ignoreRules
	return fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case IsGit(name):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case name != "." && rules.match(name) && (err != nil || !e.IsDir()):
			return nil
		case err != nil:
			fault(name, withoutPath(err))
			return nil
		case e.IsDir():
			if err := rules.load(fsys, name); err != nil {
				fault(name, err)
			}
			return nil
		case e.Name() == ignoreFile:
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			fault(name, errors.New("symbolic links in a catalog are not followed: list the link in .indexignore to ignore it"))
			return nil
		case !e.Type().IsRegular():
			fault(name, errors.New("not a regular file"))
			return nil
		}
		if err := sanitize.CheckName(name); err != nil {
			fault(name, fmt.Errorf("file name %w", err))
			return nil
		}
		return read(name)
	})
}

// IsGit reports whether a path in a catalog directory belongs to Git: the directory .git of a
// clone, or the file .git of a work tree or submodule. opm reads .git unless .indexignore excludes
// it. quayside skips it, so that a clone can be used as a catalog without such an entry.
func IsGit(name string) bool { return path.Base(name) == ".git" }

// withoutPath returns the cause of an fs.PathError, without operation and path, because the
// position of the message already contains the path.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// closeInto closes f. If closing fails and *err is nil, it stores the error in *err.
func closeInto(err *error, f io.Closer) {
	if closed := f.Close(); *err == nil {
		*err = closed
	}
}
