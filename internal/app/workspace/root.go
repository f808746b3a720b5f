package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/settings"
)

// maxFile limits the size of a file to read.
const maxFile = 64 << 20

// Root is the location of a workspace: a directory on disk or in a revision, or any file
// system.
type Root struct {
	files  fs.FS
	lookup func(path string) (source.File, error)
	dir    string        // on disk, as given by the user; empty for other file systems
	name   string        // prefix of the names of the settings and the lock: "main:ops/"
	repo   func() string // path of the workspace in its repository: "."
	around func() fs.FS  // files of that repository
}

// Dir returns the root for a directory on disk. Files named in quayside.yaml may be outside
// of it.
func Dir(dir string) Root {
	return Root{
		files: os.DirFS(dir), lookup: source.LookupIn(dir), dir: dir,
		repo:   func() string { return InRepository(dir) },
		around: func() fs.FS { return repositoryAround(dir) },
	}
}

// repositoryAround returns the files of the repository around dir, or of dir without a
// repository. No symbolic link leads out of the repository.
func repositoryAround(dir string) fs.FS {
	top := filepath.Join(dir, pathToTop(InRepository(dir)))
	if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
		return os.DirFS(dir)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return os.DirFS(top) // reading it returns the error
	}
	return root.FS()
}

// pathToTop returns the relative path from a directory, given by its path in the repository,
// to the top: "../..".
func pathToTop(in string) string {
	if in == "." {
		return in
	}
	return strings.Repeat("../", strings.Count(in, "/")) + ".."
}

// Files returns the root for directory in of fsys, which no path may leave. name is unique to
// it, and prefixes the names of the settings and of the lock in positions.
func Files(fsys fs.FS, name, in string) Root {
	files, err := fs.Sub(fsys, in)
	if err != nil {
		files = fsys // no file is found in it
	}
	r := Root{files: files, name: name, repo: func() string { return in }, around: func() fs.FS { return fsys }}
	r.lookup = func(name string) (source.File, error) {
		f := source.File{Path: r.name + path.Clean(filepath.ToSlash(name)), DisplayPath: name}
		from, at := files, path.Clean(filepath.ToSlash(name))
		if !fs.ValidPath(at) && !path.IsAbs(at) {
			from, at = fsys, path.Join(in, at)
		}
		if !fs.ValidPath(at) {
			return f, fmt.Errorf("%s is outside of the repository", name)
		}
		info, err := fs.Stat(from, at)
		if err != nil {
			return f, err
		}
		if !info.IsDir() {
			at, f.Name = path.Dir(at), path.Base(at)
		}
		f.FS, err = fs.Sub(from, at)
		return f, err
	}
	return r
}

// Revision returns the root for a directory of a revision.
func Revision(rev *gitrepo.Revision, dir string) Root {
	return Files(rev.FS("."), rev.Name()+":"+strings.TrimPrefix(dir+"/", "./"), dir)
}

// Find returns the directory of the workspace around the current directory: the nearest
// parent with a quayside.yaml, or the current directory.
func Find() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir, up := here, "."; ; dir, up = filepath.Dir(dir), filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(dir, settings.FileName)); err == nil {
			return up, nil
		}
		if dir == filepath.Dir(dir) {
			return ".", nil
		}
	}
}

// Limits of the search for workspaces below a directory.
const (
	maxSearchDepth = 8
	maxSearched    = 50_000 // files and directories
)

// Workspaces returns the directories at and below top that contain a workspace, relative to
// top, sorted. An empty top is the root of the Git repository around the current directory,
// or that directory if there is none. Names with a leading dot are skipped.
func Workspaces(top string) (string, []string, error) {
	if top == "" {
		top = "."
		top = pathToTop(InRepository(top))
	}
	var found []string
	seen := 0
	err := fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > 20*maxSearched {
			return fmt.Errorf("more than %d files below %s to search for workspaces: choose a directory with -C", 20*maxSearched, top)
		}
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && d.Name() == settings.FileName:
			found = append(found, path.Dir(name))
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no workspace in or below %s", top)
	}
	slices.Sort(found)
	return top, found, err
}

// Below returns the directories below the root that contain a workspace, sorted. It skips
// names with a leading dot, and does not search inside workspaces. At its limits it returns
// the workspaces found so far.
func (r Root) Below() []string {
	var found []string
	seen := 0
	// An unreadable directory has no usable workspace.
	_ = fs.WalkDir(r.files, ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSearched {
			return fs.SkipAll
		}
		if err != nil || !d.IsDir() || name == "." {
			return nil
		}
		if strings.HasPrefix(d.Name(), ".") || strings.Count(name, "/") >= maxSearchDepth {
			return fs.SkipDir
		}
		if _, err := fs.Stat(r.files, path.Join(name, settings.FileName)); err == nil {
			found = append(found, name)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// InRepository returns the path of dir in the Git repository around it, or "." if there is
// none.
func InRepository(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "."
	}
	for top := abs; top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			rel, _ := filepath.Rel(top, abs)
			return filepath.ToSlash(rel)
		}
	}
	return "."
}

// Environment returns the name of the workspace: metadata.name, or its directory in the
// repository; "" at the top of one.
func (p *Project) Environment() string {
	dir := path.Base(p.repo())
	if dir == "." {
		dir = ""
	}
	return cmp.Or(p.Settings.Name, dir)
}

// Repository returns the readable files of the repository around the workspace, and the path
// of the workspace among them. Without a repository these are the files of the workspace.
func (r Root) Repository() (fs.FS, string) { return r.around(), r.repo() }

// Read reads a regular file of at most maxFile bytes.
func (r Root) Read(name string) ([]byte, error) {
	f, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return ReadFile(f)
}

// ReadFile reads a regular file of at most maxFile bytes.
func ReadFile(f source.File) ([]byte, error) {
	if f.Name == "" {
		return nil, fmt.Errorf("%s is not a regular file", f.DisplayPath)
	}
	info, err := fs.Stat(f.FS, f.Name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", f.DisplayPath)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: %d bytes exceed the limit of %d", f.DisplayPath, info.Size(), maxFile)
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

// exists reports whether there is a file or directory of that name.
func (r Root) exists(name string) bool {
	_, err := r.lookup(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// below converts a path relative to the repository to one relative to the workspace: "." for
// the workspace itself and its parents. It returns false for a path elsewhere.
func (r Root) below(name string) (string, bool) {
	rel, err := filepath.Rel(filepath.FromSlash(r.repo()), filepath.FromSlash(path.Clean(name)))
	if err != nil {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	if strings.Trim(rel, "./") == "" {
		return ".", true
	}
	return rel, !strings.HasPrefix(rel, "../")
}
