package project

import (
	"path"
	"path/filepath"
	"slices"
)

// SharedWith returns the directories of the other workspaces in the repository that
// read one of these files as declarations, sorted. Files are relative to this
// workspace; those in it count as its own.
func (p *Project) SharedWith(files []string) ([]string, error) {
	var shared []string
	for _, name := range files {
		if full := path.Join(p.repo(), name); !isBelow(full, p.repo()) {
			shared = append(shared, full)
		}
	}
	if len(shared) == 0 {
		return nil, nil
	}
	top, dirs, err := Workspaces(filepath.Join(p.dir, up(p.repo())))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		if dir == p.repo() {
			return true
		}
		w, err := Dir(filepath.Join(top, filepath.FromSlash(dir))).ReadSettings()
		if err != nil {
			return true // its own commands report that
		}
		for _, d := range w.Declarations {
			if slices.ContainsFunc(shared, func(name string) bool { return isBelow(name, path.Join(dir, d.Path)) }) {
				return false
			}
		}
		return true
	}), nil
}
