package overlay

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// memory is an in-memory file system for one build. It supports only the operations that a build
// needs, and symbolic links. The in-memory file system of kustomize does not accept names with
// spaces and some other characters.
type memory struct {
	filesys.FileSystem                   // nil: other operations panic
	files              map[string][]byte // absolute path → content
	dirs               map[string]bool
	links              map[string]string // absolute path → absolute path of the target
}

// newMemory returns a file system with files and links, whose paths have no leading slash.
func newMemory(files map[string][]byte, links map[string]string) memory {
	m := memory{files: map[string][]byte{}, dirs: map[string]bool{"/": true}, links: map[string]string{}}
	for name, data := range files {
		name = path.Join("/", name)
		m.files[name] = data
		for dir := path.Dir(name); !m.dirs[dir]; dir = path.Dir(dir) {
			m.dirs[dir] = true
		}
	}
	for name, to := range links {
		m.links[path.Join("/", name)] = path.Join("/", to)
	}
	return m
}

func (m memory) ReadFile(name string) ([]byte, error) {
	data, found := m.files[path.Join("/", name)]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(data), nil // a copy, because kustomize may change it
}

func (m memory) IsDir(name string) bool { return m.dirs[path.Join("/", name)] }

func (m memory) Exists(name string) bool {
	name = path.Join("/", name)
	_, isFile := m.files[name]
	return isFile || m.dirs[name]
}

// CleanedAbs returns the directory and the file name of the file that a path leads to, after
// following links. For a directory, the file name is empty.
func (m memory) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	at := path.Join("/", name)
	if to, is := m.links[at]; is {
		at = to
	}
	if m.dirs[at] {
		return filesys.ConfirmedDir(at), "", nil
	}
	if _, isFile := m.files[at]; isFile {
		return filesys.ConfirmedDir(path.Dir(at)), path.Base(at), nil
	}
	return "", "", fmt.Errorf("%q: %w", name, fs.ErrNotExist)
}
