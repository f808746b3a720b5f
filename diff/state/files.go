package state

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/project"
)

// maxOwn bounds a file that is looked into for custom resources.
const maxOwn = 8 << 20

// pool holds the content of files by the name that Git gives it, so that what
// both sides have is read and parsed once.
type pool map[string][]byte

// add returns data, or the equal content that the pool holds already.
func (p pool) add(data []byte) []byte {
	hash := gitrepo.HashOf(data)
	if have, ok := p[hash]; ok {
		return have
	}
	p[hash] = data
	return data
}

// read returns the content of a file of a revision.
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

// manifests reads the base of the tree at dir of fsys, or all its manifests
// where quayside did not write it. as stands before the paths in fsys.
func (c *Comparison) manifests(fsys fs.FS, dir, as string) ([]diff.File, error) {
	if _, err := fs.Stat(fsys, dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []diff.File
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !manifest(name) {
			return err
		}
		data, err := project.ReadFile(source.File{Shown: filepath.Join(c.root, as, name), FS: fsys, Name: name})
		files = append(files, diff.File{Path: path.Join(as, name), Data: c.pool.add(data)})
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(fsys, path.Join(dir, filetree.Index)); err != nil {
		return files, nil
	}
	return diff.Base(path.Join(as, dir), files), nil
}

// ownFiles reads the user's own manifests in the repository around the
// workspace, without what Git ignores.
func (c *Comparison) ownFiles() ([]diff.File, error) {
	ignored := gitrepo.NewIgnore()
	var files []diff.File
	err := fs.WalkDir(c.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == c.InRepo(c.project.Settings.Output) || d.Name() == ".git" || ignored.Match(name, true) {
				return fs.SkipDir
			}
			return ignored.Load(filepath.Join(c.root, name), name)
		}
		if !d.Type().IsRegular() || !manifest(name) || ignored.Match(name, false) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxOwn {
			return err
		}
		data, err := project.ReadFile(source.File{Shown: filepath.Join(c.root, name), FS: c.files, Name: name})
		files = append(files, diff.File{Path: name, Data: c.pool.add(data)})
		return err
	})
	return files, err
}

// committed reads the base of the tree and the user's own manifests of a
// commit.
func (c *Comparison) committed(rev *gitrepo.Revision, output string) (tree, own []diff.File, err error) {
	entries, err := rev.List(".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !manifest(e.Path) {
			continue
		}
		rendered := strings.HasPrefix(e.Path, output+"/")
		if !rendered {
			if size, err := rev.Size(e); err != nil {
				return nil, nil, err
			} else if size > maxOwn {
				continue
			}
		}
		data, err := c.pool.read(rev, e)
		if err != nil {
			return nil, nil, err
		}
		if f := (diff.File{Path: e.Path, Data: data}); rendered {
			tree = append(tree, f)
		} else {
			own = append(own, f)
		}
	}
	return diff.Base(output, tree), own, nil
}

// manifest reports whether a file may hold Kubernetes objects, by its name.
func manifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
