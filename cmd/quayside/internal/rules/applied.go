package rules

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// checkStillApplied returns a finding for each object or kustomization of the repository that applies
// declarations of pinned operators, because OLM would also install these operators. The finding is an error if
// the operators were not adopted from OLM, and if an object of a GitOps tool applies declarations of this
// workspace to a cluster that may belong to the workspace. Otherwise the finding is a warning. If the
// repository has several workspaces, checkStillApplied skips declarations that this workspace does not read. It
// also returns a warning for an entry point that may apply other parts of the repository.
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
	pinOf := func(d survey.Declaration, declared bool) int {
		of := func(inNamespace bool) int {
			return slices.IndexFunc(s.Lock.Pins, func(pin lockfile.Pin) bool {
				return pin.Package == d.Package && (!inNamespace || d.Namespace == "" || d.Namespace == pin.Namespace)
			})
		}
		if i := of(true); i >= 0 || !declared {
			return i
		}
		return of(false) // a kustomization or a tool changes its namespace
	}
	others := slices.Concat(slices.Collect(maps.Values(repo.Declared))...)
	for _, a := range repo.Survey.Applications(repo.Declared[s.Dir], others, func(d survey.Declaration) bool { return pinOf(d, true) >= 0 }) {
		i := pinOf(a.Declaration, a.Declared)
		if i < 0 || len(repo.Declared) > 1 && !a.Declared {
			continue
		}
		pin, to := s.Lock.Pins[i], certain
		if pin.Adopted != nil || !a.Proven || !a.Declared || !s.mayBeCluster(a.Cluster) {
			to = possible
		}
		by := applier{a.By, a.Pos}
		if a.Cluster != "" {
			by.by += fmt.Sprintf(" for the cluster %q", a.Cluster)
		}
		if !slices.Contains(to[by], pin.Key()) {
			to[by] = append(to[by], pin.Key())
		}
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
		out[i].Severity, out[i].Hint, out[i].Later = Error, appliedHint, true
	}
	var unknown []diag.Warning
	for _, e := range repo.Survey.Entries {
		if reason := e.CannotTell(); reason != "" {
			unknown = append(unknown, diag.Warning{Pos: e.Pos, Code: "still-applied", Msg: fmt.Sprintf("cannot tell whether %s applies operators that quayside renders: %s", e.By, reason)})
		}
	}
	return append(append(out, warningsOf(warnings(possible))...), warningsOf(s.waive(unknown))...), nil
}

const appliedHint = "remove these declarations from its path; if OLM runs the operators, see docs/adopt.md; or add a waiver for still-applied"

// checkAbandonedTrees returns a warning for each rendered tree in this workspace that no workspace writes, such
// as a tree at a former spec.output. If spec.gitops.path names the tree, the finding is an error.
func checkAbandonedTrees(s *State) (Findings, error) {
	repo, err := s.Repository()
	if err != nil || repo == nil {
		return nil, err
	}
	w := s.Settings
	output, here := path.Join(s.Dir, w.OutputDir()), w.Output.Repository == ""
	var faults diag.List
	var out []diag.Warning
	for _, dir := range repo.Trees {
		inside := func(top string) bool { return filetree.Within(dir, top) }
		if !inside(s.Dir) || here && inside(output) || slices.ContainsFunc(repo.Below, inside) {
			continue
		}
		if g := w.GitOps; here && g != nil && path.Clean(g.Path) == dir {
			at := w.At("spec.gitops.path")
			faults.Add(at, diag.Hintf(at, fmt.Sprintf("set it to %s", output), "spec.gitops.path names %s, but spec.output is %s: the GitOps tool would apply a tree that is never updated", dir, w.OutputName()))
			continue
		}
		out = append(out, diag.Warning{
			Pos: w.At("spec.output"), Code: "abandoned-tree",
			Msg: fmt.Sprintf("the rendered tree in %s is never updated, because spec.output is %s: delete it when nothing applies it", filetree.Relative(s.Dir, dir), w.OutputName()),
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
