package cli

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/gitrepo"
)

// maxOwn bounds a file that is looked into for custom resources.
const maxOwn = 8 << 20

// pool holds the content of files by the name that Git gives it, so that what
// both sides have is read and parsed once.
type pool struct{ byHash map[string][]byte }

func newPool() *pool { return &pool{map[string][]byte{}} }

// add returns data, or the equal content that the pool holds already.
func (p *pool) add(data []byte) []byte {
	hash := gitrepo.HashOf(data)
	if have, ok := p.byHash[hash]; ok {
		return have
	}
	p.byHash[hash] = data
	return data
}

// read returns the content of a file of a revision.
func (p *pool) read(rev *gitrepo.Revision, e gitrepo.Entry) ([]byte, error) {
	if have, ok := p.byHash[e.Hash]; ok {
		return have, nil
	}
	data, err := rev.ReadEntry(e)
	if err == nil {
		p.byHash[e.Hash] = data
	}
	return data, err
}

// diskTree reads the base of a tree on disk, or all its manifests where
// quayside did not write it. Paths begin with as.
func (c *compared) diskTree(dir, as string) ([]diff.File, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []diff.File
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !manifest(name) {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		data, err := readFile(name)
		if err != nil {
			return err
		}
		files = append(files, diff.File{Path: path.Join(as, filepath.ToSlash(rel)), Data: c.pool.add(data)})
		return nil
	})
	if err != nil || !isTree(dir) {
		return files, err
	}
	return diff.Base(as, files), nil
}

// diskOwn reads the user's own manifests in the repository around the
// workspace, without what Git ignores.
func (c *compared) diskOwn(s *space) ([]diff.File, error) {
	root := s.dir
	if c.repo != nil {
		root = c.repo.Root()
	}
	skip, err := filepath.Abs(s.path(s.ws.Output))
	if err != nil {
		return nil, err
	}
	ignored := gitrepo.NewIgnore()
	var files []diff.File
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if abs, err := filepath.Abs(name); err == nil && abs == skip || d.Name() == ".git" || ignored.Match(rel, true) {
				return fs.SkipDir
			}
			return ignored.Load(name, rel)
		}
		if !d.Type().IsRegular() || !manifest(name) || ignored.Match(rel, false) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxOwn {
			return err
		}
		data, err := readFile(name)
		if err != nil {
			return err
		}
		files = append(files, diff.File{Path: rel, Data: c.pool.add(data)})
		return nil
	})
	return files, err
}

// revisionFiles reads the base of the tree and the user's own manifests of a
// commit.
func (c *compared) revisionFiles(rev *gitrepo.Revision, output string) (tree, own []diff.File, err error) {
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
			if size, err := rev.Size(e); err != nil || size > maxOwn {
				if err != nil {
					return nil, nil, err
				}
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
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}
