package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/settings"
)

// ReadSettings reads quayside.yaml, merged with the files that it extends. If there is no
// quayside.yaml, it returns the defaults.
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

// readShared reads a file of the repository. shown is the file name for positions: the path
// relative to the workspace or, at a revision, the path in the repository with the revision as a
// prefix. Symbolic links cannot leave the repository or, without a repository, the workspace.
func (r Root) readShared(name string) (shown string, data []byte, err error) {
	shown = r.name + r.fromWorkspace(name)
	if rev, ok := strings.CutSuffix(r.name, r.repoPath()+"/"); ok {
		shown = rev + name
	}
	data, err = source.File{FS: r.repoFiles(), Name: name, DisplayPath: shown}.Read()
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // same error message on every file system
	}
	return shown, data, err
}

// allFromWorkspace converts paths in the repository to paths relative to the workspace.
func (r Root) allFromWorkspace(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, r.fromWorkspace(name))
	}
	return out
}

// fromWorkspace converts a path in the repository to a path relative to the workspace.
func (r Root) fromWorkspace(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.repoPath()), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}
