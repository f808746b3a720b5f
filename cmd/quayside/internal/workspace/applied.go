package workspace

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/settings"
)

// survey searches the workspace's repository for declarations and for manifests that apply them. It
// skips rendered trees and catalog directories. trees are the directories of the rendered trees.
func (p *Opened) survey() (s *declare.Survey, trees []string, err error) {
	repo, prefix := p.Repository()
	var skipped []string
	for _, c := range p.Settings.Catalogs {
		if dir, ok := c.Source.Directory(); ok {
			skipped = append(skipped, path.Join(prefix, dir))
		}
	}
	s, err = declare.NewSurvey(repo, func(dir string) bool {
		if dir == prefix || filetree.Within(prefix, dir) {
			return false
		}
		_, err := fs.Stat(repo, path.Join(dir, filetree.Index))
		if err == nil {
			trees = append(trees, dir)
		}
		return err == nil || slices.Contains(skipped, dir) || dir == path.Join(prefix, p.Settings.Output)
	})
	return s, trees, err
}

// UnreadDeclarationDirs returns the directories of the repository with OLM declarations that are
// outside of the declared paths of every workspace. The results are relative to this workspace.
func (p *Opened) UnreadDeclarationDirs() ([]string, error) {
	if !p.OnDisk() {
		return nil, nil
	}
	s, _, err := p.survey()
	if err != nil {
		return nil, err
	}
	declared, err := p.declaredPaths()
	var out []string
	for _, dir := range s.Dirs(slices.Concat(slices.Collect(maps.Values(declared))...)) {
		out = append(out, filetree.Relative(p.repoPath(), dir))
	}
	return out, err
}

// errUnreadDeclarations returns an error if the repository has declarations that no workspace
// reads. It is only for workspaces without declarations; the caller checks that.
func (p *Opened) errUnreadDeclarations() error {
	dirs, err := p.UnreadDeclarationDirs()
	if err != nil || len(dirs) == 0 {
		return err
	}
	at := p.Settings.At("spec.declarations")
	return &NothingReadError{Faults: diag.Hintf(at, fmt.Sprintf("set spec.declarations to [%s] in %s", strings.Join(dirs, ", "), settings.FileName),
		"nothing is declared here, but the repository has declarations in %s", strings.Join(dirs, ", "))}
}
