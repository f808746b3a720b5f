package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/workspace"
)

// ReadSettings returns quayside.yaml with what it extends, each file as the root has
// it: from the work tree or from the revision. Without the file they are the defaults.
func (r Root) ReadSettings() (*workspace.Workspace, error) {
	data, err := r.Read(workspace.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return workspace.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	return workspace.Load(r.name+workspace.FileName, data, workspace.Repository{Dir: r.repo(), Read: r.readShared})
}

// readShared reads a file of the repository, by its path there, and returns the name
// that positions give it: relative to the workspace, or in its revision. No link leads
// out of the repository, or of the workspace where there is none.
func (r Root) readShared(name string) (shown string, data []byte, err error) {
	shown = r.name + r.fromWorkspace(name)
	if rev, ok := strings.CutSuffix(r.name, r.repo()+"/"); ok {
		shown = rev + name
	}
	files := r.around()
	if r.dir != "" {
		top, err := os.OpenRoot(filepath.Join(r.dir, up(r.repo())))
		if err != nil {
			return shown, nil, err
		}
		defer func() { _ = top.Close() }() // only read from
		files = top.FS()
	}
	data, err = ReadFile(source.File{FS: files, Name: name, Shown: shown})
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // whichever call of the file system it was
	}
	return shown, data, err
}

// fromWorkspace returns a path in the repository relative to the workspace.
func (r Root) fromWorkspace(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.repo()), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}
