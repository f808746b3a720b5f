package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Pool saves memory and time: trees with the same pool share equal files and the results of kustomize builds.
type Pool struct {
	files map[string][]byte     // by Git hash
	built map[[32]byte][][]byte // by the digest of the overlay
}

// NewPool returns an empty Pool.
func NewPool() *Pool { return &Pool{map[string][]byte{}, map[[32]byte][][]byte{}} }

// Add returns equal content from the pool. If the pool has none, Add adds data and returns it.
func (p *Pool) Add(data []byte) []byte { return p.AddHashed(gitrepo.HashOf(data), data) }

// AddHashed is like Add, for data with a known hash.
func (p *Pool) AddHashed(hash string, data []byte) []byte {
	if have, ok := p.files[hash]; ok {
		return have
	}
	p.files[hash] = data
	return data
}

// Get returns the content with a Git hash, if the pool has it.
func (p *Pool) Get(hash string) ([]byte, bool) {
	data, ok := p.files[hash]
	return data, ok
}

// Disk reads the files below a directory on disk. It rejects symbolic links, except for Out itself.
type Disk struct {
	FS   fs.FS
	Name string // prefix for paths in errors
	Out  string // directory of the tree
	Pool *Pool

	types    map[string]fs.FileMode // cache: types of all files in Out; nil: unknown
	contents map[string][]byte      // cache: contents of the manifests in Out
}

// isAbsent reports whether d.types shows that a path does not exist.
func (d Disk) isAbsent(name string) bool {
	_, there := d.types[name]
	return !there && d.types != nil && filetree.Within(name, d.Out)
}

// ReadFile reads a regular file. A symbolic link in its path is an error.
func (d Disk) ReadFile(name string) ([]byte, error) {
	if data, known := d.contents[name]; known {
		return data, nil
	}
	if d.isAbsent(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := fs.Lstat(d.FS, at); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, fmt.Errorf("%s is a symbolic link: replace it with a copy of its target", at)
		}
	}
	data, err := d.read(name)
	return d.Pool.Add(data), err
}

// read reads a regular file without the check for symbolic links.
func (d Disk) read(name string) ([]byte, error) {
	return source.File{DisplayPath: filepath.Join(d.Name, name), FS: d.FS, Name: name}.Read()
}

// ReadLink returns the target of a symbolic link.
func (d Disk) ReadLink(name string) (string, error) {
	if mode, there := d.types[name]; there && mode.Type() != fs.ModeSymlink || d.isAbsent(name) || filetree.Within(d.Out, name) {
		return "", fs.ErrInvalid
	}
	target, err := fs.ReadLink(d.FS, name)
	return filepath.ToSlash(target), err
}

// walk reads the manifests in d.Out. It returns a copy of d with its caches filled, and the
// manifests sorted by path.
func (d Disk) walk() (Disk, []diff.File, error) {
	if _, err := fs.Stat(d.FS, d.Out); errors.Is(err, fs.ErrNotExist) {
		return d, nil, nil
	}
	var names []string
	d.types, d.contents = map[string]fs.FileMode{}, map[string][]byte{}
	err := fs.WalkDir(d.FS, d.Out, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			d.types[name] = e.Type()
		}
		if err == nil && e.Type().IsRegular() && IsManifest(name) {
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
	_ = work.Wait() // errors are in errs: the first by path is returned
	for i, err := range errs {
		if err != nil {
			return d, nil, err
		}
		files[i].Data = d.Pool.AddHashed(hashes[i], files[i].Data)
		d.contents[files[i].Path] = files[i].Data
	}
	return d, files, nil
}

// ReadTree reads the tree in directory d.Out. If the directory has no list of clusters, quayside did not render
// it, and the tree contains all manifests in the directory. Displayed paths start with prefix.
func ReadTree(prefix string, d Disk) (*Tree, error) {
	d, files, err := d.walk()
	if err != nil {
		return nil, err
	}
	if _, is := d.types[path.Join(d.Out, layout.ClustersFile)]; is {
		return NewTree(prefix, d.Out, files, d, d.Pool)
	}
	t, err := NewTree(prefix, d.Out, nil, d, d.Pool)
	if err == nil {
		t.Manifests = t.withDisplayPaths(files)
	}
	return t, err
}

// IsManifest reports whether a file may contain Kubernetes objects, by its extension.
func IsManifest(name string) bool {
	return yamlnode.HasExtension(name)
}

// EmptyTree returns a tree in directory d.Out, but without manifests. Its overlays can use the other files of
// d.
func EmptyTree(d Disk) (*Tree, error) { return NewTree("", d.Out, nil, d, d.Pool) }
