package workspace

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	setting "github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
)

// CheckAttributes returns an error for Git attributes that make files of the workspace differ
// between a commit and its checkout. Outside of Git, it returns nil.
func CheckAttributes(p *Project) error {
	s := p.state(nil)
	s.Attributes = p.changedInCheckout
	return rules.Check(s, rules.Git)
}

// changedInCheckout returns the Git attributes that change the content of files that the workspace
// uses: the lock, the settings, the tree, the overlays and all manifests of the repository. It
// ignores filters, such as encryption, of manifests outside of the workspace's directories:
// quayside cannot read filtered manifests anyway.
func (p *Opened) changedInCheckout() ([]rules.ChangedFiles, error) {
	repo, _, err := p.OpenRepo()
	if err != nil && p.rev == nil {
		return nil, nil //nolint:nilerr // outside of Git, attributes have no effect
	}
	in := func(name string) string { return path.Join(p.repoPath(), name) }
	whole := []string{in(p.Settings.OutputDir()), in(p.Settings.OverlaysDir()), in(LockFile)}
	own := append(slices.Clone(whole), in(setting.FileName))
	for _, d := range p.Settings.Declarations {
		own = append(own, in(d.Path))
	}
	files, attributes, err := p.listAttributes(whole, own)
	if err != nil {
		return nil, err
	}
	if repo != nil && p.rev == nil {
		data, err := filetree.ReadFile(repo.InfoAttributes())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		attributes = append(attributes, gitrepo.AttributeFile{Name: ".git/info/attributes", Dir: ".", Data: data})
	}
	var out []rules.ChangedFiles
	for _, a := range gitrepo.ContentAttributes(attributes) {
		changed := slices.DeleteFunc(a.Affected(files), func(name string) bool {
			return a.Attribute == "filter" && !isAnyWithin(name, own) && !gitrepo.IsAttributesFile(name)
		})
		if len(changed) > 0 {
			pos := diag.Pos{File: p.fromWorkspace(a.File), Line: a.Line, Col: a.Column}
			out = append(out, rules.ChangedFiles{Pos: pos, Attribute: a.Attribute, Macro: a.Macro, Files: changed})
		}
	}
	return out, nil
}

// listAttributes returns the attributes files of the repository with their content. files contains
// the attributes files, all manifests, and all files at or below the paths in whole. It skips
// directories that Git ignores, unless they contain, or are in, a path in own.
func (r Root) listAttributes(whole, own []string) (files []string, attributes []gitrepo.AttributeFile, err error) {
	all, _ := r.Repository()
	ignored := gitrepo.NewIgnore()
	err = fs.WalkDir(all, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || ignored.Match(name, true) && !isAnyWithin(name, own) && !slices.ContainsFunc(own, func(o string) bool { return filetree.Within(o, name) })):
			return fs.SkipDir
		case d.IsDir():
			return ignored.Load(all, name)
		case !d.Type().IsRegular():
			return nil
		case gitrepo.IsAttributesFile(name):
			data, err := fs.ReadFile(all, name)
			if err != nil {
				return err
			}
			attributes = append(attributes, gitrepo.AttributeFile{Name: name, Dir: path.Dir(name), Data: data})
			files = append(files, name)
		case yamlnode.HasExtension(name) || isAnyWithin(name, whole):
			files = append(files, name)
		}
		return nil
	})
	return files, attributes, err
}

// isAnyWithin reports whether a path is one of dirs, or is below one of them.
func isAnyWithin(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return filetree.Within(name, dir) })
}
