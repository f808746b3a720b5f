package workspace

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/settings"
)

// survey searches the workspace's repository for declarations and for the objects that apply them. It
// skips rendered trees and catalog directories. trees are the directories of the rendered trees.
func (p *Opened) survey() (s *survey.Survey, trees []string, err error) {
	repo, prefix := p.Repository()
	var skipped []string
	for _, c := range p.Settings.Catalogs {
		if dir, ok := c.Source.Directory(); ok {
			skipped = append(skipped, path.Join(prefix, dir))
		}
	}
	known := map[string]bool{}
	s, err = survey.New(repo, func(dir string) bool {
		skip, seen := known[dir]
		if !seen && dir != prefix && !filetree.Within(prefix, dir) {
			_, err := fs.Stat(repo, path.Join(dir, filetree.Index))
			if err == nil {
				trees = append(trees, dir)
			}
			skip = err == nil || slices.Contains(skipped, dir) || dir == path.Join(prefix, p.Settings.Output)
		}
		known[dir] = skip
		return skip
	}, p.isForeign())
	return s, trees, err
}

// isForeign returns a function that reports whether a URL belongs to another repository. The
// function compares the owner and name with those of spec.gitops.repoURL or, if that is not set, of
// the remote origin. If neither is known, it returns false for every URL.
func (p *Opened) isForeign() func(url string) bool {
	name := func(url string) string {
		url = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(url), "/"), ".git")
		steps := strings.FieldsFunc(url, func(r rune) bool { return r == '/' || r == ':' })
		return strings.Join(steps[max(0, len(steps)-2):], "/")
	}
	own := ""
	if repo, _, err := p.OpenRepo(); err == nil {
		own = repo.Origin()
	}
	if g := p.Settings.GitOps; g != nil {
		own = cmp.Or(g.RepoURL, own)
	}
	return func(url string) bool { return own != "" && name(url) != name(own) }
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
	unread := slices.DeleteFunc(s.Unread(slices.Concat(slices.Collect(maps.Values(declared))...)), func(d survey.Declaration) bool { return d.Obstacle != "" })
	var out []string
	for _, dir := range survey.Dirs(unread) {
		out = append(out, filetree.Relative(p.repoPath(), dir))
	}
	return out, err
}

// warnUnread returns warnings about the operators that the repository declares and that no workspace
// reads: one for each object of a GitOps tool among the declarations of this workspace and each directory
// that it applies, and one for the others. It returns none for the others
// in hidden directories and outside of Git.
func (p *Opened) warnUnread() []diag.Warning {
	if !p.OnDisk() {
		return nil
	}
	_, _, errGit := p.OpenRepo()
	s, _, err := p.survey()
	declared, err2 := p.declaredPaths()
	if err != nil || err2 != nil {
		return nil // still-applied reports the error
	}
	unread := s.Unread(slices.Concat(slices.Collect(maps.Values(declared))...))
	unread = slices.DeleteFunc(unread, func(d survey.Declaration) bool { return !d.IsOperator() })
	own := s.Includes(declared[p.repoPath()])
	var out []diag.Warning
	var others []survey.Declaration
	for _, d := range unread {
		applied := slices.DeleteFunc(s.Appliers(d), func(a *survey.Applied) bool { return !own(a.Entry.Pos.File) || a.Guess != "" })
		if len(applied) == 0 || d.Obstacle != "" {
			if !strings.HasPrefix(d.Pos.File, ".") && !strings.Contains(d.Pos.File, "/.") {
				others = append(others, d)
			}
			continue
		}
		a := applied[0]
		out = append(out, diag.Warning{Pos: p.fromRepository(a.Pos), Code: "not-declared", Msg: fmt.Sprintf("%s applies %q, which contains declarations that quayside does not read: add it to spec.declarations", a.Entry.By, p.fromWorkspace(a.Dir))})
	}
	if len(others) > 0 && errGit == nil {
		var dirs []string
		for _, dir := range survey.Dirs(others) {
			dirs = append(dirs, p.fromWorkspace(dir))
		}
		msg := fmt.Sprintf("the repository has %s that no workspace reads, in %s: add those to spec.declarations that should be read", diag.Count(len(others), "declaration"), diag.Some(dirs, 5))
		out = append(out, diag.Warning{Pos: p.Settings.At("spec.declarations"), Code: "not-declared", Msg: msg})
	}
	return slices.Compact(diag.SortWarnings(out))
}

// fromRepository returns a position relative to the workspace.
func (p *Opened) fromRepository(pos diag.Pos) diag.Pos {
	pos.File = p.fromWorkspace(pos.File)
	return pos
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
