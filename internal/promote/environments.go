// Package promote brings what one environment pins to the next one: as far as that
// one's declarations allow, and as far as what was seen of it suffices.
//
// It opens workspaces and resolves, and writes nothing: what comes of it is a
// value, with a reason for everything that stays.
//
// Start from [Load], [All] and [Step.Promote].
package promote

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

// Environment is a workspace among others.
type Environment struct {
	*project.Project
	Title string // metadata.name, else the name of the directory; "." for none of both
	Dir   string // the directory, relative to where the environments were looked for, or as it was given
}

// Environments are workspaces that may follow each other, by directory.
type Environments []*Environment

// Load opens the workspaces in directories, of which only the settings are read.
// Every fault of them is returned.
func Load(dirs []string, open func(dir string) (*project.Project, error)) (Environments, error) {
	var out Environments
	var faults diag.List
	for _, dir := range dirs {
		p, err := open(dir)
		if err != nil {
			faults.Add(diag.Pos{}, diag.Below(dir, err))
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

// fault adds a fault of what the environment follows.
func (e *Environment) fault(faults *diag.List, format string, args ...any) {
	faults.Add(diag.Pos{}, diag.Below(e.Dir, diag.Errorf(e.Settings.At("spec.follows"), "spec.follows: "+format, args...)))
}

// Find returns the environment of a name, or with a slash in it, or dots alone, of
// a path relative to where the environments were looked for.
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
		return nil, fmt.Errorf("%q is the name of several environments (%s): give the directory, as in ./%s", name, strings.Join(paths, ", "), paths[0])
	}
	slices.Sort(titles)
	titles = slices.Compact(titles)
	return nil, fmt.Errorf("no environment %q (have %s)%s", name, strings.Join(titles, ", "), diag.DidYouMean(name, titles))
}

// Step is one way from an environment to the next.
type Step struct{ From, To *Environment }

// Steps returns a step for each environment that follows another, the last ring
// first: what a step takes over is what the environment before it had when none
// was made. An environment that follows one that is not there, or itself by way of
// others, is a fault at its place.
func (es Environments) Steps() ([]Step, error) {
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
	var steps []Step
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
				e.fault(&faults, "the environments go round in a circle: %s", strings.Join(way, " follows "))
				break
			}
		}
		depth[e] = len(way)
		steps = append(steps, Step{from, e})
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return depth[b.To] - depth[a.To] })
	return steps, faults.Err()
}
