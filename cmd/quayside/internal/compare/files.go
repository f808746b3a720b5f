package compare

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/gitrepo"
)

// maxUserFile is the maximum size of a user's manifest in bytes.
const maxUserFile = 8 << 20

// catalogs returns the directories of a workspace's file-based catalogs, relative to the repository. Manifests
// in these directories are not the user's own. A directory that contains the workspace is omitted.
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

// readUserManifests reads the user's manifests in the repository. It omits files that Git ignores,
// and files in catalogs.
func (c *Comparison) readUserManifests() ([]diff.File, error) {
	others := append(c.catalogs(c.project), c.InRepo(c.project.Settings.OutputDir()))
	var files []diff.File
	err := gitrepo.WalkFiles(c.disk.FS, func(dir string) bool { return slices.Contains(others, dir) }, func(name string, d fs.DirEntry) error {
		if !fleet.IsManifest(name) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxUserFile {
			return err
		}
		data, err := source.File{DisplayPath: filepath.Join(c.disk.Name, name), FS: c.disk.FS, Name: name}.Read()
		files = append(files, diff.File{Path: name, Data: c.disk.Pool.Add(data)})
		return err
	})
	return files, err
}

// readEntry returns the content of a file of a revision, from the pool if possible.
func readEntry(pool *fleet.Pool, rev *gitrepo.Revision, e gitrepo.Entry) ([]byte, error) {
	if have, ok := pool.Get(e.Hash); ok {
		return have, nil
	}
	data, err := rev.ReadEntry(e)
	if err == nil {
		data = pool.AddHashed(e.Hash, data)
	}
	return data, err
}

// commit provides the files of a revision to overlays.
type commit struct {
	rev   *gitrepo.Revision
	files map[string]gitrepo.Entry
	dirs  map[string]bool
	pool  *fleet.Pool
}

func newCommit(rev *gitrepo.Revision, entries []gitrepo.Entry, pool *fleet.Pool) commit {
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
	return readEntry(c.pool, c.rev, e)
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

// readCommit reads the tree and the user's manifests from a commit. p is the workspace at that commit.
func (c *Comparison) readCommit(rev *gitrepo.Revision, p *workspace.Project) (t *fleet.Tree, own []diff.File, err error) {
	entries, err := rev.List(".")
	if err != nil {
		return nil, nil, err
	}
	out, others := c.InRepo(p.Settings.OutputDir()), c.catalogs(p)
	inCatalog := func(name string) bool {
		return slices.ContainsFunc(others, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	}
	var files []diff.File
	for _, e := range entries {
		if !fleet.IsManifest(e.Path) {
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
		data, err := readEntry(c.disk.Pool, rev, e)
		if err != nil {
			return nil, nil, err
		}
		if f := (diff.File{Path: e.Path, Data: data}); rendered {
			files = append(files, f)
		} else {
			own = append(own, f)
		}
	}
	t, err = fleet.NewTree("", out, files, newCommit(rev, entries, c.disk.Pool), c.disk.Pool)
	return t, own, err
}
