package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/settings"
)

// survey searches the repository for declarations, and for objects of GitOps tools that apply them.
// It skips rendered trees and directories of catalogs. trees are the directories of the rendered
// trees.
func (p *Opened) survey() (s *survey.Survey, trees []string, err error) {
	repo, prefix := p.Repository()
	var skipped []string
	for _, c := range p.Settings.Catalogs {
		if dir, ok := c.Source.Directory(); ok {
			skipped = append(skipped, path.Join(prefix, dir))
		}
	}
	known := map[string]bool{}
	opt := survey.Options{Charts: p.repositoryCharts(p.Settings), Results: p.results}
	if git, _, err := p.OpenRepo(); err == nil && p.results != nil {
		opt.Index, _ = git.Index() // without an index, all files are read
	}
	s, err = survey.New(repo, func(files fs.FS, dir string) bool {
		skip, seen := known[dir]
		if !seen && dir != prefix && !filetree.Within(prefix, dir) {
			list, _ := fs.ReadDir(files, dir) // walking reports the error
			isTree := slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == filetree.Index })
			if isTree {
				trees = append(trees, dir)
			}
			skip = isTree || slices.Contains(skipped, dir) || dir == path.Join(prefix, p.Settings.OutputDir())
		}
		known[dir] = skip
		return skip
	}, p.isForeign(), p.namedCharts, opt)
	return s, trees, err
}

// namedCharts returns the charts that workspaces of the repository refer to.
func (p *Opened) namedCharts(s *survey.Survey) []*survey.Applied {
	repo, _ := p.Repository()
	var out []*survey.Applied
	for dir, w := range p.workspaces(workspaceDirs(s)) {
		for i, d := range w.Declarations {
			at := w.At(fmt.Sprintf("spec.declarations[%d]", i))
			at.File = path.Join(dir, settings.FileName)
			if a := d.Chart(repo, dir, at); a != nil {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(a, b *survey.Applied) int { return a.Pos.Compare(b.Pos) })
	return out
}

// workspaceDirs returns the directories with a workspace in a repository, except hidden ones.
func workspaceDirs(s *survey.Survey) []string {
	var dirs []string
	for _, name := range s.Find(settings.FileName) {
		if dir := path.Dir(name); dir == "." || !strings.HasPrefix(dir, ".") && !strings.Contains(dir, "/.") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// isForeign returns a predicate for URLs of other repositories. The predicate compares the owner and name in the
// URL with those of the remote origin and, unless the tree is in another repository, of spec.gitops.repoURL. If
// neither exists, it returns false.
func (p *Opened) isForeign() func(url string) bool {
	name := func(url string) string {
		url = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(url), "/"), ".git")
		steps := strings.FieldsFunc(url, func(r rune) bool { return strings.ContainsRune("/:@", r) })
		return strings.Join(steps[max(0, len(steps)-2):], "/")
	}
	own := sync.OnceValue(func() []string {
		var urls []string
		if repo, _, err := p.OpenRepo(); err == nil {
			urls = append(urls, name(repo.Origin()))
		}
		if g := p.Settings.GitOps; g != nil && p.Settings.Output.Repository == "" {
			urls = append(urls, name(g.RepoURL))
		}
		return slices.DeleteFunc(urls, func(name string) bool { return name == "" })
	})
	return func(url string) bool { return len(own()) > 0 && !slices.Contains(own(), name(url)) }
}

// unreadOperators returns the declarations of operators in the repository that no workspace reads,
// sorted by position.
func unreadOperators(repo *rules.Repository) []survey.Declaration {
	unread := repo.Survey.Unread(slices.Concat(slices.Collect(maps.Values(repo.Declared))...))
	return slices.DeleteFunc(unread, func(d survey.Declaration) bool { return !d.IsOperator() })
}

// FindUnread returns the position of an unread declaration of an operator. No workspace reads such a
// declaration, but a kustomization, a policy or an object of a GitOps tool applies it. FindUnread returns
// false if there is no such declaration.
func FindUnread(p *Project, namespace, pkg string) (diag.Pos, bool) {
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return diag.Pos{}, false // the rule still-applied reports the error
	}
	for _, d := range unreadOperators(repo) {
		applied := len(repo.Survey.Appliers(d))+len(repo.Survey.Policies(d))+len(repo.Survey.TopKustomizations(d)) > 0
		if applied && d.Package == pkg && (d.Namespace == "" || d.Namespace == namespace) {
			return p.fromRepository(d.Pos), true
		}
	}
	return diag.Pos{}, false
}

// warnUnread returns warnings about declarations of operators that no workspace reads. It returns a
// warning for each directory with such declarations, if an object of a GitOps tool in the declared
// paths applies the directory. In a Git repository, one more warning lists all other unread
// declarations, except those in hidden directories.
func (p *Project) warnUnread() []diag.Warning {
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return nil // the rule still-applied reports the error
	}
	s, declared := repo.Survey, repo.Declared
	_, _, errGit := p.OpenRepo()
	unread := unreadOperators(repo)
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
		dirs := p.allFromWorkspace(survey.Dirs(others))
		msg := fmt.Sprintf("the repository has %s that no workspace reads, in %s: run 'quayside declarations'", diag.Count(len(others), "declaration"), diag.Some(dirs, 5))
		out = append(out, diag.Warning{Pos: p.Settings.At("spec.declarations"), Code: "not-declared", Msg: msg})
	}
	return slices.Compact(diag.SortWarnings(append(out, p.warnChanged(s, declared[p.repoPath()])...)))
}

// warnChanged returns a warning for each declared path with declarations that an object of a GitOps
// tool or another kustomization changes before they are applied.
func (p *Opened) warnChanged(s *survey.Survey, declared []string) []diag.Warning {
	var out []diag.Warning
	files, in := p.Repository()
	for i, d := range p.Settings.Declarations {
		dir, inside := d.In(in)
		if info, err := fs.Stat(files, dir); !inside || err != nil || !info.IsDir() {
			continue
		}
		applied, kustomizations := s.Changing(dir, declared)
		for _, a := range applied {
			changes := cmp.Or(a.Changes.String(), "namespace")
			out = append(out, diag.Warning{
				Pos: p.fromRepository(a.Pos), Code: "changed-later",
				Msg: fmt.Sprintf("%s changes the operators in %q before they reach the cluster (%s): list %s in spec.declarations instead of %s", a.Entry.By, p.fromWorkspace(a.Dir), changes, p.fromWorkspace(a.Entry.Pos.File), d.Path),
			})
		}
		if len(kustomizations) > 0 {
			names := p.allFromWorkspace(kustomizations)
			out = append(out, diag.Warning{
				Pos: p.Settings.At(fmt.Sprintf("spec.declarations[%d]", i)), Code: "changed-later",
				Msg: fmt.Sprintf("%s is only a base, which kustomizations change: in spec.declarations, list the kustomization that the cluster gets instead: %s", d.Path, diag.Some(names, 5)),
			})
		}
	}
	return out
}

// hintNamespaces adds a hint to faults about a missing namespace, if a GitOps tool sets the
// namespace when it applies the declaration.
func (p *Project) hintNamespaces(set *declare.Set, faults error) error {
	var list diag.List
	lacks := func(u declare.Unread) bool { return u.Hint == "" && strings.HasSuffix(u.Reason, "namespace: missing") }
	if !errors.As(faults, &list) || !slices.ContainsFunc(set.Unread, lacks) {
		return faults
	}
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return faults
	}
	for i, u := range set.Unread {
		if !lacks(u) {
			continue
		}
		for _, a := range repo.Survey.Appliers(survey.Declaration{Pos: diag.Pos{File: path.Join(p.repoPath(), u.Pos.File)}}) {
			if a.Guess == "" && a.Changes.Namespace+a.Changes.DefaultNamespace != "" {
				set.Unread[i].Hint = fmt.Sprintf("%s sets the namespace when it applies the file: list %s in spec.declarations", a.Entry.By, p.fromWorkspace(a.Entry.Pos.File))
			}
		}
		for n, e := range list {
			if e.Pos == u.Pos && e.Hint == "" {
				list[n] = &diag.Error{Pos: e.Pos, Msg: e.Msg, Err: e.Err, Hint: set.Unread[i].Hint}
			}
		}
	}
	return list.Err()
}

// fromRepository converts a position in the repository to a position relative to the workspace.
func (r Root) fromRepository(pos diag.Pos) diag.Pos {
	pos.File = r.fromWorkspace(pos.File)
	return pos
}

// errUnreadDeclarations returns an error if the repository has declarations that no workspace
// reads, or if the declared paths have declarations that no kustomization lists. Call it only for a
// workspace without declarations.
func (p *Project) errUnreadDeclarations() error {
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return err
	}
	unread := repo.Survey.Unread(slices.Concat(slices.Collect(maps.Values(repo.Declared))...))
	unread = append(unread, slices.DeleteFunc(slices.Clone(repo.Survey.Declarations), func(d survey.Declaration) bool {
		return repo.Survey.Unlisted(d) == "" || !slices.ContainsFunc(repo.Declared[p.repoPath()], func(top string) bool { return filetree.Within(d.Pos.File, top) })
	})...)
	for i, d := range unread {
		if dir := repo.Survey.Unlisted(d); dir != "" {
			unread[i].Obstacle = p.unlistedReason(dir)
		}
	}
	readable := slices.DeleteFunc(slices.Clone(unread), func(d survey.Declaration) bool { return d.Obstacle != "" })
	if len(readable) == 0 {
		return p.errObstacles(unread)
	}
	dirs := p.allFromWorkspace(survey.Dirs(readable))
	at := p.Settings.At("spec.declarations")
	return &NothingReadError{Faults: diag.Hintf(at, fmt.Sprintf("set spec.declarations to [%s] in %s", strings.Join(dirs, ", "), settings.FileName),
		"nothing is declared here, but the repository has declarations in %s", strings.Join(dirs, ", "))}
}

// errObstacles returns an error if operators are declared only in templates and other text that
// cannot be read.
func (r Root) errObstacles(list []survey.Declaration) error {
	var faults diag.List
	for _, d := range list {
		if _, _, err := r.OpenRepo(); err == nil && d.IsOperator() {
			faults = append(faults, &diag.Error{Pos: r.fromRepository(d.Pos), Msg: strings.TrimSpace(d.Kind+" "+d.Name) + " " + d.Obstacle})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &NothingReadError{faults.Err(), len(faults)}
}
