package rules

import (
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
)

// checkIgnored returns an error if Git ignores the lock, the tree, or their source files. It does
// not check the tree if the GitOps tool does not read it from Git.
func checkIgnored(s *State) (Findings, error) {
	if s.Ignored == nil {
		return nil, nil
	}
	repo, err := s.Repository()
	if err != nil || repo == nil {
		return nil, err
	}
	names := []string{settings.LockFile, settings.FileName}
	if s.Settings.Output.Repository == "" && (s.Settings.GitOps == nil || s.readsRepository(repo.Remotes)) {
		var files []string
		for name := range s.Rendered.Tree.Names() {
			files = append(files, path.Join(s.Settings.OutputDir(), name))
		}
		slices.Sort(files)
		names = append(names, files...)
	}
	for _, d := range s.Declared().Subscriptions {
		names = append(names, d.Pos.File)
	}
	ignored := s.Ignored(names)
	if len(ignored) == 0 {
		return nil, nil
	}
	return Findings{s.accept(Finding{
		Severity: Error, Code: "not-in-git", Pos: diag.Pos{File: ignored[0]}, Subject: ignored[0],
		Msg:  "Git ignores " + diag.Some(ignored, 3) + ": ignored files are neither reviewed nor applied",
		Hint: "correct .gitignore, then 'git add' the files",
	})}, nil
}
