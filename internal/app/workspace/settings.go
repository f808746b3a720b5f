package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/base/diag"
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
	data, err = ReadFile(source.File{FS: r.repoFiles(), Name: name, DisplayPath: shown})
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

// checkPatterns returns an error for each cluster name or pattern in the quayside.yaml of this
// workspace that matches none of its clusters. Inherited settings may name clusters of other
// workspaces.
func (p *Project) checkPatterns() error {
	w, have := p.Settings, p.Clusters()
	var faults diag.List
	check := func(field string, patterns []string) {
		for i, pattern := range patterns {
			at := w.At(diag.Item(field, i))
			if at.File == w.File && !slices.ContainsFunc(have, func(name string) bool { return diag.Matches(pattern, name) }) {
				faults.Addf(at, "%s: no cluster %q in this workspace (available: %s)%s", diag.Item(field, i), pattern, strings.Join(have, ", "), diag.DidYouMean(pattern, have))
			}
		}
	}
	for i, l := range w.Policy.Clusters {
		check(diag.Item("spec.policy.clusters", i)+".names", l.Names)
	}
	for i, v := range w.Policy.Waivers {
		check(diag.Item("spec.policy.waivers", i)+".clusters", v.Clusters)
	}
	return faults.Err()
}
