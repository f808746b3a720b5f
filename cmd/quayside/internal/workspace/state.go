package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// state returns the state of the workspace for evaluating rules. lock may be nil.
func (p *Project) state(lock *lockfile.File) *rules.State {
	s := &rules.State{
		Dir: p.repoPath(), Settings: p.Settings, Lock: lock, Observed: p.Observed, Today: p.Today,
		Repository: p.Surroundings,
		InGit: func() bool {
			_, _, err := p.OpenRepo()
			return err == nil
		},
	}
	if p.name == "" {
		s.Others = sync.OnceValues(p.others)
	}
	return s
}

// requestedState returns the state with declarations, for rules about the declarations and the
// lock.
func (p *Project) requestedState(ctx context.Context, set *declare.Set, lock *lockfile.File) *rules.State {
	s := p.state(lock)
	s.Declared = func() *declare.Set { return set }
	s.Existing = func() []declare.Subscription { return p.loadPaths(p.Settings.Declarations) }
	s.Base = func(pin lockfile.Pin) []declare.Subscription {
		clone, err := p.Clone()
		if err != nil {
			return nil
		}
		commit, _, err := clone.Repo.LastChange(ctx, clone.Path(LockFile), "checksum: "+string(pin.Checksum()))
		if err != nil || commit == nil {
			return nil
		}
		before, err := clone.At(commit)
		if err != nil {
			return nil
		}
		return p.loadPaths(before.Settings.Declarations)
	}
	return s
}

// renderedState returns the state with a rendered lock, for rules about the rendered objects.
func (p *Project) renderedState(lock *lockfile.File, res *render.Result) (*rules.State, error) {
	s := p.state(lock)
	s.Declared = sync.OnceValue(func() *declare.Set {
		set, err := p.DeclarationsIfAny()
		if err == nil {
			set, err = CompleteFromLock(set, lock)
		}
		if err != nil {
			return &declare.Set{} // resolve reports the error
		}
		return set
	})
	s.Rendered = res
	s.Fleet = sync.OnceValues(func() (fleet.Fleet, error) { return p.Fleet(lock, res) })
	s.OverlayFiles = func(cluster string) (fs.FS, error) {
		dir, err := p.lookup(path.Join(p.Settings.OverlaysDir(), cluster))
		return dir.FS, err
	}
	var err error
	s.Overlays, _, err = p.Overlays()
	return s, err
}

// others returns the other workspaces of the repository.
func (r Root) others() ([]rules.Other, error) {
	dirs, err := Workspaces(r.Top())
	var out []rules.Other
	for _, dir := range dirs {
		if dir == r.repoPath() {
			continue
		}
		root := Dir(filepath.Join(r.Top(), filepath.FromSlash(dir)))
		w := sync.OnceValues(root.ReadSettings)
		out = append(out, rules.Other{
			Dir: dir, Settings: w,
			Lock: sync.OnceValues(func() (*lockfile.File, error) { return root.ReadLock(LockFile) }),
			Tree: func() (*filetree.Tree, error) {
				w, err := w()
				if err != nil {
					return nil, err
				}
				return root.readTree(w.Output, filetree.New())
			},
		})
	}
	return out, err
}

// readRepository returns the content of the repository beside the workspace, or nil if the workspace
// is not on disk.
func (p *Opened) readRepository() (*rules.Repository, error) {
	if !p.OnDisk() {
		return nil, nil
	}
	s, trees, err := p.survey()
	if err != nil {
		return nil, err
	}
	r := &rules.Repository{Survey: s, Trees: trees}
	var dirs []string
	for _, name := range s.Find(settings.FileName) {
		if dir := path.Dir(name); dir == "." || !strings.HasPrefix(dir, ".") && !strings.Contains(dir, "/.") {
			dirs = append(dirs, dir)
		}
	}
	r.Declared = p.declaredPaths(dirs)
	r.Below = slices.DeleteFunc(dirs, func(dir string) bool { return !isBelow(dir, p.repoPath()) || dir == p.repoPath() })
	return r, nil
}

// CheckPatterns returns an error for each name or pattern in the settings of clusters and operators
// that matches nothing.
func (p *Project) CheckPatterns() error {
	lock, err := p.LockIfAny()
	s := p.state(lock)
	if err == nil && lock != nil {
		err = rules.Check(s, rules.Operators)
	}
	return errors.Join(rules.Check(s, rules.Settings), err)
}

// unusedWaivers returns a warning for each waiver for an operator that is not in lock.
func (p *Project) unusedWaivers(lock *lockfile.File) []diag.Warning {
	found, _ := rules.Evaluate(p.state(lock), rules.Waivers) // these rules return no error
	return found.Warnings()
}
