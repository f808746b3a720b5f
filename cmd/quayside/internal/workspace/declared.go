package workspace

import (
	"context"
	"slices"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// checkDuplicates returns an error for each second declaration of a package in a namespace, because
// only one declaration can control the operator.
func checkDuplicates(set *declare.Set) error {
	var faults diag.List
	first := map[string]declare.Subscription{}
	for _, s := range set.Subscriptions {
		key := s.Namespace + "/" + s.Package
		if before, twice := first[key]; twice && s.Package != "" {
			faults.Add(s.Pos, diag.Hintf(s.Pos, "keep one of them", "package %q in namespace %q is declared twice, first at %s", s.Package, s.Namespace, before.Pos))
			continue
		}
		first[key] = s
	}
	return faults.Err()
}

// checkMisspelled returns an error for each object with a misspelled API that has the same name as
// the missing declaration of a pinned operator, because resolving would remove the operator.
func checkMisspelled(set *declare.Set, lock *lockfile.File) error {
	if lock == nil {
		return nil
	}
	var faults diag.List
	for _, w := range set.Warnings {
		for _, pin := range lock.Pins {
			declared := slices.ContainsFunc(set.Subscriptions, func(s declare.Subscription) bool { return s.Key() == w.Subject })
			if w.Code == "unknown-api" && slices.Contains(pin.RequestedBy, w.Subject) && !declared {
				faults.Add(w.Pos, diag.Hintf(w.Pos, "correct apiVersion; to remove the operator, delete the object", "%s, but %s is pinned for it", w.Msg, pin.Key()))
			}
		}
	}
	return faults.Err()
}

// checkDroppedPaths returns an error for each declaration of a pinned operator that still exists, but
// that spec.declarations no longer includes since the commit of the pin, because resolving would
// remove the operator. Without such a commit, it returns nil.
func (p *Project) checkDroppedPaths(ctx context.Context, set *declare.Set, lock *lockfile.File) error {
	if lock == nil {
		return nil
	}
	isIn := func(all []declare.Subscription) func(key string) bool {
		return func(key string) bool {
			return slices.ContainsFunc(all, func(s declare.Subscription) bool { return s.Key() == key })
		}
	}
	undeclared := slices.DeleteFunc(slices.Clone(lock.Pins), func(pin lockfile.Pin) bool {
		return len(pin.RequestedBy) == 0 || slices.ContainsFunc(pin.RequestedBy, isIn(set.Subscriptions))
	})
	if len(undeclared) == 0 {
		return nil
	}
	clone, err := p.Clone()
	if err != nil {
		return nil //nolint:nilerr // without a repository, earlier settings are unknown
	}
	isRead := isIn(p.loadPaths(p.Settings.Declarations)) // also if a command is about to remove it
	var faults diag.List
	for _, pin := range undeclared {
		commit, _, err := clone.Repo.LastChange(ctx, clone.Path(LockFile), "checksum: "+string(pin.Checksum()))
		if err != nil || commit == nil {
			continue
		}
		before, err := clone.At(commit)
		if err != nil {
			continue
		}
		for _, s := range p.loadPaths(before.Settings.Declarations) {
			if slices.Contains(pin.RequestedBy, s.Key()) && !isRead(s.Key()) {
				hint := "restore its path in spec.declarations; to remove the operator, delete this declaration"
				faults.Add(s.Pos, diag.Hintf(s.Pos, hint, "spec.declarations no longer includes this declaration, but %s is pinned for it", pin.Key()))
			}
		}
	}
	return faults.Err()
}

// loadPaths returns the declarations in those of the paths that exist, or nil if they are invalid.
func (p *Project) loadPaths(paths []declare.Path) []declare.Subscription {
	files, dir := p.Repository()
	opt := declare.LoadOptions{Dir: dir, Paths: slices.DeleteFunc(slices.Clone(paths), func(d declare.Path) bool { return !p.exists(d.Path) }), Output: p.Settings.Output}
	if len(opt.Paths) == 0 {
		return nil // LoadFS would read the whole workspace
	}
	set, err := declare.LoadFS(files, opt)
	if err != nil {
		return nil
	}
	return set.Subscriptions
}
