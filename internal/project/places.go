package project

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// NewDeclarations returns where declarations are added: the first directory of
// spec.declarations that no kustomization builds, which need not exist, else the
// first file. What lies outside of the workspace is others' too, and left alone.
func (p *Project) NewDeclarations() (name string, file bool, err error) {
	for _, declared := range p.Settings.Declarations {
		entry := declared.Path
		info, err := fs.Stat(p.FS(), entry)
		switch {
		case !fs.ValidPath(entry):
		case errors.Is(err, fs.ErrNotExist):
			return entry, false, nil
		case err != nil:
			return "", false, err
		case info.IsDir() && !p.kustomized(entry):
			return entry, false, nil
		case info.Mode().IsRegular() && name == "":
			name = entry
		}
	}
	if name == "" {
		return "", false, fmt.Errorf("%s: spec.declarations names no plain directory to put declarations in: add one, such as subscriptions", workspace.FileName)
	}
	return name, true, nil
}

// Built reports whether a file of the declarations is not read as it is, but built
// by a kustomization.
func (p *Project) Built(name string) bool {
	return slices.ContainsFunc(p.Settings.Declarations, func(declared subscription.Path) bool {
		dir := declared.Path
		return (dir == "." || name == dir || strings.HasPrefix(name, dir+"/")) && p.kustomized(dir)
	})
}

func (p *Project) kustomized(dir string) bool {
	return subscription.Kustomization(p.FS(), dir) != ""
}
