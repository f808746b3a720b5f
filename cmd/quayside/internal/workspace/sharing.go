package workspace

import (
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/settings"
)

// SharedWith returns the directories of other workspaces in the repository whose spec.declarations
// include one of files, sorted. File names are relative to this workspace. Files inside this
// workspace do not count as shared.
func (p *Opened) SharedWith(files []string) ([]string, error) {
	var shared []string
	for _, name := range files {
		if full := path.Join(p.repoPath(), name); !isBelow(full, p.repoPath()) {
			shared = append(shared, full)
		}
	}
	if len(shared) == 0 {
		return nil, nil
	}
	dirs, err := Workspaces(p.Top())
	declared := p.declaredPaths(dirs)
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(declared)) {
		includes := func(name string) bool {
			return slices.ContainsFunc(declared[dir], func(top string) bool { return isBelow(name, top) })
		}
		if dir != p.repoPath() && slices.ContainsFunc(shared, includes) {
			out = append(out, dir)
		}
	}
	return out, err
}

// Neighbor opens another workspace of the repository. It logs nothing.
func (p *Opened) Neighbor(dir string) (*Project, error) {
	env := p.Env
	env.Log = nil
	return Open(p.beside(dir), env)
}

// Follows reports whether other is the upstream environment of this workspace.
func (p *Opened) Follows(other *Opened) bool {
	return rules.Follows(p.repoPath(), p.Settings, other.repoPath(), other.Settings)
}

// declaredPaths returns the paths in spec.declarations of the workspaces in dirs, by directory of
// the workspace. They include the matches of patterns, and the files that entry points such as an
// Application apply. All paths are relative to the repository. A workspace with invalid settings has
// no paths; its own commands report the error.
func (p *Opened) declaredPaths(dirs []string) map[string][]string {
	files, _ := p.Repository()
	out := map[string][]string{}
	for dir, w := range p.workspaces(dirs) {
		out[dir] = []string{}
		for _, d := range w.Declarations {
			out[dir] = append(out[dir], d.Expand(files, dir, p.repositoryCharts(w), p.results)...)
		}
	}
	return out
}

// workspaces returns the settings of this workspace and of the workspaces in dirs, by directory.
// Settings that cannot be parsed are replaced by empty settings.
func (p *Opened) workspaces(dirs []string) map[string]*settings.Workspace {
	all := map[string]*settings.Workspace{p.repoPath(): p.Settings}
	for _, dir := range dirs {
		if dir == p.repoPath() {
			continue
		}
		w, err := p.beside(dir).ReadSettings()
		if err != nil {
			w = &settings.Workspace{}
		}
		all[dir] = w
	}
	return all
}

// UpstreamFirst returns directories of workspaces, relative to top, in an order in which each comes after its
// upstream workspace. The order is otherwise unchanged.
func UpstreamFirst(top string, dirs []string) []string {
	all := map[string]*settings.Workspace{}
	prefix := InRepository(top)
	for _, dir := range dirs {
		if w, err := Dir(filepath.Join(top, filepath.FromSlash(dir))).ReadSettings(); err == nil {
			all[dir] = w // its own commands report the error
		}
	}
	var out []string
	done := map[string]bool{}
	var add func(dir string)
	add = func(dir string) {
		if done[dir] {
			return
		}
		done[dir] = true // also ends cycles
		for _, other := range dirs {
			if all[dir] != nil && all[other] != nil && rules.Follows(path.Join(prefix, dir), all[dir], path.Join(prefix, other), all[other]) {
				add(other)
			}
		}
		out = append(out, dir)
	}
	for _, dir := range dirs {
		add(dir)
	}
	return out
}
