package snapshot

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Selection selects the data to keep in a snapshot.
type Selection struct {
	Keep          func(group, kind string) bool // whether to keep the objects of a kind; nil: keep all except kinds like Event and Pod
	ManagedFields bool                          // also keep metadata.managedFields
	Namespaces    []string                      // namespaces of the Secrets and ConfigMaps to read; empty: all
	Releases      []string                      // names of the releases of Helm to read
	Charts        bool                          // also read HelmReleases of Flux and Applications of Argo CD, with the ConfigMaps that hold their values

	manifest bool // whether to keep the content of Secrets
}

// Limits for the input of one snapshot.
const (
	maxFiles    = 200_000
	maxFile     = 4 << 30   // bytes of a JSON file
	maxDocument = 512 << 20 // bytes of a YAML file
	maxObject   = 32 << 20  // bytes of one object
	maxObjects  = 500_000
	maxKept     = 1 << 30 // bytes of all objects in memory
	maxDepth    = 100
	maxFaults   = 100
)

// Load reads the objects of one cluster from fsys. name is a file, or a directory with .yaml, .yml and .json
// files at any depth. In a must-gather, Load reads only the directories namespaces and
// cluster-scoped-resources. It skips hidden files and directories. If an object occurs several times, Load
// keeps its newest version. Positions start with prefix. The error is a diag.List of all faults.
func Load(fsys fs.FS, name, prefix string, opt Selection) (*Snapshot, error) {
	l := loader{builder: newBuilder(opt), fsys: fsys, prefix: prefix}
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		l.errs.Add(l.pos(name), err)
	case info.IsDir():
		for _, root := range l.roots(name) {
			l.walk(root)
		}
		slices.Sort(l.files)
	default:
		l.files = []string{name}
	}
	for _, file := range slices.Compact(l.files) {
		if l.isFull() {
			break
		}
		l.read(file)
	}
	return l.snapshot()
}

// Read reads the objects of one cluster from r, in the same way as Load reads a file. name is the file name in
// positions.
func Read(name string, r io.Reader, opt Selection) (*Snapshot, error) {
	b := newBuilder(opt)
	b.readStream(name, r)
	return b.snapshot()
}

type loader struct {
	*builder
	fsys   fs.FS
	prefix string
	files  []string
}

func (l *loader) pos(file string) diag.Pos { return diag.Pos{File: l.prefix + file} }

// gatherDirs returns the directories of a must-gather that contain objects.
func gatherDirs() []string { return []string{"namespaces", "cluster-scoped-resources"} }

// roots returns the directories to search for objects. In a must-gather, these are the directories in
// gatherDirs. They are in dir, or in its subdirectories (one for each image). Otherwise roots returns dir.
func (l *loader) roots(dir string) []string {
	var out []string
	in := func(dir string) {
		for _, name := range gatherDirs() {
			p := path.Join(dir, name)
			if info, err := fs.Stat(l.fsys, p); err == nil && info.IsDir() {
				out = append(out, p)
			}
		}
	}
	in(dir)
	entries, err := fs.ReadDir(l.fsys, dir)
	l.errs.Add(l.pos(dir), err)
	for _, e := range entries {
		if e.IsDir() {
			in(path.Join(dir, e.Name()))
		}
	}
	if len(out) == 0 {
		return []string{dir}
	}
	return out
}

func (l *loader) walk(root string) {
	err := fs.WalkDir(l.fsys, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			l.errs.Add(l.pos(p), err)
			return nil
		}
		hidden := p != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden || !yamlnode.HasExtension(p):
			return nil
		}
		if info, err := fs.Stat(l.fsys, p); err != nil || !info.Mode().IsRegular() {
			return nil // a dangling link, or not a regular file
		}
		if err := sanitize.CheckName(p); err != nil {
			l.errs.Addf(l.pos(p), "file name %w", err)
			return nil
		}
		if l.files = append(l.files, p); len(l.files) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	l.errs.Add(l.pos(root), err)
}

func (l *loader) read(file string) {
	f, err := l.fsys.Open(file)
	if err != nil {
		l.errs.Add(l.pos(file), err)
		return
	}
	defer f.Close()
	l.readStream(l.prefix+file, f)
}
