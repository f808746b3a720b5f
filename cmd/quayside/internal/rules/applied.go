package rules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// checkStillApplied returns a finding for each object or kustomization in the repository that applies
// declarations of pinned operators, because OLM would install these operators as well. The finding
// is an error if an object of a GitOps tool applies declarations of this workspace to a cluster that
// may be one of its clusters. Otherwise it is a warning: the operators were adopted from OLM, perhaps
// nothing applies the kustomization, this workspace does not read the declarations, or the target
// is another cluster. If the repository has several workspaces, declarations that this workspace
// does not read are skipped.
func checkStillApplied(s *State) (Findings, error) {
	repo, err := s.Repository()
	if err != nil || repo == nil {
		return nil, err
	}
	type applier struct {
		by  string
		pos diag.Pos
	}
	certain, possible := map[applier][]string{}, map[applier][]string{}
	for _, a := range repo.Survey.Applied(repo.Declared[s.Dir], slices.Concat(slices.Collect(maps.Values(repo.Declared))...), s.isForeign(repo.Origin)) {
		i := slices.IndexFunc(s.Lock.Pins, func(pin lockfile.Pin) bool {
			return pin.Package == a.Request.Package && (a.Request.Namespace == "" || a.Request.Namespace == pin.Namespace)
		})
		if i < 0 || len(repo.Declared) > 1 && !a.Declared {
			continue
		}
		pin, to := s.Lock.Pins[i], certain
		if pin.Adopted != nil || !a.Proven || !a.Declared || !s.mayBeCluster(a.Cluster) {
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
		return s.waive(diag.SortWarnings(out))
	}
	out := warningsOf(warnings(certain))
	for i := range out {
		out[i].Severity, out[i].Hint = Error, appliedHint
	}
	return append(out, warningsOf(warnings(possible))...), nil
}

const appliedHint = "remove these declarations from its path; if OLM runs the operators, see docs/adopt.md; or add a waiver for still-applied"

// checkAbandonedTrees returns a warning for each rendered tree in this workspace that no workspace
// writes, such as that of an earlier spec.output. It is an error if spec.gitops.path names the tree.
func checkAbandonedTrees(s *State) (Findings, error) {
	repo, err := s.Repository()
	if err != nil || repo == nil {
		return nil, err
	}
	w := s.Settings
	output := path.Join(s.Dir, w.Output)
	var faults diag.List
	var out []diag.Warning
	for _, dir := range repo.Trees {
		inside := func(top string) bool { return filetree.Within(dir, top) }
		if !inside(s.Dir) || inside(output) || slices.ContainsFunc(repo.Below, inside) {
			continue
		}
		if g := w.GitOps; g != nil && path.Clean(g.Path) == dir {
			at := w.At("spec.gitops.path")
			faults.Add(at, diag.Hintf(at, fmt.Sprintf("set it to %s", output), "spec.gitops.path names %s, but spec.output is %s: the GitOps tool would apply a tree that is never updated", dir, w.Output))
			continue
		}
		out = append(out, diag.Warning{
			Pos: w.At("spec.output"), Code: "abandoned-tree",
			Msg: fmt.Sprintf("the rendered tree in %s is never updated, because spec.output is %s: delete it when nothing applies it", filetree.Relative(s.Dir, dir), w.Output),
		})
	}
	return append(errorsOf(faults), warningsOf(s.waive(out))...), nil
}

// mayBeCluster reports whether the target of an Application or Kustomization may be a cluster of
// this workspace.
func (s *State) mayBeCluster(target string) bool {
	if slices.Contains([]string{"", "in-cluster", "https://kubernetes.default.svc"}, target) {
		return true
	}
	return slices.ContainsFunc(s.Settings.Clusters, func(c profile.Cluster) bool {
		return slices.Contains([]string{c.Name, c.Server, c.KubeConfig}, target)
	})
}

// isForeign returns a function that reports whether a URL belongs to another repository. The
// function compares the owner and name with those of spec.gitops.repoURL or, if that is not set, of
// the remote origin. If neither is known, it returns false for every URL.
func (s *State) isForeign(origin string) func(url string) bool {
	name := func(url string) string {
		url = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(url), "/"), ".git")
		steps := strings.FieldsFunc(url, func(r rune) bool { return r == '/' || r == ':' })
		return strings.Join(steps[max(0, len(steps)-2):], "/")
	}
	own := origin
	if g := s.Settings.GitOps; g != nil {
		own = cmp.Or(g.RepoURL, origin)
	}
	return func(url string) bool { return own != "" && name(url) != name(own) }
}
