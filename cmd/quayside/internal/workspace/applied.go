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
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// survey searches the workspace's repository for declarations and for manifests that apply them. It
// skips rendered trees and catalog directories. trees are the directories of the rendered trees.
func (p *Project) survey() (s *declare.Survey, trees []string, err error) {
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
func (p *Project) UnreadDeclarationDirs() ([]string, error) {
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
func (p *Project) errUnreadDeclarations() error {
	dirs, err := p.UnreadDeclarationDirs()
	if err != nil || len(dirs) == 0 {
		return err
	}
	at := p.Settings.At("spec.declarations")
	return diag.Hintf(at, fmt.Sprintf("set spec.declarations to [%s] in %s", strings.Join(dirs, ", "), settings.FileName),
		"nothing is declared here, but the repository has declarations in %s", strings.Join(dirs, ", "))
}

// findStillApplied returns a warning for each object or kustomization in the repository that applies
// declarations of pinned operators, because OLM would install these operators as well. The warning
// is a fault if an object of a GitOps tool applies declarations of this workspace to a cluster that
// may be one of its clusters. Otherwise it is a note: the operators were adopted from OLM, perhaps
// nothing applies the kustomization, this workspace does not read the declarations, or the target
// is another cluster. If the repository has several workspaces, declarations that this workspace
// does not read are skipped. It also returns the faults and notes of findAbandonedTrees.
func (p *Project) findStillApplied(lock *lockfile.File) (faults, notes []diag.Warning, err error) {
	if !p.OnDisk() {
		return nil, nil, nil
	}
	s, trees, err := p.survey()
	if err != nil {
		return nil, nil, err
	}
	declared, err := p.declaredPaths()
	if err != nil {
		return nil, nil, err
	}
	type applier struct {
		by  string
		pos diag.Pos
	}
	certain, possible := map[applier][]string{}, map[applier][]string{}
	for _, a := range s.Applied(declared[p.repoPath()], slices.Concat(slices.Collect(maps.Values(declared))...), p.isForeign()) {
		i := slices.IndexFunc(lock.Pins, func(pin lockfile.Pin) bool {
			return pin.Package == a.Request.Package && (a.Request.Namespace == "" || a.Request.Namespace == pin.Namespace)
		})
		if i < 0 || len(declared) > 1 && !a.Declared {
			continue
		}
		pin, to := lock.Pins[i], certain
		if pin.Adopted != nil || !a.Proven || !a.Declared || !p.mayBeCluster(a.Cluster) {
			to = possible
		}
		by := applier{a.By, a.Pos}
		to[by] = append(to[by], pin.Key())
	}
	warnings := func(of map[applier][]string) []diag.Warning {
		var out []diag.Warning
		for by, operators := range of {
			out = append(out, diag.Warning{
				Pos: by.pos, Code: "still-applied",
				Msg: fmt.Sprintf("%s applies declarations of operators that quayside renders, and OLM would install them as well: %s", by.by, diag.Some(operators, 5)),
			})
		}
		return p.Waive(diag.SortWarnings(out))
	}
	abandoned, err := p.findAbandonedTrees(trees)
	return warnings(certain), append(warnings(possible), abandoned...), err
}

// findAbandonedTrees returns a warning for each rendered tree in this workspace that no workspace
// writes, such as that of an earlier spec.output. It is an error if spec.gitops.path names the tree.
func (p *Project) findAbandonedTrees(trees []string) ([]diag.Warning, error) {
	var below []string
	for _, dir := range p.WorkspacesBelow() {
		below = append(below, path.Join(p.repoPath(), dir))
	}
	output := path.Join(p.repoPath(), p.Settings.Output)
	var faults diag.List
	var out []diag.Warning
	for _, dir := range trees {
		inside := func(top string) bool { return filetree.Within(dir, top) }
		if !inside(p.repoPath()) || inside(output) || slices.ContainsFunc(below, inside) {
			continue
		}
		if g := p.Settings.GitOps; g != nil && path.Clean(g.Path) == dir {
			at := p.Settings.At("spec.gitops.path")
			faults.Add(at, diag.Hintf(at, fmt.Sprintf("set it to %s", output), "spec.gitops.path names %s, but spec.output is %s: the GitOps tool would apply a tree that is never updated", dir, p.Settings.Output))
			continue
		}
		out = append(out, diag.Warning{
			Pos: p.Settings.At("spec.output"), Code: "abandoned-tree",
			Msg: fmt.Sprintf("the rendered tree in %s is never updated, because spec.output is %s: delete it when nothing applies it", filetree.Relative(p.repoPath(), dir), p.Settings.Output),
		})
	}
	return p.Waive(out), faults.Err()
}

// mayBeCluster reports whether the target of an Application or Kustomization may be a cluster of
// this workspace.
func (p *Project) mayBeCluster(target string) bool {
	if slices.Contains([]string{"", "in-cluster", "https://kubernetes.default.svc"}, target) {
		return true
	}
	return slices.ContainsFunc(p.Settings.Clusters, func(c profile.Cluster) bool {
		return slices.Contains([]string{c.Name, c.Server, c.KubeConfig}, target)
	})
}

// isForeign returns a function that reports whether a URL belongs to another repository. The
// function compares the owner and name with those of spec.gitops.repoURL or, if that is not set, of
// the remote origin. If neither is known, it returns false for every URL.
func (p *Project) isForeign() func(url string) bool {
	name := func(url string) string {
		url = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(url), "/"), ".git")
		steps := strings.FieldsFunc(url, func(r rune) bool { return r == '/' || r == ':' })
		return strings.Join(steps[max(0, len(steps)-2):], "/")
	}
	own := ""
	if g := p.Settings.GitOps; g != nil {
		own = g.RepoURL
	}
	if clone, err := p.Clone(); own == "" && err == nil {
		own = clone.Repo.Origin()
	}
	return func(url string) bool { return own != "" && name(url) != name(own) }
}
