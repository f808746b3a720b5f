package upgrade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
)

// Environment is a workspace with its title and directory.
type Environment struct {
	*workspace.Project
	Title string // metadata.name, or the name of the directory, or "."
	Dir   string // as passed to LoadEnvironments
}

// Environments are the workspaces of a repository, sorted by directory. In each, spec.follows names its
// upstream environment.
type Environments []*Environment

// LoadEnvironments opens the workspaces in dirs. The error has the faults of all workspaces.
func LoadEnvironments(dirs []string, open func(dir string) (*workspace.Project, error)) (Environments, error) {
	var out Environments
	var faults diag.List
	for _, dir := range dirs {
		p, err := open(dir)
		if err != nil {
			faults.Add(diag.Pos{}, diag.PrefixPositions(dir, err))
			continue
		}
		out = append(out, &Environment{Project: p, Title: p.Settings.Title(dir), Dir: dir})
	}
	return out, faults.Err()
}

// addErrorf adds a fault to faults, with the position of spec.follows.
func (e *Environment) addErrorf(faults *diag.List, format string, args ...any) {
	faults.Add(diag.Pos{}, diag.PrefixPositions(e.Dir, diag.Errorf(e.Settings.At("spec.follows"), "spec.follows: "+format, args...)))
}

// Find returns the environment with this title or directory. A name is a directory if it contains a
// slash or consists of dots. An unknown or ambiguous name is an error.
func (es Environments) Find(name string) (*Environment, error) {
	isPath := strings.Contains(name, "/") || strings.Trim(name, ".") == ""
	var found []*Environment
	var titles, paths []string
	for _, e := range es {
		if isPath && e.Dir == path.Clean(name) || !isPath && e.Title == name {
			found = append(found, e)
			paths = append(paths, e.Dir)
		}
		titles = append(titles, e.Title)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%q is the name of several environments (%s): specify the directory, such as ./%s", name, strings.Join(paths, ", "), paths[0])
	}
	slices.Sort(titles)
	titles = slices.Compact(titles)
	return nil, fmt.Errorf("no environment %q (available: %s)%s", name, strings.Join(titles, ", "), diag.DidYouMean(name, titles))
}

// PromotionStep is a promotion from an upstream environment to a downstream one.
type PromotionStep struct{ From, To *Environment }

// Steps returns a promotion step for each environment with spec.follows. Steps to downstream environments come
// first, so that a version advances by only one environment in a run. The error has a fault for each unknown
// upstream environment and each cycle.
func (es Environments) Steps() ([]PromotionStep, error) {
	upstream := map[*Environment]*Environment{}
	var faults diag.List
	for _, e := range es {
		w := e.Settings
		if w.Follows == "" {
			continue
		}
		name := w.Follows
		if w.FollowsPath() {
			name = "./" + path.Join(e.Dir, w.Follows)
		}
		from, err := es.Find(name)
		if err != nil {
			e.addErrorf(&faults, "%w", err)
			continue
		}
		upstream[e] = from
	}
	var steps []PromotionStep
	depth := map[*Environment]int{}
	for _, e := range es {
		from := upstream[e]
		if from == nil {
			continue
		}
		chain := []string{e.Title}
		for at := from; at != nil && len(chain) <= len(es)+1; at = upstream[at] {
			chain = append(chain, at.Title)
			if at == e {
				e.addErrorf(&faults, "the environments form a cycle: %s", strings.Join(chain, " follows "))
				break
			}
		}
		depth[e] = len(chain)
		steps = append(steps, PromotionStep{from, e})
	}
	slices.SortStableFunc(steps, func(a, b PromotionStep) int { return depth[b.To] - depth[a.To] })
	return steps, faults.Err()
}
