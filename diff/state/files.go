package state

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
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/project"
)

// maxOwn bounds a file that is looked into for custom resources.
const maxOwn = 8 << 20

// pool holds the content of files by the name that Git gives it, so that what
// both sides have is read and parsed once.
type pool map[string][]byte

// add returns data, or the equal content that the pool holds already.
func (p pool) add(data []byte) []byte { return p.named(gitrepo.HashOf(data), data) }

// named is add of data whose name is known.
func (p pool) named(hash string, data []byte) []byte {
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

// manifests reads the tree of a side, or all manifests there where quayside did
// not write it.
func (c *Comparison) manifests(fsys fs.FS, s *Side) error {
	if _, err := fs.Stat(fsys, s.out); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var names []string
	seen := map[string]fs.FileMode{} // the types of what lies there
	err := fs.WalkDir(fsys, s.out, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			seen[name] = d.Type()
		}
		if err == nil && d.Type().IsRegular() && manifest(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	files, hashes, errs := make([]diff.File, len(names)), make([]string, len(names)), make([]error, len(names))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		work.Go(func() error {
			data, err := project.ReadFile(source.File{Shown: filepath.Join(c.root, s.as, name), FS: fsys, Name: name})
			files[i], hashes[i], errs[i] = diff.File{Path: path.Join(s.as, name), Data: data}, gitrepo.HashOf(data), err
			return nil
		})
	}
	_ = work.Wait() // the first fault is that of the first file, not the one that came first
	for i, err := range errs {
		if err != nil {
			return err
		}
		files[i].Data = c.pool.named(hashes[i], files[i].Data)
	}
	if _, is := seen[path.Join(s.out, layout.ClustersFile)]; is {
		s.walked(seen)
		return s.lies(files)
	}
	s.tree = files
	return nil
}

// walked sees to it that the disk is not asked for what is known of a tree: that
// something is not there, or that it is a directory, or no link.
func (s *Side) walked(seen map[string]fs.FileMode) {
	below, link := s.below, s.link
	absent := func(name string) bool {
		_, there := seen[name]
		return !there && (s.out == "." || strings.HasPrefix(name, s.out+"/"))
	}
	s.below = func(name string) ([]byte, error) {
		if absent(name) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return below(name)
	}
	s.link = func(name string) (string, bool) {
		if mode, there := seen[name]; absent(name) || there && mode.Type() != fs.ModeSymlink {
			return "", false
		}
		return link(name)
	}
}

// onDisk returns a reader of regular files, which follows no symbolic link.
func (c *Comparison) onDisk(fsys fs.FS) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for at := name; at != "."; at = path.Dir(at) {
			if info, err := fs.Lstat(fsys, at); err == nil && info.Mode().Type() == fs.ModeSymlink {
				return nil, fmt.Errorf("%s is a symbolic link: put what it leads to in its place", at)
			}
		}
		data, err := project.ReadFile(source.File{Shown: filepath.Join(c.root, name), FS: fsys, Name: name})
		return c.pool.add(data), err
	}
}

// linksOnDisk returns what knows where symbolic links lead. What leads to dir is
// taken as it is.
func linksOnDisk(fsys fs.FS, dir string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if name == dir || strings.HasPrefix(dir, name+"/") {
			return "", false
		}
		target, err := fs.ReadLink(fsys, name)
		return filepath.ToSlash(target), err == nil
	}
}

// catalogs returns the directories that catalogs of a workspace are read from, as
// seen from the repository. What lies there is not the user's own: it reaches a
// cluster as an operator does, or not at all. One that the workspace itself lies in
// is not among them.
func (c *Comparison) catalogs(p *project.Project) []string {
	var dirs []string
	for _, declared := range p.Settings.Catalogs {
		_, dir := declared.Source.Kind()
		if dir == "" || dir != declared.Source.Prefix() || filepath.IsAbs(dir) {
			continue
		}
		dir = c.InRepo(filepath.ToSlash(dir))
		if dir != "." && !strings.HasPrefix(c.prefix+"/", dir+"/") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ownFiles reads the user's own manifests in the repository around the
// workspace, without what Git ignores and without catalogs.
func (c *Comparison) ownFiles() ([]diff.File, error) {
	ignored, others := gitrepo.NewIgnore(), c.catalogs(c.project)
	var files []diff.File
	err := fs.WalkDir(c.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == c.InRepo(c.project.Settings.Output) || d.Name() == ".git" || slices.Contains(others, name) || ignored.Match(name, true) {
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

// committed reads the tree and the user's own manifests of a commit.
func (c *Comparison) committed(s *Side) error {
	entries, err := s.rev.List(".")
	if err != nil {
		return err
	}
	var tree []diff.File
	there, others := map[string]gitrepo.Entry{}, c.catalogs(s.project)
	inCatalog := func(name string) bool {
		return slices.ContainsFunc(others, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	}
	for _, e := range entries {
		there[e.Path] = e
		if !manifest(e.Path) {
			continue
		}
		rendered := strings.HasPrefix(e.Path, s.out+"/")
		if !rendered {
			if inCatalog(e.Path) {
				continue
			}
			if size, err := s.rev.Size(e); err != nil {
				return err
			} else if size > maxOwn {
				continue
			}
		}
		data, err := c.pool.read(s.rev, e)
		if err != nil {
			return err
		}
		if f := (diff.File{Path: e.Path, Data: data}); rendered {
			tree = append(tree, f)
		} else {
			s.own = append(s.own, f)
		}
	}
	dirs := map[string]bool{}
	for name := range there {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	s.link = func(name string) (string, bool) {
		if _, file := there[name]; file || dirs[name] {
			return "", false
		}
		return s.rev.Link(name)
	}
	s.below = func(name string) ([]byte, error) {
		e, ok := there[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return c.pool.read(s.rev, e)
	}
	return s.lies(tree)
}

// manifest reports whether a file may hold Kubernetes objects, by its name.
func manifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
