package workspace

import (
	"path"
	"path/filepath"
	"slices"
)

// SharedWith returns the directories of the other workspaces in the repository whose declarations
// include some of files, sorted. File names are relative to this workspace. Files inside this
// workspace are not shared.
func (p *Project) SharedWith(files []string) ([]string, error) {
	var shared []string
	for _, name := range files {
		if full := path.Join(p.repoPath(), name); !isBelow(full, p.repoPath()) {
			shared = append(shared, full)
		}
	}
	if len(shared) == 0 {
		return nil, nil
	}
	top := TopDir(p.disk.Top())
	dirs, err := Workspaces(top)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		if dir == p.repoPath() {
			return true
		}
		w, err := Dir(filepath.Join(top, filepath.FromSlash(dir))).ReadSettings()
		if err != nil {
			return true // reported by that workspace's own commands
		}
		for _, d := range w.Declarations {
			if slices.ContainsFunc(shared, func(name string) bool { return isBelow(name, path.Join(dir, d.Path)) }) {
				return false
			}
		}
		return true
	}), nil
}
