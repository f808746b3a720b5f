package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// maxUserFile limits the size in bytes of the user's manifests.
const maxUserFile = 8 << 20

// pool caches file contents by Git hash. Both sides share the memory of equal files.
type pool map[string][]byte

// add returns data, or equal content from the pool.
func (p pool) add(data []byte) []byte { return p.addHashed(gitrepo.HashOf(data), data) }

// addHashed is like add, for data with a known hash.
func (p pool) addHashed(hash string, data []byte) []byte {
	if have, ok := p[hash]; ok {
		return have
	}
	p[hash] = data
	return data
}

func (p pool) read(rev *gitrepo.Revision, e gitrepo.Entry) ([]byte, error) {
	if have, ok := p[e.Hash]; ok {
		return have, nil
	}
	data, err := rev.ReadEntry(e)
	if err == nil {
		p[e.Hash] = data
	}
	return data, err
}

// disk is the files below a directory on disk. It rejects symbolic links, except out itself.
type disk struct {
	fsys  fs.FS
	shown string // prefix of paths in errors
	out   string // directory of the tree
	pool  pool

	types    map[string]fs.FileMode // types of all files in out, a cache; nil: unknown
	contents map[string][]byte      // contents of the manifests in out
}

// isAbsent reports whether a path does not exist according to d.types.
func (d disk) isAbsent(name string) bool {
	_, there := d.types[name]
	return !there && d.types != nil && filetree.Within(name, d.out)
}

// ReadFile reads a regular file. A symbolic link in its path is an error.
func (d disk) ReadFile(name string) ([]byte, error) {
	if data, known := d.contents[name]; known {
		return data, nil
	}
	if d.isAbsent(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := fs.Lstat(d.fsys, at); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, fmt.Errorf("%s is a symbolic link: replace it with a copy of its target", at)
		}
	}
	data, err := d.read(name)
	return d.pool.add(data), err
}

// read reads a regular file without the check for symbolic links.
func (d disk) read(name string) ([]byte, error) {
	return workspace.ReadFile(source.File{DisplayPath: filepath.Join(d.shown, name), FS: d.fsys, Name: name})
}

// ReadLink returns the target of a symbolic link.
func (d disk) ReadLink(name string) (string, error) {
	if mode, there := d.types[name]; there && mode.Type() != fs.ModeSymlink || d.isAbsent(name) || filetree.Within(d.out, name) {
		return "", fs.ErrInvalid
	}
	target, err := fs.ReadLink(d.fsys, name)
	return filepath.ToSlash(target), err
}

// walk returns a copy of d with types and have set, and the manifests in d.out, sorted by path.
func (d disk) walk() (disk, []diff.File, error) {
	if _, err := fs.Stat(d.fsys, d.out); errors.Is(err, fs.ErrNotExist) {
		return d, nil, nil
	}
	var names []string
	d.types, d.contents = map[string]fs.FileMode{}, map[string][]byte{}
	err := fs.WalkDir(d.fsys, d.out, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			d.types[name] = e.Type()
		}
		if err == nil && e.Type().IsRegular() && isManifest(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return d, nil, err
	}
	files, hashes, errs := make([]diff.File, len(names)), make([]string, len(names)), make([]error, len(names))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		work.Go(func() error {
			data, err := d.read(name)
			files[i], hashes[i], errs[i] = diff.File{Path: name, Data: data}, gitrepo.HashOf(data), err
			return nil
		})
	}
	_ = work.Wait() // errs has the errors, so that the first one by path is returned
	for i, err := range errs {
		if err != nil {
			return d, nil, err
		}
		files[i].Data = d.pool.addHashed(hashes[i], files[i].Data)
		d.contents[files[i].Path] = files[i].Data
	}
	return d, files, nil
}

// readTree reads the tree in directory d.out. If the directory has no list of clusters, the tree
// consists of all its manifests. prefix is the prefix of displayed paths.
func readTree(prefix string, d disk) (*tree, error) {
	d, files, err := d.walk()
	if err != nil {
		return nil, err
	}
	if _, is := d.types[path.Join(d.out, layout.ClustersFile)]; is {
		return newTree(prefix, d.out, files, d)
	}
	t, err := newTree(prefix, d.out, nil, d)
	if err == nil {
		t.manifests = t.withDisplayPaths(files)
	}
	return t, err
}

// disk returns the files of the repository or, if there is no repository, of the workspace.
func (c *Comparison) disk() disk {
	return disk{fsys: c.files, shown: c.root, out: c.InRepo(c.project.Settings.Output), pool: c.pool}
}

// emptyTree returns an empty tree in the output directory of the workspace.
func (c *Comparison) emptyTree() (*tree, error) { return newTree("", c.disk().out, nil, c.disk()) }

// catalogs returns the directories of file-based catalogs of a workspace, relative to the
// repository. Their files are not the user's own manifests. It leaves out directories that
// contain the workspace itself.
func (c *Comparison) catalogs(p *workspace.Project) []string {
	var dirs []string
	for _, declared := range p.Settings.Catalogs {
		dir, ok := declared.Source.Directory()
		if !ok || filepath.IsAbs(dir) {
			continue
		}
		dir = c.InRepo(filepath.ToSlash(dir))
		if dir != "." && !strings.HasPrefix(c.clone.Prefix+"/", dir+"/") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// readUserManifests reads the user's manifests in the repository, without files ignored by Git
// and without catalogs.
func (c *Comparison) readUserManifests() ([]diff.File, error) {
	others := append(c.catalogs(c.project), c.InRepo(c.project.Settings.Output))
	var files []diff.File
	err := gitrepo.WalkFiles(c.files, func(dir string) bool { return slices.Contains(others, dir) }, func(name string, d fs.DirEntry) error {
		if !isManifest(name) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxUserFile {
			return err
		}
		data, err := workspace.ReadFile(source.File{DisplayPath: filepath.Join(c.root, name), FS: c.files, Name: name})
		files = append(files, diff.File{Path: name, Data: c.pool.add(data)})
		return err
	})
	return files, err
}

// commit is the files of a revision.
type commit struct {
	rev   *gitrepo.Revision
	files map[string]gitrepo.Entry
	dirs  map[string]bool
	pool  pool
}

func newCommit(rev *gitrepo.Revision, entries []gitrepo.Entry, pool pool) commit {
	c := commit{rev: rev, files: map[string]gitrepo.Entry{}, dirs: map[string]bool{}, pool: pool}
	for _, e := range entries {
		c.files[e.Path] = e
		for dir := path.Dir(e.Path); !c.dirs[dir]; dir = path.Dir(dir) {
			c.dirs[dir] = true
		}
	}
	return c
}

// ReadFile reads a regular file.
func (c commit) ReadFile(name string) ([]byte, error) {
	e, ok := c.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return c.pool.read(c.rev, e)
}

// ReadLink returns the target of a symbolic link.
func (c commit) ReadLink(name string) (string, error) {
	if _, file := c.files[name]; !file && !c.dirs[name] {
		if target, is := c.rev.Link(name); is {
			return target, nil
		}
	}
	return "", fs.ErrInvalid
}

// readCommit reads the tree and the user's manifests from a commit; p is the workspace in that
// commit.
func (c *Comparison) readCommit(rev *gitrepo.Revision, p *workspace.Project) (t *tree, own []diff.File, err error) {
	entries, err := rev.List(".")
	if err != nil {
		return nil, nil, err
	}
	out, others := c.InRepo(p.Settings.Output), c.catalogs(p)
	inCatalog := func(name string) bool {
		return slices.ContainsFunc(others, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	}
	var files []diff.File
	for _, e := range entries {
		if !isManifest(e.Path) {
			continue
		}
		rendered := strings.HasPrefix(e.Path, out+"/")
		if !rendered {
			if inCatalog(e.Path) {
				continue
			}
			if size, err := rev.Size(e); err != nil {
				return nil, nil, err
			} else if size > maxUserFile {
				continue
			}
		}
		data, err := c.pool.read(rev, e)
		if err != nil {
			return nil, nil, err
		}
		if f := (diff.File{Path: e.Path, Data: data}); rendered {
			files = append(files, f)
		} else {
			own = append(own, f)
		}
	}
	t, err = newTree("", out, files, newCommit(rev, entries, c.pool))
	return t, own, err
}

// isManifest reports whether a file may contain Kubernetes objects, by its extension.
func isManifest(name string) bool {
	return yamlnode.HasExtension(name)
}
