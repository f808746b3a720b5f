package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

// state returns the state of the workspace for evaluating rules. lock may be nil.
func (p *Project) state(lock *lockfile.File) *rules.State {
	s := &rules.State{
		Dir: p.repoPath(), Settings: p.Settings, Lock: lock, Observed: p.Observed, Today: p.today(), Now: p.Now,
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

// requestedState returns the state with declarations and a lock, for rules that need no rendered objects.
func (p *Project) requestedState(ctx context.Context, set *declare.Set, lock *lockfile.File) *rules.State {
	s := p.state(lock)
	s.Past = p.past(ctx)
	s.HeadLock = p.headLock
	s.Declared = func() *declare.Set { return set }
	s.Existing = func() []declare.Subscription { return p.loadPaths(p.Settings.Declarations) }
	s.Base = func(pin lockfile.Pin) []declare.Subscription {
		if before := atPin(ctx, p, pin); before != nil {
			return p.loadPaths(before.Settings.Declarations)
		}
		return nil
	}
	return s
}

// renderedState is like requestedState, but includes the result of rendering the lock, for rules about objects.
func (p *Project) renderedState(ctx context.Context, lock *lockfile.File, res *render.Result) (*rules.State, error) {
	s := p.requestedState(ctx, nil, lock)
	s.Declared = sync.OnceValue(func() *declare.Set {
		set, err := completeDeclarations(p, lock)
		if err != nil {
			return &declare.Set{} // resolve reports the error
		}
		return set
	})
	s.Rendered, s.Files = res, p.FS()
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
func (p *Opened) others() ([]rules.Other, error) {
	search := func() ([]string, error) { return Workspaces(p.Top()) }
	if p.rev != nil {
		search = func() ([]string, error) { return WorkspacesAt(p.rev, ".") }
	}
	dirs, err := search()
	var out []rules.Other
	for _, dir := range dirs {
		if dir != p.repoPath() {
			out = append(out, p.stored(dir))
		}
	}
	return out, err
}

// stored returns the workspace in dir, read from the disk or, if p is at a revision, from the revision.
func (p *Opened) stored(dir string) rules.Other {
	root := Dir(filepath.Join(p.Top(), filepath.FromSlash(dir)))
	if p.rev != nil {
		root = Revision(p.rev, dir)
	}
	w := sync.OnceValues(root.ReadSettings)
	return rules.Other{
		Dir: dir, Settings: w,
		Lock:     sync.OnceValues(func() (*lockfile.File, error) { return root.ReadLock(LockFile) }),
		Declared: sync.OnceValues(func() (*declare.Set, error) { return declaredIn(root, p.Env) }),
		Tree: func() (*filetree.Tree, error) {
			w, err := w()
			if err != nil {
				return nil, err
			}
			return root.readTree(w.OutputDir(), filetree.New())
		},
	}
}

// WarnStale returns a warning if the lock is out of date with the declarations. It opens no catalog.
func WarnStale(ctx context.Context, p *Project) []diag.Warning {
	lock, err := p.LockIfAny()
	if err != nil || lock == nil {
		return nil
	}
	set, err := completeDeclarations(p, lock)
	if err != nil {
		return nil // resolve reports the error
	}
	found, err := rules.Evaluate(p.requestedState(ctx, set, lock), rules.Fresh)
	if err != nil {
		return nil // verify reports the error
	}
	return found.Warnings()
}

// declaredIn returns the declarations of another workspace. It logs nothing.
func declaredIn(root Root, env Env) (*declare.Set, error) {
	env.Log = nil
	other, err := Open(root, env)
	if err != nil {
		return nil, err
	}
	lock, err := other.LockIfAny()
	if err != nil {
		return nil, err
	}
	return completeDeclarations(other, lock)
}

// completeDeclarations returns the declarations of a workspace, completed with namespaces and
// packages from its lock. Without declarations, the set is empty.
func completeDeclarations(p *Project, lock *lockfile.File) (*declare.Set, error) {
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, err
	}
	return CompleteFromLock(set, lock)
}

// past returns a function that returns the history of another workspace's lock. It returns nil without Git.
func (r Root) past(ctx context.Context) func(rules.Other) (*rules.Past, error) {
	repo, _, err := r.OpenRepo()
	if err != nil && r.rev == nil {
		return nil
	}
	return func(o rules.Other) (*rules.Past, error) {
		tip := r.rev
		if tip == nil && !repo.HasCommits() {
			return rules.ParsePast(nil, false), nil
		}
		if tip == nil {
			head, err := repo.Head()
			if err != nil {
				return nil, err
			}
			tip = head
		}
		lines, err := tip.ChangedLines(ctx, path.Join(o.Dir, LockFile))
		return rules.ParsePast(lines, tip.Shallow()), err
	}
}

// StateFindings evaluates the rules about a lock, its fleet, and the settings and locks of other
// workspaces. The workspace may be at a revision. StateFindings reads no catalog, so it finds an operator
// that cannot run only by the properties in the lock. It returns nil if the declarations are invalid.
func (p *Project) StateFindings(ctx context.Context, lock *lockfile.File, clusters fleet.Fleet, remotes *gitrepo.Remotes) (rules.Findings, error) {
	set, err := completeDeclarations(p, lock)
	if err != nil || lock == nil {
		return nil, nil //nolint:nilerr // resolve reports the error
	}
	s := p.requestedState(ctx, set, lock)
	s.Others, s.InGit = sync.OnceValues(p.others), func() bool { return true }
	if !p.OnDisk() {
		r := &rules.Repository{Remotes: remotes}
		if g := p.Settings.GitOps; g != nil { // another rule checks trees in the own workspace
			r.Trees = []string{path.Clean(g.Path)}
		}
		s.Repository = func() (*rules.Repository, error) { return r, nil }
	}
	s.Fleet = func() (fleet.Fleet, error) { return clusters, nil }
	if s.Overlays, _, err = p.Overlays(); err != nil {
		return nil, err
	}
	s.Unfit = p.Waive(unfitByLock(lock, p.Settings.OpenShiftVersion))
	var out rules.Findings
	for _, part := range []rules.Part{rules.Locks, rules.Addresses, rules.Patched} {
		found, err := rules.Evaluate(s, part)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// ChangeState returns the state that the rule about maintenance windows needs, for a change from
// one lock to another. severities maps each operator to the highest severity of the findings about
// its change; nil means that severities are unknown.
func ChangeState(p *Project, before, after *lockfile.File, severities map[string]string) *rules.State {
	s := p.state(after)
	s.Merged, s.Severities = before, severities
	return s
}

// OutsideWindow returns a copy of lock. In each pin that found reports as changed outside of its
// windows, it sets OutsideWindow to reason.
func OutsideWindow(lock *lockfile.File, found rules.Findings, reason string) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, pin := range pins {
		if slices.ContainsFunc(found, func(f rules.Finding) bool { return f.Subject == pin.Key() && f.Code == rules.OutsideWindow }) {
			pins[i].OutsideWindow = reason
		}
	}
	return lock.With(pins)
}

// unfitByLock returns a warning for each pin whose properties exclude the given version of OpenShift.
func unfitByLock(lock *lockfile.File, openShift string) []diag.Warning {
	var out []diag.Warning
	found, _ := resolve.FindIncompatible(&catalog.Index{}, lock, "", openShift)
	for _, f := range found {
		out = append(out, diag.Warning{Pos: f.Pin.Pos, Code: "requirement", Subject: f.Pin.Key(), Msg: fmt.Sprintf("%s: %s %s, the workspace has %s", f.Pin.Key(), f.Pin.Bundle, f.Text, openShift)})
	}
	return out
}

// ignored returns the names of files that Git ignores and does not track. If the program git is
// missing, it returns nil.
func (r Root) ignored(ctx context.Context, names []string) []string {
	repo, prefix, err := r.OpenRepo()
	if err != nil {
		return nil
	}
	var full []string
	for _, name := range names {
		full = append(full, path.Join(prefix, name))
	}
	found, err := repo.Ignored(ctx, full)
	if err != nil {
		return nil // without the program git
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(found, path.Join(prefix, name)) })
}

// headLock returns the lock of HEAD, or nil if there is none. It also returns nil during an uncommitted
// merge, because resolving then restores pins of both sides.
func (r Root) headLock() *lockfile.File {
	repo, prefix, err := r.OpenRepo()
	if err != nil {
		return nil
	}
	merges, err := repo.Merges()
	if err != nil || slices.ContainsFunc(merges, func(m gitrepo.Merge) bool { return m.Open }) {
		return nil
	}
	head, err := repo.Head()
	if err != nil {
		return nil
	}
	lock, err := Revision(head, prefix).ReadLock(LockFile)
	if err != nil {
		return nil
	}
	return lock
}

// HasDeletedLock reports whether HEAD has a lock of the workspace that the work tree lacks.
func (r Root) HasDeletedLock() bool {
	return r.rev == nil && r.Configured() && !r.exists(LockFile) && r.headLock() != nil
}

// judgeLock evaluates the rules about lock. unfit are the warnings about operators that cannot run.
func (pr *Problem) judgeLock(ctx context.Context, lock *lockfile.File, unfit []diag.Warning) (rules.Findings, error) {
	s := pr.project.requestedState(ctx, pr.Declared, lock)
	s.Unfit = unfit
	return rules.Evaluate(s, rules.Locks)
}

// judgeNewLock is like judgeLock, for a lock that is to replace the lock file. A finding that also applies to
// the present lock file becomes a warning.
func (pr *Problem) judgeNewLock(ctx context.Context, lock *lockfile.File, unfit []diag.Warning) (rules.Findings, error) {
	found, err := pr.judgeLock(ctx, lock, unfit)
	if err != nil {
		return nil, err
	}
	ofFollowers, err := pr.judgeFollowers(ctx, lock)
	if err != nil || pr.Read == nil || len(found) == 0 {
		return append(found.WhileWriting(), ofFollowers...), err
	}
	known := slices.DeleteFunc(slices.Clone(unfit), func(w diag.Warning) bool {
		old, had := pr.Read.Operator(w.Subject)
		pin, _ := lock.Operator(w.Subject)
		imported := old.InstallMode == "" // imported from a cluster, in which the operator already runs with these settings
		return !had || !imported && (old.InstallMode != pin.InstallMode || !slices.Equal(old.WatchNamespaces, pin.WatchNamespaces))
	})
	before, err := pr.judgeLock(ctx, pr.Read, known)
	return append(found.Introduced(before).WhileWriting(), ofFollowers...), err
}

// judgeFollowers evaluates the rules about the locks of the environments that follow the workspace. A finding
// that also applies to the stored lock and declarations becomes a warning. It reads the stored declarations,
// because pr.Declared may contain the change of a command such as add.
func (pr *Problem) judgeFollowers(ctx context.Context, lock *lockfile.File) (rules.Findings, error) {
	p := pr.project
	found, err := rules.EvaluateFollowers(p.requestedState(ctx, pr.Declared, lock))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	stored := p.stored(p.repoPath())
	old, err := stored.Lock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, nil //nolint:nilerr // a lock that cannot be parsed is no state to compare with
	}
	set, err := stored.Declared()
	if err != nil {
		set = pr.Declared // a partial run: commands do not edit declarations that cannot be read
	}
	before, err := rules.EvaluateFollowers(p.requestedState(ctx, set, old))
	return found.Introduced(before), err
}

// splitUnfit separates the warnings about operators that cannot run from the other warnings.
func splitUnfit(ws []diag.Warning) (unfit, others []diag.Warning) {
	for _, w := range ws {
		if w.Code == "requirement" {
			unfit = append(unfit, w)
		} else {
			others = append(others, w)
		}
	}
	return unfit, others
}

// followUpstream returns opt with restrictions, and the upstream environment or nil. With these restrictions,
// the resolver rejects bundles that were never locked upstream. It holds back a new operator as long as the
// upstream environment declares the operator without a pin.
func followUpstream(ctx context.Context, p *Project, opt resolve.Options, lock *lockfile.File, set *declare.Set) (resolve.Options, *rules.Upstream, error) {
	if p.Settings.Follows == "" || opt.From != nil {
		return opt, nil, nil
	}
	u, err := p.requestedState(ctx, set, lock).Upstream()
	if err != nil || u == nil {
		return opt, nil, err
	}
	opt.Objection = func(namespace string, to *catalog.Bundle) string {
		return u.Refusal(namespace, to.Package().Name(), to.Name())
	}
	for _, d := range set.Subscriptions {
		if _, pinned := resolve.PinOf(lock, d); !pinned && u.Awaits(d) {
			opt.Held = append(opt.Held, resolve.Hold{
				Operator: d.Namespace + "/" + d.Package, At: d.Pos,
				Reason: fmt.Sprintf("%s has to install it first: it is promoted from there", u.Title),
			})
		}
	}
	return opt, u, nil
}

// readRepository returns the content of the repository outside of the workspace. It returns nil if
// the workspace is not on disk.
func (p *Opened) readRepository() (*rules.Repository, error) {
	if !p.OnDisk() {
		return nil, nil
	}
	s, trees, err := p.survey()
	if err != nil {
		return nil, err
	}
	r := &rules.Repository{Survey: s, Trees: trees}
	if repo, _, err := p.OpenRepo(); err == nil {
		if r.Remotes, err = repo.Remotes(); err != nil {
			return nil, err
		}
	}
	dirs := workspaceDirs(s)
	r.Declared = p.declaredPaths(dirs)
	r.Below = slices.DeleteFunc(dirs, func(dir string) bool { return !isBelow(dir, p.repoPath()) || dir == p.repoPath() })
	return r, nil
}

// CheckPatterns returns an error for each name or pattern of clusters or operators in the settings that matches
// nothing.
func (p *Project) CheckPatterns() error {
	lock, err := p.LockIfAny()
	s := p.state(lock)
	if err == nil && lock != nil {
		err = rules.Check(s, rules.Operators)
	}
	return errors.Join(rules.Check(s, rules.Settings), err)
}

// unusedWaivers returns a warning for each waiver whose operator is not in lock.
func (p *Project) unusedWaivers(lock *lockfile.File) []diag.Warning {
	found, _ := rules.Evaluate(p.state(lock), rules.Waivers) // these rules return no error
	return found.Warnings()
}
