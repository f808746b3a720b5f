// Package project is an opened workspace: its settings, its declarations and
// its lock, its catalogs and the content of its bundles, each read when it is
// first asked for, and once. Everything that is done with a workspace begins
// here, whoever asks for it; a command line adds flags and words.
//
// A workspace is a directory, a revision of a Git repository or any other file
// system: see [Dir], [Revision] and [Files]. The package prints nothing and writes nothing
// but the store: progress goes to a [Talk], and results are returned as
// values.
//
// Start from [Open], [Project.Inputs] and [Project.Render].
package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/waiver"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// The files of a workspace that quayside writes, beside quayside.yaml.
const (
	LockFile  = "quayside.lock"
	VendorDir = workspace.VendorDir // an OCI layout that is looked into before a registry is asked
)

// Env is what a project is given from outside, beside its files.
type Env struct {
	Getenv  func(key string) string // where the store and the credentials are
	Version string                  // of this program
	Offline bool                    // never open a socket
	Today   string                  // "2026-11-21", in UTC: the day for which waivers are judged; empty: none expires
	Layout  string                  // an OCI layout to look into in place of VendorDir; empty: none
	Talk    Talk
}

// Talk receives progress while something takes its time.
type Talk interface {
	Progress(format string, args ...any) // what goes on now
	Pull(registry.Progress)              // likewise, of an image that is fetched
	Done()                               // it is over
	Detail(format string, args ...any)   // what was done, for who wants to know all of it
	Note(format string, args ...any)     // what is not as one would think
	Warn(ws []diag.Warning)              // what a person should know
}

// Project is an opened workspace. Its functions read what they return when they
// are first called, and return the same from then on: nobody changes it.
type Project struct {
	Env
	Root
	Settings *workspace.Workspace

	// Declarations returns what quayside.yaml names as declarations. The error is
	// an ErrNoDeclarations where it names none and the usual place is not there.
	Declarations func() (*subscription.Set, error)
	// Lock returns the lock. Where there is none the error wraps fs.ErrNotExist.
	Lock func() (*lockfile.File, error)
	// Client returns the client for images; paths of layouts and archives are
	// relative to the workspace.
	Client func() (*registry.Client, error)
	// Mirrors returns where images are fetched from.
	Mirrors func() (registry.Mirrors, error)

	takesSides bool // see TakingSides

	trusted func() (*trust.Policy, error)
	signed  *signatures
}

// Open opens a workspace. Only its settings are read.
func Open(root Root, env Env) (*Project, error) {
	settings, err := root.ReadSettings()
	if err == nil {
		err = settings.CheckRules(findingRules())
	}
	if err != nil {
		return nil, err
	}
	env.Talk.Detail("workspace %s, settings %s", cmp.Or(root.dir, root.name), cmp.Or(settings.File, "none"))
	p := &Project{Env: env, Root: root, Settings: settings, signed: &signatures{}}
	p.Declarations = sync.OnceValues(p.declarations)
	p.Lock = sync.OnceValues(func() (*lockfile.File, error) { return p.ReadLock(LockFile) })
	p.Client = sync.OnceValues(func() (*registry.Client, error) { return p.NewClient(p.Offline) })
	p.Mirrors = sync.OnceValues(p.mirrors)
	p.trusted = sync.OnceValues(p.policy)
	return p, nil
}

// findingRules returns the names of the rules of findings.
func findingRules() []string {
	var out []string
	for _, r := range diff.Rules() {
		out = append(out, r.ID)
	}
	return out
}

// At returns the workspace as it is seen from another directory: with the same
// settings, but with catalogs and images relative to that directory.
func (p *Project) At(root Root) *Project {
	there := *p
	there.Root = root
	there.Client = sync.OnceValues(func() (*registry.Client, error) {
		c, err := p.NewClient(p.Offline)
		if err == nil {
			c.Dir = root.dir
		}
		return c, err
	})
	return &there
}

// With returns the workspace as it would be with other catalogs in its settings,
// other declarations and another lock, which may be nil. Its files stay as they are.
func (p *Project) With(settings *workspace.Workspace, set *subscription.Set, lock *lockfile.File) *Project {
	there := *p
	there.Settings = settings
	there.Declarations = func() (*subscription.Set, error) { return set, nil }
	there.Lock = func() (*lockfile.File, error) {
		if lock == nil {
			return nil, fmt.Errorf("%s: %w", LockFile, fs.ErrNotExist)
		}
		return lock, nil
	}
	return &there
}

// Path returns where a file of the workspace lies on disk. Absolute names stay.
func (p *Project) Path(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// Name returns the directory as the user would name it.
func (p *Project) Name() string { return cmp.Or(p.dir, p.name) }

// FS returns the files of the workspace.
func (p *Project) FS() fs.FS { return p.files }

// OnDisk reports whether they lie in the directory Name.
func (p *Project) OnDisk() bool { return p.dir != "" }

// ErrNoDeclarations is for a workspace that neither names its declarations nor
// has any in the usual place, and where that is not because nothing was declared yet.
var ErrNoDeclarations = errors.New("no declarations here")

func (p *Project) declarations() (*subscription.Set, error) {
	w := p.Settings
	if _, named := w.Fields["spec.declarations"]; !named && len(w.Declarations) == 1 && !p.exists(w.Declarations[0].Path) && !p.pinsNothing() {
		if err := p.Absent(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoDeclarations, err)
		}
		return nil, fmt.Errorf("%w: put Subscriptions into %s/, or name their place in %s (spec.declarations)", ErrNoDeclarations, w.Declarations[0].Path, workspace.FileName)
	}
	opt := subscription.LoadOptions{Paths: w.Declarations, Output: w.Output, Applied: []string{w.Output}}
	if g := w.GitOps; g != nil && g.Path != "" {
		if applied, inside := p.below(g.Path); inside {
			opt.Applied = append(opt.Applied, applied)
		}
	}
	var files fs.FS
	files, opt.Dir = p.Repository()
	var outside diag.List
	for i, d := range w.Declarations {
		if _, inside := d.In(opt.Dir); !inside {
			outside.Addf(w.At(fmt.Sprintf("spec.declarations[%d].path", i)), "%q lies outside of the Git repository around the workspace, or of the workspace where there is none", d.Path)
		}
	}
	if err := outside.Err(); err != nil {
		return nil, err
	}
	var absent []diag.Warning
	if p.pinsNothing() {
		opt.Absent, absent = p.absent()
	}
	set, err := subscription.LoadFS(files, opt)
	if err != nil {
		return nil, err
	}
	p.Talk.Detail("read the declarations of %s", diag.Count(len(set.Subscriptions), "operator"))
	set.Warnings = p.Waive(diag.SortWarnings(append(set.Warnings, absent...)))
	return set, nil
}

// pinsNothing reports whether there is a workspace that has no pins, with a lock or
// without one.
func (p *Project) pinsNothing() bool {
	lock, err := p.LockIfAny()
	if lock == nil {
		return err == nil && p.Configured()
	}
	return len(lock.Pins) == 0
}

// absent returns which of the directories of declarations in the workspace are not
// there, with a warning for each. Git keeps no empty ones: where nothing is pinned,
// that is how a clone looks in which nothing was declared yet, or is any more.
func (p *Project) absent() ([]int, []diag.Warning) {
	var which []int
	var out []diag.Warning
	for i, d := range p.Settings.Declarations {
		if !fs.ValidPath(d.Path) || path.Ext(d.Path) != "" || p.exists(d.Path) {
			continue
		}
		which = append(which, i)
		out = append(out, diag.Warning{
			Pos: p.Settings.At(fmt.Sprintf("spec.declarations[%d]", i)), Code: "no-declarations",
			Msg: fmt.Sprintf("%s is not there: put Subscriptions into it, or run 'quayside add'", d.Path),
		})
	}
	return which, out
}

// Waive returns warnings with those marked that a waiver in quayside.yaml accepts.
func (p *Project) Waive(ws []diag.Warning) []diag.Warning {
	return waiver.Warnings(ws, p.Settings.Policy.Waivers, p.Today)
}

// reviewWaivers returns warnings about the waivers of the warnings of a step.
func (p *Project) reviewWaivers(step diag.Step, ws ...[]diag.Warning) []diag.Warning {
	return waiver.ReviewWarnings(step, slices.Concat(ws...), p.Settings.Policy.Waivers, p.Today)
}

// Configured reports whether there is a quayside.yaml.
func (p *Project) Configured() bool { return p.exists(workspace.FileName) }

// Absent returns an error that names the workspaces below this directory where
// it holds none itself, neither settings nor a lock nor declarations; nil where
// it does, and where there are none below either.
func (p *Project) Absent() error {
	if p.Configured() || p.exists(LockFile) || p.exists(p.Settings.Declarations[0].Path) {
		return nil
	}
	below := p.Below()
	if len(below) == 0 {
		return nil
	}
	const shown = 10
	more := ""
	if n := len(below) - shown; n > 0 {
		below, more = below[:shown], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("no workspace in %s, but in %s%s below it: choose one with -C", p.Name(), strings.Join(below, ", "), more)
}

// DeclarationsIfAny is Declarations, but empty where there are none: for what
// can be done before anything is asked for.
func (p *Project) DeclarationsIfAny() (*subscription.Set, error) {
	set, err := p.Declarations()
	if errors.Is(err, ErrNoDeclarations) {
		return &subscription.Set{}, nil
	}
	return set, err
}

// ReadLock reads a lock, given relative to the workspace. Where there is none
// the error wraps fs.ErrNotExist.
func (p *Project) ReadLock(name string) (*lockfile.File, error) {
	data, err := p.Read(name)
	if err != nil {
		return nil, err
	}
	p.Talk.Detail("read %s", p.name+filepath.ToSlash(name))
	return lockfile.Parse(p.name+filepath.ToSlash(name), data)
}

// Unedited returns the workspace with the lock as it was before somebody wrote
// other versions over those of its pins, and where these are to move. Where there
// is no lock nothing is.
func (p *Project) Unedited() (*Project, []resolve.Target, error) {
	data, err := p.Read(LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	lock, edits, err := lockfile.ParseEdited(p.name+LockFile, data)
	if err != nil {
		return nil, nil, err
	}
	before := *p
	before.Lock = func() (*lockfile.File, error) { return lock, nil }
	var to []resolve.Target
	for _, e := range edits {
		to = append(to, resolve.Target{Namespace: e.Namespace, Package: e.Package, Version: e.Version, At: e.Pos})
	}
	return &before, to, nil
}

// LockIfAny is Lock, but nil where there is none.
func (p *Project) LockIfAny() (*lockfile.File, error) {
	lock, err := p.Lock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lock, err
}

// NeedLock is Lock, and says what to do where there is none.
func (p *Project) NeedLock() (*lockfile.File, error) {
	lock, err := p.LockIfAny()
	if lock == nil && err == nil {
		err = cmp.Or(p.Absent(), fmt.Errorf("no %s in %s: run 'quayside resolve' first", LockFile, p.Name()))
	}
	return lock, err
}

// NewClient returns a client of its own, for callers that change it.
func (p *Project) NewClient(offline bool) (*registry.Client, error) {
	cache, err := p.store()
	if err != nil {
		return nil, err
	}
	mirrors, err := p.Mirrors()
	if err != nil {
		return nil, err
	}
	c := &registry.Client{
		Store:       cache,
		Offline:     offline,
		Mirrors:     mirrors,
		Dir:         p.dir,
		Credentials: registry.DefaultCredentials(p.Getenv),
		CertDirs:    registry.DefaultCertDirs(p.Getenv),
		UserAgent:   "quayside/" + p.Version,
		Progress:    p.Talk.Pull,
	}
	if p.dir == "" {
		c.Files, c.Dir = p.Repository()
		c.Vendored = VendorDir
		return c, nil
	}
	c.Vendored, err = filepath.Abs(cmp.Or(p.Layout, p.Path(VendorDir)))
	return c, err
}

// store opens the content-addressed store: $XDG_CACHE_HOME/quayside, else
// ~/.cache/quayside. One that cannot be used stops only what has to keep something.
func (p *Project) store() (*store.Store, error) {
	base := p.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home := cmp.Or(p.Getenv("HOME"), p.Getenv("USERPROFILE"))
		if home == "" {
			return store.Absent(errors.New("no cache directory: set XDG_CACHE_HOME or HOME")), nil
		}
		base = filepath.Join(home, ".cache")
	}
	return store.Open(filepath.Join(base, "quayside"))
}

// mirrors reads the files that say where images are fetched from.
func (p *Project) mirrors() (registry.Mirrors, error) {
	var all registry.Mirrors
	for i, name := range p.Settings.Mirrors {
		data, err := p.Read(name)
		if err != nil {
			return all, diag.Errorf(p.Settings.At(fmt.Sprintf("spec.mirrors[%d]", i)), "%w", err)
		}
		m, err := registry.ParseMirrors(filepath.ToSlash(name), data)
		if err != nil {
			return all, err
		}
		all = all.Join(m)
	}
	return all, nil
}
