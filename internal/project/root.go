package project

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
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/workspace"
)

// maxFile bounds what is read of one file that a person may have written.
const maxFile = 64 << 20

// Root is where a workspace lies: a directory on disk, one of a revision, or any
// file system.
type Root struct {
	files  fs.FS
	lookup func(path string) (source.File, error)
	dir    string        // on disk, as the user would name it; empty for files that are not there
	name   string        // put before the names of the settings and the lock: "main:ops/"
	repo   func() string // the path of the workspace in its repository: "."
	around func() fs.FS  // the files of that repository
}

// Dir returns the directory dir, as the user would name it. Files that
// quayside.yaml names may lie outside of it.
func Dir(dir string) Root {
	return Root{
		files: os.DirFS(dir), lookup: source.Below(dir), dir: dir,
		repo:   func() string { return InRepository(dir) },
		around: func() fs.FS { return repositoryAround(dir) },
	}
}

// repositoryAround returns the files of the repository around dir, out of which no
// link leads; those of dir where there is none.
func repositoryAround(dir string) fs.FS {
	top := filepath.Join(dir, up(InRepository(dir)))
	if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
		return os.DirFS(dir)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return os.DirFS(top) // which says what is wrong with it
	}
	return root.FS()
}

// up returns the way from a directory of a repository, by its path there, to the
// top: "../..".
func up(in string) string {
	if in == "." {
		return in
	}
	return strings.Repeat("../", strings.Count(in, "/")) + ".."
}

// Files returns the directory in of a file system that no name leads out of. name
// distinguishes it from all others and stands before the names of the settings and
// of the lock in positions.
func Files(fsys fs.FS, name, in string) Root {
	files, err := fs.Sub(fsys, in)
	if err != nil {
		files = fsys // nothing is found by that name in it either
	}
	r := Root{files: files, name: name, repo: func() string { return in }, around: func() fs.FS { return fsys }}
	r.lookup = func(name string) (source.File, error) {
		f := source.File{Path: r.name + path.Clean(filepath.ToSlash(name)), Shown: name}
		from, at := files, path.Clean(filepath.ToSlash(name))
		if !fs.ValidPath(at) && !path.IsAbs(at) {
			from, at = fsys, path.Join(in, at)
		}
		if !fs.ValidPath(at) {
			return f, fmt.Errorf("%s lies outside the repository", name)
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

// Revision returns the directory dir of a revision.
func Revision(rev *gitrepo.Revision, dir string) Root {
	return Files(rev.FS("."), rev.Name()+":"+strings.TrimPrefix(dir+"/", "./"), dir)
}

// Find returns the directory of the workspace that the current directory is
// in: the nearest one upwards that holds quayside.yaml, else the current one.
func Find() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir, up := here, "."; ; dir, up = filepath.Dir(dir), filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(dir, workspace.FileName)); err == nil {
			return up, nil
		}
		if dir == filepath.Dir(dir) {
			return ".", nil
		}
	}
}

// Bounds on the search for workspaces below a directory.
const (
	maxSearchDepth = 8
	maxSearched    = 50_000 // files and directories
)

// Workspaces returns the directories at and below top that hold a workspace,
// relative to top, sorted. An empty top stands for the root of the Git
// repository around the current directory, or for that directory where there is
// none. What begins with a dot is passed over.
func Workspaces(top string) (string, []string, error) {
	if top == "" {
		top = "."
		top = up(InRepository(top))
	}
	var found []string
	seen := 0
	err := fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > 20*maxSearched {
			return fmt.Errorf("more than %d files below %s to look for workspaces: name a directory with -C", 20*maxSearched, top)
		}
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && d.Name() == workspace.FileName:
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

// Below returns the directories below the root that hold a workspace, sorted.
// What begins with a dot is passed over, and so is what lies below a workspace.
// The search has bounds; past them it returns what it has found.
func (r Root) Below() []string {
	var found []string
	seen := 0
	// A directory that cannot be read holds no workspace that can.
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
		if _, err := fs.Stat(r.files, path.Join(name, workspace.FileName)); err == nil {
			found = append(found, name)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// InRepository returns the path of dir in the repository around it: below where
// .git is, else ".".
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

// Environment returns what the workspace is called: metadata.name, else its
// directory in the repository; nothing at the top of one.
func (p *Project) Environment() string {
	dir := path.Base(p.repo())
	if dir == "." {
		dir = ""
	}
	return cmp.Or(p.Settings.Name, dir)
}

// Repository returns the files of the repository that the workspace lies in, as far
// as they can be read, and the path of the workspace among them. Where there is no
// repository they are those of the workspace.
func (r Root) Repository() (fs.FS, string) { return r.around(), r.repo() }

// Read reads a regular file of at most maxFile bytes.
func (r Root) Read(name string) ([]byte, error) {
	f, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return ReadFile(f)
}

// ReadFile reads a regular file that a person may have written, and that is not
// too large for that.
func ReadFile(f source.File) ([]byte, error) {
	if f.Name == "" {
		return nil, fmt.Errorf("%s is not a regular file", f.Shown)
	}
	info, err := fs.Stat(f.FS, f.Name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", f.Shown)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: %d bytes, more than the %d that are read", f.Shown, info.Size(), maxFile)
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(f.FS, f.Name)
	}
	if at := new(fs.PathError); errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: f.Shown, Err: at.Err}
	}
	return data, err
}

// exists reports whether there is a file or directory of that name.
func (r Root) exists(name string) bool {
	_, err := r.lookup(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// below returns name, which is relative to the repository, relative to the
// workspace: "." where it lies at or above it. It is false where it lies
// elsewhere.
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
