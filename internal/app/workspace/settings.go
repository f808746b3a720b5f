package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/settings"
)

// ReadSettings returns quayside.yaml merged with the files it extends, from the work tree or
// the revision of the root. Without the file it returns the defaults.
func (r Root) ReadSettings() (*settings.Workspace, error) {
	data, err := r.Read(settings.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return settings.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	return settings.Load(r.name+settings.FileName, data, settings.Repository{Dir: r.repo(), Read: r.readShared})
}

// readShared reads a file of the repository, and returns its name for positions: relative to
// the workspace, or in its revision. No symbolic link leads out of the repository, or out of
// the workspace if there is no repository.
func (r Root) readShared(name string) (shown string, data []byte, err error) {
	shown = r.name + r.fromWorkspace(name)
	if rev, ok := strings.CutSuffix(r.name, r.repo()+"/"); ok {
		shown = rev + name
	}
	data, err = ReadFile(source.File{FS: r.around(), Name: name, DisplayPath: shown})
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // independent of the actual file system call
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
