package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Dir is a directory on disk. Reads and writes through it cannot leave its root, neither by a
// path nor by a symbolic link. The root is opened on first use.
//
// Names are slash-separated and relative to the directory. They may begin with "..".
type Dir struct {
	root *root
	in   string // path in the root
	name string // as given by the user
}

// root is the directory that reads and writes cannot leave.
type root struct {
	dir  string // absolute
	kind string // "repository"
	open func() (*os.Root, error)
}

func newRoot(dir, kind string) *root {
	return &root{dir: dir, kind: kind, open: sync.OnceValues(func() (*os.Root, error) { return os.OpenRoot(dir) })}
}

// OpenDir returns a directory. Its root is the work tree of the Git repository around it, or
// without one the directory itself, called kind in messages.
func OpenDir(dir, kind string) Dir {
	top, in, found := repositoryAround(dir)
	if found {
		kind = "repository"
	}
	return Dir{newRoot(top, kind), in, dir}
}

// OpenRootDir returns a directory that is its own root.
func OpenRootDir(dir string) Dir { return Dir{newRoot(dir, "directory"), ".", dir} }

// OpenUserDir returns a directory named by the user, which need not exist. Its root is the work
// tree of the Git repository around it. Without one, its root is the nearest directory that
// exists, and the path may lead through symbolic links.
func OpenUserDir(dir string) Dir {
	top, in, found := repositoryAround(dir)
	if found {
		return Dir{newRoot(top, "repository"), in, dir}
	}
	if real, err := filepath.EvalSymlinks(top); err == nil {
		top = real
	}
	for info, err := os.Stat(top); (err != nil || !info.IsDir()) && top != filepath.Dir(top); info, err = os.Stat(top) {
		top, in = filepath.Dir(top), path.Join(filepath.Base(top), in)
	}
	return Dir{newRoot(top, "directory"), in, dir}
}

// NamedFile returns the directory of a file named by the user, and the name of the file in it.
func NamedFile(name string) (dir Dir, base string) {
	if _, _, found := repositoryAround(filepath.Dir(name)); !found {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			dir = OpenUserDir(filepath.Dir(real))
			dir.name = filepath.Dir(name)
			return dir, filepath.Base(real)
		}
	}
	return OpenUserDir(filepath.Dir(name)), filepath.Base(name)
}

// repositoryAround returns the absolute path of the work tree around a directory, and the path
// of the directory in it. If there is none, it returns the directory and ".".
func repositoryAround(dir string) (top, in string, found bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, ".", false
	}
	for top := abs; ; top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			rel, _ := filepath.Rel(top, abs)
			return top, filepath.ToSlash(rel), true
		}
		if top == filepath.Dir(top) {
			return abs, ".", false
		}
	}
}

// InRoot returns the path of the directory in its root: ".", "envs/dev".
func (d Dir) InRoot() string { return d.in }

// Top returns the path of the root, relative to the current directory if the directory is.
func (d Dir) Top() string {
	if d.in == "." {
		return d.name
	}
	return filepath.Join(d.name, strings.Repeat("../", strings.Count(d.in, "/")+1))
}

// Root returns the root as a directory.
func (d Dir) Root() Dir { return Dir{d.root, ".", d.Top()} }

// Kind returns the kind of the root, for messages: "repository".
func (d Dir) Kind() string { return d.root.kind }

// String returns the directory as given by the user.
func (d Dir) String() string { return d.name }

// Sub returns a directory by its name.
func (d Dir) Sub(name string) (Dir, error) {
	full, err := d.resolveName(name)
	return Dir{d.root, full, d.displayPath(name)}, err
}

// PathInRoot returns the path in the root of a name, which may be absolute. It returns false for a
// name outside of the root.
func (d Dir) PathInRoot(name string) (full string, inside bool) {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(d.root.dir, name)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	full = path.Join(d.in, filepath.ToSlash(name))
	return full, fs.ValidPath(full)
}

func (d Dir) resolveName(name string) (string, error) {
	full, inside := d.PathInRoot(name)
	if !inside {
		return full, fmt.Errorf("%s is outside of the %s", name, d.root.kind)
	}
	return full, nil
}

// displayPath returns the path of a name for messages.
func (d Dir) displayPath(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.name, name)
}

// FS returns the files of the directory.
func (d Dir) FS() fs.FS { return dirFS(d) }

// Lookup finds a file or a directory. For a directory it returns its files, for a file those of
// its directory and the base name.
func (d Dir) Lookup(name string) (files fs.FS, base string, err error) {
	full, err := d.resolveName(name)
	if err != nil {
		return nil, "", err
	}
	top := d.Root()
	info, err := fs.Stat(top.FS(), full)
	if err != nil {
		return nil, "", &fs.PathError{Op: "stat", Path: d.displayPath(name), Err: causeOf(err)}
	}
	if !info.IsDir() {
		full, base = path.Dir(full), path.Base(full)
	}
	return Dir{d.root, full, d.displayPath(name)}.FS(), base, nil
}

// LookupIn returns a function like [Dir.Lookup] for paths named by the user, relative to dir.
func LookupIn(dir string) func(name string) (files fs.FS, base string, err error) {
	return func(name string) (fs.FS, string, error) {
		if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		at, base := NamedFile(name)
		return at.Lookup(base)
	}
}

// Open opens the directory, and creates it with permissions if it does not exist. The caller
// closes it.
func (d Dir) Open(perm fs.FileMode) (*os.Root, error) {
	top, err := d.root.open()
	if err != nil {
		return nil, err
	}
	if _, err := d.root.resolveLinks(d.in); err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.name, Err: err}
	}
	if err = top.MkdirAll(d.in, perm); err == nil {
		var dir *os.Root
		if dir, err = top.OpenRoot(d.in); err == nil {
			return dir, nil
		}
	}
	return nil, d.root.wrapError("open", d.name, d.in, err)
}

// CheckLinks returns an error if a symbolic link on the path of a name leads out of the root.
func (d Dir) CheckLinks(name string) error {
	full, err := d.resolveName(name)
	if err == nil {
		_, err = d.root.resolveLinks(full)
	}
	return err
}

// Remove removes a file.
func (d Dir) Remove(name string) error {
	full, err := d.resolveName(name)
	if err != nil {
		return err
	}
	top, err := d.root.open()
	if err == nil {
		err = top.Remove(full)
	}
	return d.root.wrapError("remove", d.displayPath(name), full, err)
}

// wrapError adds the display path to an error. If a symbolic link on the path leads out of the root,
// the result reports the link as the cause.
func (r *root) wrapError(op, shown, full string, err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if _, linkErr := r.resolveLinks(full); linkErr != nil {
			err = linkErr
		}
	}
	return &fs.PathError{Op: op, Path: shown, Err: causeOf(err)}
}

// causeOf returns an error without its operation and path.
func causeOf(err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}

// resolveLinks returns the target of a path in the root.
func (r *root) resolveLinks(full string) (string, error) {
	top, err := r.open()
	if err != nil {
		return "", err
	}
	return ResolveLinks(full, top.Readlink, r.kind, nil)
}

// ErrOutside is the error for a symbolic link that leads out of a root.
var ErrOutside = errors.New("points outside")

// maxLinks limits the symbolic links in one path.
const maxLinks = 40

// ResolveLinks returns the target of a path after following its symbolic links, which readLink
// reads. A link that leads out of the files or into a directory .git is an error that names the
// link and kind, the kind of root. plain caches directories that are not links; it may be nil.
func ResolveLinks(name string, readLink func(string) (string, error), kind string, plain map[string]bool) (string, error) {
	at, rest, links, link, target := ".", strings.Split(name, "/"), 0, "", ""
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." && at == "." || link != "" && path.IsAbs(target) {
			return "", fmt.Errorf("symbolic link %s %w the %s, to %s", link, ErrOutside, kind, target)
		}
		if link != "" && strings.EqualFold(part, ".git") {
			return "", fmt.Errorf("symbolic link %s points into %s, to %s", link, part, target)
		}
		at = path.Join(at, part)
		if plain[at] || at == "." {
			continue
		}
		to, err := readLink(at)
		if err != nil {
			if len(rest) > 0 && plain != nil { // a directory, which later paths may share
				plain[at] = true
			}
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s has a chain of more than %d symbolic links", name, maxLinks)
		}
		link, target = at, filepath.ToSlash(to)
		at, rest = path.Dir(at), append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// dirFS is the files of a directory.
type dirFS Dir

// resolveName returns the root and the path of a name in it.
func (d dirFS) resolveName(op, name string) (*os.Root, string, error) {
	if !fs.ValidPath(name) {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	top, err := d.root.open()
	if err != nil {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: causeOf(err)}
	}
	return top, path.Join(d.in, name), nil
}

// Open opens a file or a directory.
func (d dirFS) Open(name string) (fs.File, error) {
	top, full, err := d.resolveName("open", name)
	if err != nil {
		return nil, err
	}
	f, err := top.Open(full)
	if err != nil {
		return nil, d.root.wrapError("open", name, full, err)
	}
	return f, nil
}

// Stat returns the file info of a file or of the target of a link.
func (d dirFS) Stat(name string) (fs.FileInfo, error) {
	top, full, err := d.resolveName("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := top.Stat(full)
	return info, d.root.wrapError("stat", name, full, err)
}

// Lstat returns the file info of a file or a link.
func (d dirFS) Lstat(name string) (fs.FileInfo, error) {
	top, full, err := d.resolveName("lstat", name)
	if err != nil {
		return nil, err
	}
	info, err := top.Lstat(full)
	return info, d.root.wrapError("lstat", name, full, err)
}

// ReadLink returns the target of a link.
func (d dirFS) ReadLink(name string) (string, error) {
	top, full, err := d.resolveName("readlink", name)
	if err != nil {
		return "", err
	}
	to, err := top.Readlink(full)
	return to, d.root.wrapError("readlink", name, full, err)
}

// ReadFile reads a file.
func (d dirFS) ReadFile(name string) ([]byte, error) {
	top, full, err := d.resolveName("open", name)
	if err != nil {
		return nil, err
	}
	data, err := top.ReadFile(full)
	return data, d.root.wrapError("open", name, full, err)
}

// Sub returns the files of a directory.
func (d dirFS) Sub(name string) (fs.FS, error) {
	_, full, err := d.resolveName("sub", name)
	return dirFS{d.root, full, path.Join(d.name, name)}, err
}
