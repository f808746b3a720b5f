package upgrade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
)

// Environment is a workspace with its title and directory.
type Environment struct {
	*workspace.Project
	Title string // metadata.name, or the name of the directory; "." if there is neither
	Dir   string // relative to the search root, or as given
}

// Environments holds the workspaces of a search, by directory. Each may name another as its
// upstream environment.
type Environments []*Environment

// LoadEnvironments opens the workspaces in directories. It returns the faults of all of
// them at once.
func LoadEnvironments(dirs []string, open func(dir string) (*workspace.Project, error)) (Environments, error) {
	var out Environments
	var faults diag.List
	for _, dir := range dirs {
		p, err := open(dir)
		if err != nil {
			faults.Add(diag.Pos{}, diag.PrefixPositions(dir, err))
			continue
		}
		title := p.Settings.Name
		if title == "" {
			title = path.Base(dir)
		}
		out = append(out, &Environment{Project: p, Title: title, Dir: dir})
	}
	return out, faults.Err()
}

// fault adds a fault at spec.follows of the environment.
func (e *Environment) fault(faults *diag.List, format string, args ...any) {
	faults.Add(diag.Pos{}, diag.PrefixPositions(e.Dir, diag.Errorf(e.Settings.At("spec.follows"), "spec.follows: "+format, args...)))
}

// Find returns the environment with a name. A name with a slash, or of dots only, is a path
// relative to the search root.
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
		return nil, fmt.Errorf("%q is the name of several environments (%s): give the directory, such as ./%s", name, strings.Join(paths, ", "), paths[0])
	}
	slices.Sort(titles)
	titles = slices.Compact(titles)
	return nil, fmt.Errorf("no environment %q (have %s)%s", name, strings.Join(titles, ", "), diag.DidYouMean(name, titles))
}

// PromotionStep is a pair of an upstream environment and its follower.
type PromotionStep struct{ From, To *Environment }

// Steps returns a step for each environment that follows another. The last ring comes
// first, so that each step uses the lock of its upstream environment before this run. A
// missing upstream environment or a cycle is a fault at its position.
func (es Environments) Steps() ([]PromotionStep, error) {
	leader := map[*Environment]*Environment{}
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
			e.fault(&faults, "%w", err)
			continue
		}
		leader[e] = from
	}
	var steps []PromotionStep
	depth := map[*Environment]int{}
	for _, e := range es {
		from := leader[e]
		if from == nil {
			continue
		}
		way := []string{e.Title}
		for at := from; at != nil && len(way) <= len(es)+1; at = leader[at] {
			way = append(way, at.Title)
			if at == e {
				e.fault(&faults, "the environments form a cycle: %s", strings.Join(way, " follows "))
				break
			}
		}
		depth[e] = len(way)
		steps = append(steps, PromotionStep{from, e})
	}
	slices.SortStableFunc(steps, func(a, b PromotionStep) int { return depth[b.To] - depth[a.To] })
	return steps, faults.Err()
}
