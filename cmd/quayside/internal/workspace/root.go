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
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/settings"
)

// Root is the location of a workspace: a directory on disk or in a revision, or any file
// system.
type Root struct {
	files     fs.FS
	lookup    func(path string) (source.File, error)
	disk      filetree.Dir      // zero if the workspace is not on disk
	allowed   []string          // directories outside of the repository whose files the workspace may use
	dir       string            // as the user gave it; empty if the workspace is not on disk
	rev       *gitrepo.Revision // nil unless the workspace is in a Git revision
	name      string            // prefix of file names in positions, such as "main:ops/"
	repoPath  func() string     // path of the workspace in its repository, such as "." or "envs/prod"
	repoFiles func() fs.FS      // files of the repository
}

// Dir returns the root for a directory on disk. Paths and symbolic links cannot leave its Git
// repository or, if there is none, the directory. They can lead to the allowed directories.
func Dir(dir string, allowed ...string) Root {
	r := onDisk(dir)
	r.allowed = allowed
	r.lookup = func(name string) (source.File, error) {
		shown := filepath.FromSlash(name)
		if !filepath.IsAbs(shown) {
			shown = filepath.Join(dir, shown)
		}
		if _, inside := r.disk.PathInRoot(name); inside {
			return source.FileIn(r.disk, name, shown)
		}
		for _, other := range allowed {
			at, err := filepath.Abs(shown)
			if err != nil || !filepath.IsAbs(other) {
				continue
			}
			if rel, err := filepath.Rel(other, at); err == nil && filepath.IsLocal(rel) {
				return source.FileIn(filetree.OpenRootDir(other), filepath.ToSlash(rel), shown)
			}
		}
		return source.File{}, fmt.Errorf("%s is outside of the %s: copy it inside, or set %s to a directory that contains it", name, r.disk.Kind(), AllowedEnv)
	}
	return r
}

// beside returns the root of another workspace of the repository, with the same allowed directories. dir is
// relative to the repository.
func (r Root) beside(dir string) Root {
	return Dir(filepath.Join(r.Top(), filepath.FromSlash(dir)), r.allowed...)
}

// AllowedEnv is the environment variable that lists directories outside of the repository whose
// files a workspace may use. Its format is that of PATH.
const AllowedEnv = "QUAYSIDE_ALLOW_OUTSIDE"

// Arguments returns the root for paths in command-line arguments, which are relative to dir. Paths
// may leave dir. Symbolic links cannot leave the repository that contains the path.
func Arguments(dir string) Root {
	r := onDisk(dir)
	r.lookup = source.LookupIn(dir)
	return r
}

func onDisk(dir string) Root {
	disk := filetree.OpenDir(dir, "workspace")
	return Root{
		files: disk.FS(), disk: disk, dir: dir, repoPath: disk.InRoot,
		repoFiles: func() fs.FS { return disk.Root().FS() },
	}
}

// Files returns the root for a directory of fsys: in is its path. Paths cannot leave fsys. name is
// a unique prefix of file names in positions, such as "main:ops/".
func Files(fsys fs.FS, name, in string) Root {
	files, err := fs.Sub(fsys, in)
	if err != nil {
		files = fsys // in is invalid: no file will be found
	}
	r := Root{files: files, name: name, repoPath: func() string { return in }, repoFiles: func() fs.FS { return fsys }}
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

// Top returns the full path of the Git work tree that contains the workspace. Without a work tree, it returns
// the path of the workspace.
func (r Root) Top() string {
	top, err := filepath.Abs(r.disk.Top())
	if err != nil {
		return r.dir
	}
	return top
}

// Revision returns the root for a directory in a Git revision.
func Revision(rev *gitrepo.Revision, dir string) Root {
	r := Files(rev.FS("."), rev.Name()+":"+strings.TrimPrefix(dir+"/", "./"), dir)
	r.rev = rev
	return r
}

// Find searches for a quayside.yaml in the current directory and its parents. It returns the
// relative path of the nearest directory that has one, or "." if there is none.
func Find() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir, rel := here, "."; ; dir, rel = filepath.Dir(dir), filepath.Join(rel, "..") {
		if _, err := os.Stat(filepath.Join(dir, settings.FileName)); err == nil {
			return rel, nil
		}
		if dir == filepath.Dir(dir) {
			return ".", nil
		}
	}
}

// Limits for the search for workspaces.
const (
	maxSearchDepth = 8
	maxSearched    = 50_000 // number of files and directories
)

// TopDir returns the directory to search for workspaces: dir or, if dir is empty, the root of the
// Git repository around the current directory. Without a repository, it is the current directory.
func TopDir(dir string) string {
	if dir == "" {
		return filetree.OpenDir(".", "").Top()
	}
	return dir
}

// Workspaces returns the directories at and below top that contain a workspace, relative to top,
// sorted. It skips directories whose name starts with a dot. It returns nil if there is no
// workspace, or if top does not exist.
func Workspaces(top string) ([]string, error) {
	var found []string
	seen := 0
	err := fs.WalkDir(filetree.OpenDir(top, "").FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > 20*maxSearched {
			return fmt.Errorf("more than %d files below %s to search for workspaces: choose a directory with -C", 20*maxSearched, top)
		}
		switch {
		case name == "." && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && d.Name() == settings.FileName:
			found = append(found, path.Dir(name))
		}
		return nil
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// WorkspacesAt is like Workspaces, for a revision. top is a directory in the repository.
func WorkspacesAt(rev *gitrepo.Revision, top string) ([]string, error) {
	entries, err := rev.List(top)
	var found []string
	for _, e := range entries {
		name := strings.TrimPrefix(e.Path, strings.TrimPrefix(top+"/", "./"))
		if path.Base(name) == settings.FileName && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.") {
			found = append(found, path.Dir(name))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// WorkspacesBelow returns the directories below the root that contain a workspace, sorted. It skips
// names that start with a dot, and does not search in workspaces. Beyond maxSearched files and
// directories, or below maxSearchDepth, it does not find workspaces.
func (r Root) WorkspacesBelow() []string {
	var found []string
	seen := 0
	// Unreadable directories are ignored, because their workspaces cannot be used.
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

// InRepository returns the path of dir in its Git repository, or "." if there is no repository.
func InRepository(dir string) string { return filetree.OpenDir(dir, "").InRoot() }

// Environment returns the name of the workspace: metadata.name, or else the name of its directory.
// At the top of a repository it can be "".
func (p *Opened) Environment() string {
	dir := path.Base(p.repoPath())
	if dir == "." {
		dir = ""
	}
	return cmp.Or(p.Settings.Name, dir)
}

// Repository returns the files of the workspace's repository, and the path of the workspace in it.
// If there is no repository, it returns the files of the workspace, and ".".
func (r Root) Repository() (fs.FS, string) { return r.repoFiles(), r.repoPath() }

// Read reads a regular file, whose size is limited.
func (r Root) Read(name string) ([]byte, error) {
	f, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return f.Read()
}

// exists reports whether a file or directory exists.
func (r Root) exists(name string) bool {
	_, err := r.lookup(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// pathInside converts a path in the repository to a path in the workspace. For the workspace itself
// and its parents, it returns ".". For other paths outside of the workspace, it returns false.
func (r Root) pathInside(name string) (string, bool) {
	rel, err := filepath.Rel(filepath.FromSlash(r.repoPath()), filepath.FromSlash(path.Clean(name)))
	if err != nil {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	if strings.Trim(rel, "./") == "" {
		return ".", true
	}
	return rel, !strings.HasPrefix(rel, "../")
}
