package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/settings"
)

// ReadSettings returns quayside.yaml merged with the files that it extends. Without a
// quayside.yaml it returns the defaults.
func (r Root) ReadSettings() (*settings.Workspace, error) {
	data, err := r.Read(settings.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return settings.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	return settings.Load(r.name+settings.FileName, data, settings.Repository{Dir: r.repoPath(), Read: r.readShared})
}

// readShared reads a file of the repository. shown is the name of the file in positions: its path
// relative to the workspace or, at a revision, its path in the repository with the revision as a
// prefix. Symbolic links cannot leave the repository, or the workspace if there is no repository.
func (r Root) readShared(name string) (shown string, data []byte, err error) {
	shown = r.name + r.fromWorkspace(name)
	if rev, ok := strings.CutSuffix(r.name, r.repoPath()+"/"); ok {
		shown = rev + name
	}
	data, err = source.File{FS: r.repoFiles(), Name: name, DisplayPath: shown}.Read()
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // the same message on every file system
	}
	return shown, data, err
}

// fromWorkspace converts a path relative to the repository to one relative to the workspace.
func (r Root) fromWorkspace(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.repoPath()), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}
