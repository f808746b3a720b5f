// Package workspace opens a workspace: its settings, declarations and lock, its catalogs and the
// content of its bundles. It reads each of these once, on first use. It contains the operations on
// a workspace; package cli adds flags and messages.
//
// A workspace is a directory, a revision of a Git repository or any other file system: see [Dir],
// [Revision] and [Files]. Opening and resolving write only to the store. Progress goes to a
// [Logger], and results are returned as values.
//
// Start from [Open], [ReadProblem] and [Project.Render].
package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
	setting "github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Names of the files that quayside writes in a workspace, in addition to quayside.yaml.
const (
	LockFile  = setting.LockFile
	VendorDir = setting.VendorDir // OCI layout that takes precedence over registries
)

// Env contains the inputs of a project other than its files.
type Env struct {
	Getenv  func(key string) string // returns environment variables, such as those for the store and the credentials
	Version string                  // version of this program
	Offline bool                    // no network access
	Now     time.Time               // current time, for windows and waivers; zero: no window opens, and no waiver expires
	Layout  string                  // OCI layout to use instead of VendorDir; empty: none
	Log     Logger                  // nil: log nothing

	// Observed contains one observation for each cluster, with its APIs and classes.
	Observed []*health.Summary

	charts  *helm.Charts  // renders the charts of the repository; set by Open
	results *memo.Results // results for the repository that earlier commands computed; may be nil; set by Open
}

// today returns the current date in UTC, such as "2026-11-21", or "" if Now is not set. Waivers expire by this date.
func (e Env) today() string {
	if e.Now.IsZero() {
		return ""
	}
	return e.Now.UTC().Format(time.DateOnly)
}

// Logger receives progress and messages of long operations.
type Logger interface {
	Progress(format string, args ...any)        // start of an activity
	Pull(image, blob string, done, total int64) // download progress of an image blob, in bytes
	Done()                                      // end of the activity
	Detail(format string, args ...any)          // verbose message
	Note(format string, args ...any)            // message for the user
	Warn(ws []diag.Warning)                     // warnings for the user
}

// discard is a Logger that drops everything.
type discard struct{}

func (discard) Progress(string, ...any)           {}
func (discard) Pull(string, string, int64, int64) {}
func (discard) Done()                             {}
func (discard) Detail(string, ...any)             {}
func (discard) Note(string, ...any)               {}
func (discard) Warn([]diag.Warning)               {}

// Opened is a workspace whose settings have been read, but nothing else.
type Opened struct {
	Env
	Root
	Settings *setting.Workspace
}

// Registries opens the catalogs and images of a workspace, and verifies their signatures. Each
// function field computes its result once; later calls return the same result.
type Registries struct {
	Opened

	// Client returns the client for images. Paths of OCI layouts and archives are relative to the
	// workspace.
	Client func() (*oci.Client, error)
	// Mirrors returns the mirrors for fetching images.
	Mirrors func() (oci.Mirrors, error)

	policy     func() (*trust.Policy, error)
	signatures *signatures
}

// Project is a workspace with its declarations and its lock. Each function field reads its result
// once. Callers must not modify the results.
type Project struct {
	Registries

	// Declarations returns the declarations in spec.declarations. If spec.declarations is not set and the
	// default directory does not exist, the error wraps ErrNoDeclarations. If some declarations cannot be
	// read, it returns the readable declarations and an error.
	Declarations func() (*declare.Set, error)
	// Lock returns the lock. If there is none, the error wraps fs.ErrNotExist.
	Lock func() (*lockfile.File, error)
	// Surroundings returns the content of the repository outside of the workspace, as it was before
	// the first write of the command. It returns nil if the workspace is not on disk.
	Surroundings func() (*rules.Repository, error)
}

// Open opens a workspace. It reads only the settings.
func Open(root Root, env Env) (*Project, error) {
	settings, err := root.ReadSettings()
	if err == nil {
		err = settings.CheckRules(findingRules())
	}
	if err != nil {
		return nil, err
	}
	if env.Log == nil {
		env.Log = discard{}
	}
	env.charts = cmp.Or(env.charts, helm.NewCharts(""))
	env.results = cmp.Or(env.results, env.newResults(root))
	env.Log.Detail("workspace %s, settings %s", cmp.Or(root.dir, root.name), cmp.Or(settings.File, "none"))
	p := &Project{Registries: Registries{Opened: Opened{env, root, settings}, signatures: &signatures{}}}
	p.Declarations = sync.OnceValues(p.declarations)
	p.Lock = sync.OnceValues(func() (*lockfile.File, error) {
		lock, err := root.ReadLock(LockFile)
		if !errors.Is(err, fs.ErrNotExist) {
			env.Log.Detail("read %s", root.name+LockFile)
		}
		return lock, err
	})
	p.Surroundings = sync.OnceValues(p.readRepository)
	p.Client = sync.OnceValues(func() (*oci.Client, error) { return p.NewClient(p.Offline) })
	p.Mirrors = sync.OnceValues(p.mirrors)
	p.policy = sync.OnceValues(p.readPolicy)
	return p, nil
}

// findingRules returns the allowed keys of spec.policy.severity: the IDs of the rules of quayside
// diff, and the code of the rule about changes outside of maintenance windows.
func findingRules() []string {
	out := []string{rules.OutsideWindow}
	for _, r := range diff.Rules() {
		out = append(out, r.ID)
	}
	return out
}

// RelativeTo returns a copy of p whose paths of catalogs and images are relative to root.
func (p *Registries) RelativeTo(root Root) *Registries {
	out := *p
	out.Root = root
	out.Client = sync.OnceValues(func() (*oci.Client, error) {
		c, err := p.NewClient(p.Offline)
		if err == nil {
			c.Lookup = root.find
		}
		return c, err
	})
	return &out
}

// WithRoot returns a copy of p whose paths of catalogs and images are relative to root.
func (p *Project) WithRoot(root Root) *Project {
	out := *p
	out.Registries = *p.RelativeTo(root)
	return &out
}

// With returns a copy of p with other settings, declarations and lock. lock may be nil.
func (p *Project) With(settings *setting.Workspace, set *declare.Set, lock *lockfile.File) *Project {
	there := *p
	there.Settings = settings
	there.Surroundings = sync.OnceValues(there.readRepository)
	there.Declarations = func() (*declare.Set, error) { return set, nil }
	there.Lock = func() (*lockfile.File, error) {
		if lock == nil {
			return nil, fmt.Errorf("%s: %w", LockFile, fs.ErrNotExist)
		}
		return lock, nil
	}
	return &there
}

// find opens a path. For a directory, it returns its files and "". For a file, it returns the files
// of the parent directory, and the base name of the file.
func (r Root) find(name string) (fs.FS, string, error) {
	f, err := r.lookup(name)
	return f.FS, f.Name, err
}

// WriteFile writes a file of the workspace, and reports whether its content changed.
func (r Root) WriteFile(name string, data []byte) (written bool, err error) {
	return r.disk.WriteFile(name, data)
}

// RemoveFile removes a file of the workspace.
func (r Root) RemoveFile(name string) error { return r.disk.Remove(name) }

// Path returns the path on disk for a path in the workspace. An absolute path is unchanged.
func (r Root) Path(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// Name returns the directory of the workspace as the user gave it. If the workspace is not on disk,
// it returns the prefix of its file names in positions.
func (r Root) Name() string { return cmp.Or(r.dir, r.name) }

// Location returns the full path of the directory, for messages. If the workspace is not on disk,
// it returns Name.
func (r Root) Location() string {
	if abs, err := filepath.Abs(r.dir); err == nil && r.dir != "" {
		return abs
	}
	return r.Name()
}

// FS returns the files of the workspace.
func (r Root) FS() fs.FS { return r.files }

// OnDisk reports whether the workspace is a directory on disk.
func (r Root) OnDisk() bool { return r.dir != "" }

// ErrNoDeclarations is returned for a workspace without spec.declarations and without the default
// directory. In a new workspace without pins, this is only a warning.
var ErrNoDeclarations = errors.New("no declarations found")

// noDeclarationsError wraps ErrNoDeclarations. Only Error searches for workspaces: most callers need no message.
type noDeclarationsError struct{ p *Project }

func (noDeclarationsError) Unwrap() error { return ErrNoDeclarations }

func (e noDeclarationsError) Error() string {
	cause := cmp.Or(e.p.SuggestWorkspaces(), fmt.Errorf("put Subscriptions into %s/, or set their path in %s (spec.declarations)", e.p.Settings.Declarations[0].Path, setting.FileName))
	return fmt.Sprintf("%v: %v", ErrNoDeclarations, cause)
}

func (p *Project) declarations() (*declare.Set, error) {
	w := p.Settings
	if _, named := w.Fields["spec.declarations"]; !named && len(w.Declarations) == 1 && !p.exists(w.Declarations[0].Path) && !p.hasNoPins() {
		return nil, noDeclarationsError{p}
	}
	opt := declare.LoadOptions{Environment: p.Environment(), Paths: w.Declarations, Foreign: p.isForeign(), Charts: p.repositoryCharts(w), Results: p.results, Output: w.OutputDir(), Applied: []string{w.OutputDir()}}
	if g := w.GitOps; g != nil && g.Path != "" {
		if applied, inside := p.pathInside(g.Path); inside {
			opt.Applied = append(opt.Applied, applied)
		}
	}
	var files fs.FS
	files, opt.Dir = p.Repository()
	var outside diag.List
	for i, d := range w.Declarations {
		if _, inside := d.In(opt.Dir); !inside {
			outside.Addf(w.At(fmt.Sprintf("spec.declarations[%d].path", i)), "%q is outside of the workspace's Git repository, or of the workspace if there is none", d.Path)
		}
	}
	if err := outside.Err(); err != nil {
		return nil, err
	}
	var absent []diag.Warning
	if p.hasNoPins() {
		opt.Absent, absent = p.missingDirs()
	} else if err := p.checkDirs(); err != nil {
		return nil, err
	}
	set, err := declare.LoadFS(files, opt)
	if set == nil {
		return nil, err
	}
	err = p.hintNamespaces(set, err)
	p.Log.Detail("read the declarations of %s", diag.Count(len(set.Subscriptions), "operator"))
	set.Warnings = p.Waive(diag.SortWarnings(append(set.Warnings, absent...)))
	return set, err
}

// hasNoPins reports whether the workspace has a lock without pins, or a quayside.yaml and no lock.
func (p *Project) hasNoPins() bool {
	lock, err := p.LockIfAny()
	if lock == nil {
		return err == nil && p.Configured()
	}
	return len(lock.Pins) == 0
}

// missingDirs returns the indexes of the directories in spec.declarations that do not exist, and a warning
// for each. A clone may lack such a directory, because Git does not store empty directories. The caller decides
// whether this is an error: in a workspace without pins it is none.
func (p *Opened) missingDirs() ([]int, []diag.Warning) {
	var missing []int
	var out []diag.Warning
	for i, d := range p.Settings.Declarations {
		if !fs.ValidPath(d.Path) || path.Ext(d.Path) != "" || d.IsPattern() || p.exists(d.Path) {
			continue
		}
		missing = append(missing, i)
		out = append(out, diag.Warning{
			Pos: p.Settings.At(fmt.Sprintf("spec.declarations[%d]", i)), Code: "no-declarations",
			Msg: fmt.Sprintf("%s does not exist: put Subscriptions into it, or run 'quayside add'", d.Path),
		})
	}
	return missing, out
}

// checkDirs returns an error for each directory of declarations that does not exist.
func (p *Opened) checkDirs() error {
	which, _ := p.missingDirs()
	var faults diag.List
	for _, i := range which {
		at := p.Settings.At(fmt.Sprintf("spec.declarations[%d]", i))
		hint := "restore the directory, or remove it from spec.declarations"
		faults.Add(at, diag.Hintf(at, hint, "no declarations found: %s does not exist, but %s has pins", p.Settings.Declarations[i].Path, LockFile))
	}
	return faults.Err()
}

// Waive marks the warnings that a waiver in quayside.yaml accepts.
func (p *Opened) Waive(ws []diag.Warning) []diag.Warning {
	return diag.MarkWaived(ws, p.Settings.Policy.Waivers, p.today())
}

// reviewWaivers returns warnings about the waivers, such as unused waivers. ws are all warnings of
// the step, waived or not.
func (p *Opened) reviewWaivers(step diag.Step, ws ...[]diag.Warning) []diag.Warning {
	return p.JudgeUnused(diag.ReviewWarnings(step, slices.Concat(ws...), p.Settings.Policy.Waivers, p.today()))
}

// JudgeUnused returns ws without warnings about unused inherited waivers that another workspace
// with the same settings may need.
func (p *Opened) JudgeUnused(ws []diag.Warning) []diag.Warning {
	s := &rules.State{Dir: p.repoPath(), Settings: p.Settings}
	if p.name == "" {
		s.Others = p.others
	}
	return s.ReviewShared(ws)
}

// Configured reports whether the workspace has a quayside.yaml.
func (r Root) Configured() bool { return r.exists(setting.FileName) }

// SuggestWorkspaces returns an error if the directory has no settings, lock or declarations, but contains
// directories with a workspace. The error lists these workspaces.
func (p *Opened) SuggestWorkspaces() error {
	if p.Configured() || p.exists(LockFile) || p.exists(p.Settings.Declarations[0].Path) {
		return nil
	}
	below := p.WorkspacesBelow()
	if len(below) == 0 {
		return nil
	}
	return fmt.Errorf("no workspace in %s (found below it: %s): choose one with -C", p.Location(), diag.Some(below, 10))
}

// DeclarationsIfAny is like Declarations, but returns an empty set for ErrNoDeclarations.
func (p *Project) DeclarationsIfAny() (*declare.Set, error) {
	set, err := p.Declarations()
	if errors.Is(err, ErrNoDeclarations) {
		return &declare.Set{}, nil
	}
	return set, err
}

// ReadLock reads a lock file. name is relative to the workspace. If the file does not exist, the
// error wraps fs.ErrNotExist.
func (r Root) ReadLock(name string) (*lockfile.File, error) {
	data, err := r.Read(name)
	if err != nil {
		return nil, err
	}
	return lockfile.Parse(r.name+filepath.ToSlash(name), data)
}

// WithoutEdits returns a copy of p in which the versions that the user edited in the lock have their old values
// again. It also returns a target for each edited version. Without a lock, it returns p and no targets.
func (p *Project) WithoutEdits() (*Project, []resolve.Target, error) {
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

// LockIfAny is like Lock, but returns nil if there is no lock.
func (p *Project) LockIfAny() (*lockfile.File, error) {
	lock, err := p.Lock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lock, err
}

// NeedLock is like Lock, but the error for a missing lock contains a hint.
func (p *Project) NeedLock() (*lockfile.File, error) {
	lock, err := p.LockIfAny()
	if lock == nil && err == nil {
		err = p.SuggestWorkspaces()
		switch {
		case err != nil:
		case p.HasDeletedLock():
			err = rules.ErrDeletedLock()
		case p.Configured():
			err = fmt.Errorf("no %s in %s: run 'quayside resolve' first", LockFile, p.Location())
		default:
			err = fmt.Errorf("no workspace in %s: run 'quayside init' to create one", p.Location())
		}
	}
	return lock, err
}

// NewClient returns a new client for images. The caller may modify it.
func (p *Registries) NewClient(offline bool) (*oci.Client, error) {
	store, err := p.store()
	if err != nil {
		return nil, err
	}
	mirrors, err := p.Mirrors()
	if err != nil {
		return nil, err
	}
	c := &oci.Client{
		Store:       store,
		Offline:     offline,
		Mirrors:     mirrors,
		Lookup:      p.find,
		Credentials: oci.DefaultCredentials(p.Getenv),
		CertDirs:    oci.DefaultCertDirs(p.Getenv),
		UserAgent:   "quayside/" + p.Version,
		Progress:    func(b oci.Progress) { p.Log.Pull(b.Image, b.Digest, b.Done, b.Total) },
	}
	c.Vendored = VendorDir
	if p.dir == "" {
		return c, nil
	}
	if c.Vendored, err = filepath.Abs(cmp.Or(p.Layout, p.Path(VendorDir))); err == nil && p.Layout != "" {
		c.Lookup = func(name string) (fs.FS, string, error) {
			if name == c.Vendored {
				return filetree.OpenUserDir(name).Lookup(".")
			}
			return p.find(name)
		}
	}
	return c, err
}

// store opens the content-addressed store in $XDG_CACHE_HOME/quayside or ~/.cache/quayside. If
// there is no cache directory, only operations that must write to the store fail.
func (e Env) store() (*store.Store, error) {
	base := e.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home := cmp.Or(e.Getenv("HOME"), e.Getenv("USERPROFILE"))
		if home == "" {
			return store.Absent(errors.New("no cache directory: set XDG_CACHE_HOME or HOME")), nil
		}
		base = filepath.Join(home, ".cache")
	}
	return store.Open(filepath.Join(base, "quayside"))
}

// mirrors reads the files in spec.mirrors.
func (p *Opened) mirrors() (oci.Mirrors, error) {
	var all oci.Mirrors
	for i, name := range p.Settings.Mirrors {
		data, err := p.Read(name)
		if err != nil {
			return all, diag.Errorf(p.Settings.At(fmt.Sprintf("spec.mirrors[%d]", i)), "%w", err)
		}
		m, err := oci.ParseMirrors(filepath.ToSlash(name), data)
		if err != nil {
			return all, err
		}
		all = all.Join(m)
	}
	return all, nil
}
