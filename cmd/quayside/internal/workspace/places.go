package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
)

// DeclarationPath is an entry of spec.declarations that can hold new declarations.
type DeclarationPath struct {
	Path   string
	IsFile bool
}

// NewDeclarations returns the entries of spec.declarations that can hold new declarations. These
// are the entries of the first group that is not empty:
//
// - the entry with the path to, if to is not empty
// - the entry in spec.newDeclarations
// - directories in the workspace, which need not exist
// - directories in the repository
// - files
//
// If there are several, the user chooses one. Entries with a kustomization are omitted.
func (p *Opened) NewDeclarations(to string) ([]DeclarationPath, error) {
	var inside, dirs, all []DeclarationPath
	for _, declared := range p.Settings.Declarations {
		d, ok, err := p.declarationPath(declared.Path)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		all = append(all, d)
		if !d.IsFile {
			dirs = append(dirs, d)
		}
		if !d.IsFile && fs.ValidPath(d.Path) {
			inside = append(inside, d)
		}
	}
	if to != "" {
		return p.namedDeclarations(all, path.Clean(to), "--to "+to)
	}
	if to = p.Settings.NewDeclarations; to != "" {
		found, err := p.namedDeclarations(all, to, "spec.newDeclarations: "+to)
		if err != nil {
			return nil, diag.Errorf(p.Settings.At("spec.newDeclarations"), "%w", err)
		}
		return found, nil
	}
	for _, candidates := range [][]DeclarationPath{inside, dirs, all} {
		if len(candidates) > 0 {
			return candidates, nil
		}
	}
	return nil, fmt.Errorf("%s: spec.declarations has no plain directory for new declarations: add one, such as subscriptions", settings.FileName)
}

// namedDeclarations returns the element of all whose path is name. If there is none, the error
// message starts with label.
func (r Root) namedDeclarations(all []DeclarationPath, name, label string) ([]DeclarationPath, error) {
	var names []string
	for _, d := range all {
		if names = append(names, d.Path); d.Path == name {
			return []DeclarationPath{d}, nil
		}
	}
	if r.hasKustomization(name) {
		return nil, fmt.Errorf("%s: built by a kustomization: edit the kustomization by hand, or choose another path of spec.declarations", label)
	}
	return nil, fmt.Errorf("%s: not one of spec.declarations (%s)%s", label, strings.Join(names, ", "), diag.DidYouMean(name, names))
}

// declarationPath looks up an entry of spec.declarations. It returns false if declarations cannot
// be written to it.
func (r Root) declarationPath(entry string) (DeclarationPath, bool, error) {
	files, in := r.Repository()
	full := path.Join(in, entry)
	if !fs.ValidPath(full) {
		return DeclarationPath{}, false, nil
	}
	info, err := fs.Stat(files, full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return DeclarationPath{Path: entry}, fs.ValidPath(entry), nil
	case err != nil:
		return DeclarationPath{}, false, err
	case info.IsDir():
		return DeclarationPath{Path: entry}, !r.hasKustomization(entry), nil
	default:
		return DeclarationPath{Path: entry, IsFile: true}, info.Mode().IsRegular(), nil
	}
}

// IsKustomized reports whether the directory of a declarations file, or a parent of it, has a
// kustomization.
func (p *Opened) IsKustomized(name string) bool {
	return slices.ContainsFunc(p.Settings.Declarations, func(declared declare.Path) bool {
		dir := path.Dir(name)
		for ; isBelow(dir, declared.Path); dir = path.Dir(dir) {
			if p.hasKustomization(dir) {
				return true
			}
			if dir == declared.Path || dir == "." {
				break
			}
		}
		return false
	})
}

// isBelow reports whether a path is dir or below it.
func isBelow(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/") || dir == "." && !strings.HasPrefix(name, "../")
}

func (r Root) hasKustomization(dir string) bool {
	files, in := r.Repository()
	full := path.Join(in, dir)
	return fs.ValidPath(full) && declare.Kustomization(files, full) != ""
}
