package filetree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Dir is a directory on disk that belongs to a root directory. Reading and writing through a Dir
// never leaves the root, neither by a path nor by a symbolic link. The root is opened on first use.
//
// Names are slash-separated and relative to the directory. They may begin with "..".
type Dir struct {
	root *root
	in   string // path of the directory, relative to the root
	name string // path as given by the user
}

// root is a directory to which reading and writing is confined.
type root struct {
	dir  string // absolute path
	kind string // kind of directory for messages: "repository"
	open func() (*os.Root, error)
	fast func() *beneath // nil if unsupported
}

func newRoot(dir, kind string) *root {
	open := sync.OnceValues(func() (*os.Root, error) { return os.OpenRoot(dir) })
	fast := sync.OnceValue(func() *beneath {
		top, err := open()
		if err != nil {
			return nil
		}
		return newBeneath(top)
	})
	return &root{dir, kind, open, fast}
}

// OpenDir returns a directory. Its root is the work tree of the Git repository that contains it. Without a
// repository, the root is the directory itself, and messages call it kind, such as "workspace".
func OpenDir(dir, kind string) Dir {
	top, in, found := repositoryAround(dir)
	if found {
		kind = "repository"
	}
	return Dir{newRoot(top, kind), in, dir}
}

// OpenRootDir returns a directory that is its own root.
func OpenRootDir(dir string) Dir { return Dir{newRoot(dir, "directory"), ".", dir} }

// OpenUserDir returns a directory that the user has named. The directory need not exist. Its root is the work
// tree of the Git repository that contains it. Without a repository, the root is the nearest existing parent,
// and the path may contain symbolic links.
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

// NamedFile returns the directory of a file that the user has named, and the name of the file in
// it.
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

// repositoryAround returns the absolute path of the work tree that contains a directory, and the
// path of the directory relative to it. Without a repository, it returns the directory, "." and
// false.
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

// InRoot returns the path of the directory relative to its root, such as "." or "envs/dev".
func (d Dir) InRoot() string { return d.in }

// Top returns the path of the root. If the path of d is relative to the current directory, so is the result.
func (d Dir) Top() string {
	if d.in == "." {
		return d.name
	}
	return filepath.Join(d.name, strings.Repeat("../", strings.Count(d.in, "/")+1))
}

// Root returns the root as a Dir.
func (d Dir) Root() Dir { return Dir{d.root, ".", d.Top()} }

// Kind returns the kind of the root for messages, such as "repository".
func (d Dir) Kind() string { return d.root.kind }

// String returns the directory as given by the user.
func (d Dir) String() string { return d.name }

// Sub returns the directory at the path name, with the same root.
func (d Dir) Sub(name string) (Dir, error) {
	full, err := d.resolveName(name)
	return Dir{d.root, full, d.displayPath(name)}, err
}

// PathInRoot returns the path of name relative to the root. name may be absolute. inside is false if name is
// outside of the root.
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

// displayPath returns name as a path for messages.
func (d Dir) displayPath(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.name, name)
}

// FS returns the directory as a file system.
func (d Dir) FS() fs.FS { return dirFS(d) }

// Lookup opens a file or directory. For a directory, files is the directory. For a file, files is
// the directory that contains it, and base is its name.
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

// LookupIn returns a function like [Dir.Lookup] for paths that the user has named. Relative paths
// are relative to dir.
func LookupIn(dir string) func(name string) (files fs.FS, base string, err error) {
	return func(name string) (fs.FS, string, error) {
		if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		at, base := NamedFile(name)
		return at.Lookup(base)
	}
}

// Open opens the directory. If it does not exist, Open creates it with permissions perm. The caller
// must close it.
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

// CheckLinks returns an error if a symbolic link on the path of name leads out of the root.
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

// wrapError returns err as an *fs.PathError with the operation op and the path shown. If a symbolic link on
// the path full leads out of the root, the error names this link as the cause.
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

// causeOf returns an error of the file system without its operation and path.
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

// resolveLinks follows the symbolic links on the path full, and returns the resulting path relative to the root.
func (r *root) resolveLinks(full string) (string, error) {
	top, err := r.open()
	if err != nil {
		return "", err
	}
	return ResolveLinks(full, top.Readlink, r.kind, nil)
}

// ErrOutside means that a symbolic link leads out of a root.
var ErrOutside = errors.New("points outside")

// maxLinks is the maximum number of symbolic links on one path.
const maxLinks = 40

// ResolveLinks follows the symbolic links on the path name and returns the resulting path. readLink returns the
// target of a link, or an error for other files. A link that leads out of the root or into a directory .git is
// an error. kind is the kind of the root for the message. plain caches directories that are not links, and may
// be nil.
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
			if len(rest) > 0 && plain != nil { // a directory, which other paths may share
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

// dirFS is the file system of a directory.
type dirFS Dir

// resolveName returns the root and the path of name relative to it.
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
	f, err := openRegular(top, full, d.root.hasStreams())
	if err != nil {
		return nil, d.root.wrapError("open", name, full, err)
	}
	return f, nil
}

// hasStreams reports whether the directory, such as /dev/fd, contains the open files of the process.
func (r *root) hasStreams() bool {
	return r.dir == "/dev" || r.dir == "/dev/fd" || strings.HasPrefix(r.dir, "/proc/")
}

// errIrregular is the error for a FIFO, a device or a socket.
var errIrregular = errors.New("not a regular file")

// openRegular opens a regular file or a directory, without waiting for a writer of a FIFO. If streams is
// true, it opens any file.
func openRegular(top *os.Root, name string, streams bool) (*os.File, error) {
	if streams {
		return top.Open(name)
	}
	f, err := top.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Stat returns information about a file, after following links.
func (d dirFS) Stat(name string) (fs.FileInfo, error) {
	top, full, err := d.resolveName("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := d.root.fast().stat(full, 0)
	if isUndecided(err) {
		info, err = top.Stat(full)
	}
	return info, d.root.wrapError("stat", name, full, err)
}

// Lstat returns information about a file or link, without following links.
func (d dirFS) Lstat(name string) (fs.FileInfo, error) {
	top, full, err := d.resolveName("lstat", name)
	if err != nil {
		return nil, err
	}
	info, err := d.root.fast().stat(full, noFollow)
	if isUndecided(err) {
		info, err = top.Lstat(full)
	}
	return info, d.root.wrapError("lstat", name, full, err)
}

// ReadLink returns the target of a symbolic link.
func (d dirFS) ReadLink(name string) (string, error) {
	top, full, err := d.resolveName("readlink", name)
	if err != nil {
		return "", err
	}
	to, err := top.Readlink(full)
	return to, d.root.wrapError("readlink", name, full, err)
}

// maxAtOnce is the maximum number of bytes of a file to allocate before reading.
const maxAtOnce = 1 << 30

// ReadFile reads a file.
func (d dirFS) ReadFile(name string) ([]byte, error) {
	top, full, err := d.resolveName("open", name)
	if err != nil {
		return nil, err
	}
	data, err := d.root.fast().readFile(full, maxAtOnce)
	if isUndecided(err) {
		data, err = d.readAll(top, full)
	}
	return data, d.root.wrapError("open", name, full, err)
}

func (d dirFS) readAll(top *os.Root, full string) ([]byte, error) {
	f, err := openRegular(top, full, d.root.hasStreams())
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// ReadSmall reads a file. It returns nil if the file is not regular or has more than limit bytes.
func ReadSmall(files fs.FS, name string, limit int64) ([]byte, error) {
	if d, ok := files.(dirFS); ok && fs.ValidPath(name) {
		if data, err := d.root.fast().readFile(path.Join(d.in, name), limit); err == nil {
			return data, nil
		}
	}
	info, err := fs.Stat(files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, err
	}
	return fs.ReadFile(files, name)
}

// ReadDir reads a directory.
func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) { return d.readDir(name, false) }

// ReadDirInfo is like fs.ReadDir, for callers that need the file infos of most entries.
func ReadDirInfo(files fs.FS, name string) ([]fs.DirEntry, error) {
	if d, ok := files.(dirFS); ok {
		return d.readDir(name, true)
	}
	return fs.ReadDir(files, name)
}

func (d dirFS) readDir(name string, infos bool) ([]fs.DirEntry, error) {
	top, full, err := d.resolveName("open", name)
	if err != nil {
		return nil, err
	}
	list, err := d.root.fast().readDir(full, path.Join(filepath.ToSlash(d.root.dir), full), infos)
	for i, e := range list {
		if !infos {
			list[i] = dirFSEntry{e, d, name}
		}
	}
	if isUndecided(err) {
		list, err = fs.ReadDir(top.FS(), full)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, d.root.wrapError("open", name, full, err)
}

// isUndecided reports whether an error of beneath means that the operation must be repeated with os.Root.
func isUndecided(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

// dirFSEntry is an entry of a directory whose file info is read on demand.
type dirFSEntry struct {
	fs.DirEntry
	files dirFS
	dir   string
}

// Info returns the file info of a file or a link.
func (e dirFSEntry) Info() (fs.FileInfo, error) { return e.files.Lstat(path.Join(e.dir, e.Name())) }

// Sub returns the file system of a directory.
func (d dirFS) Sub(name string) (fs.FS, error) {
	_, full, err := d.resolveName("sub", name)
	return dirFS{d.root, full, path.Join(d.name, name)}, err
}

// Within reports whether name is dir or a path below dir. Both must be slash-separated, clean and
// relative, without "..".
func Within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// Relative returns name relative to dir. Both must be slash-separated, clean and relative.
func Relative(dir, name string) string {
	if rest, below := strings.CutPrefix(name, dir+"/"); below {
		return rest
	}
	rel, _ := filepath.Rel(dir, name)
	return filepath.ToSlash(rel)
}
