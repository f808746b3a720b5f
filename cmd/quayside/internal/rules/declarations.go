package rules

import (
	"fmt"
	"path"
	"slices"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// checkDuplicates returns an error for each declaration of a package that is already declared in
// the same namespace. Only one declaration can control the operator.
func checkDuplicates(s *State) (Findings, error) {
	var faults diag.List
	first := map[string]declare.Subscription{}
	for _, d := range s.Declared().Subscriptions {
		key := d.Namespace + "/" + d.Package
		if before, twice := first[key]; twice && d.Package != "" {
			faults.Add(d.Pos, diag.Hintf(d.Pos, "keep one of them", "package %q in namespace %q is declared twice, first at %s", d.Package, d.Namespace, before.Pos))
			continue
		}
		first[key] = d
	}
	return errorsOf(faults), nil
}

// checkDeletedLock returns an error if HEAD has a lock with declared operators and the work tree
// has none, because resolving would upgrade these operators.
func checkDeletedLock(s *State) (Findings, error) {
	if s.Lock != nil || s.HeadLock == nil {
		return nil, nil
	}
	head := s.HeadLock()
	if head == nil || !slices.ContainsFunc(s.Declared().Subscriptions, func(d declare.Subscription) bool { return isRequested(head, d) }) {
		return nil, nil
	}
	return errorsOf(diag.List{ErrDeletedLock()}), nil
}

// ErrDeletedLock returns the error for a missing lock that HEAD still has.
func ErrDeletedLock() *diag.Error {
	hint := "restore it with 'git restore " + settings.LockFile + "'; to choose all versions anew, commit its removal first"
	return diag.Hintf(diag.Pos{File: settings.LockFile}, hint, "missing, but committed in HEAD: a new lock would upgrade all operators to their newest versions")
}

// checkFreshness returns a warning with the declarations that are not locked, have changed since their
// operators were locked, or no longer exist. It opens no catalog.
func checkFreshness(s *State) (Findings, error) {
	set := s.Declared()
	if s.Lock == nil || len(set.Subscriptions) == 0 {
		return nil, nil
	}
	u, err := s.Upstream()
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, d := range set.Subscriptions {
		if !isRequested(s.Lock, d) && d.Bundle == "" && (u == nil || !u.Awaits(d)) {
			stale = append(stale, d.Key()+" is not locked")
		}
	}
	for _, pin := range s.Lock.Pins {
		gone := func(key string) bool {
			return !slices.ContainsFunc(set.Subscriptions, func(d declare.Subscription) bool { return d.Key() == key })
		}
		switch {
		case len(pin.RequestedBy) > 0 && !slices.ContainsFunc(pin.RequestedBy, func(key string) bool { return !gone(key) }):
			stale = append(stale, pin.Key()+" is no longer declared")
		case !resolve.HasDeclaration(set, pin):
			stale = append(stale, "the declaration of "+pin.Key()+" has changed")
		}
	}
	if len(stale) == 0 {
		return nil, nil
	}
	w := diag.Warning{Pos: diag.Pos{File: settings.LockFile}, Code: "stale-lock", Msg: fmt.Sprintf("out of date with the declarations: run 'quayside resolve' (%s)", diag.Some(stale, 5))}
	return warningsOf(s.waive([]diag.Warning{w})), nil
}

// isRequested reports whether a pin of the lock names declaration d in RequestedBy.
func isRequested(lock *lockfile.File, d declare.Subscription) bool {
	return slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool { return slices.Contains(pin.RequestedBy, d.Key()) })
}

// checkMisspelled returns an error for each object whose API is misspelled, if a pinned operator was
// declared by an object with this name and now has no declaration. Resolving would remove this operator.
func checkMisspelled(s *State) (Findings, error) {
	if s.Lock == nil {
		return nil, nil
	}
	var faults diag.List
	for _, w := range s.Declared().Warnings {
		for _, pin := range s.Lock.Pins {
			declared := slices.ContainsFunc(s.Declared().Subscriptions, func(d declare.Subscription) bool { return d.Key() == w.Subject })
			if w.Code == "unknown-api" && slices.Contains(pin.RequestedBy, w.Subject) && !declared {
				faults.Add(w.Pos, diag.Hintf(w.Pos, "correct apiVersion; to remove the operator, delete the object", "%s, but %s is pinned for it", w.Msg, pin.Key()))
			}
		}
	}
	return errorsOf(faults), nil
}

// checkDroppedPaths returns an error for each declaration of a pinned operator in a path that was removed from
// spec.declarations after the pin was committed. The declaration still exists there, but resolving would remove
// the operator.
func checkDroppedPaths(s *State) (Findings, error) {
	if s.Lock == nil {
		return nil, nil
	}
	isIn := func(all []declare.Subscription) func(key string) bool {
		return func(key string) bool {
			return slices.ContainsFunc(all, func(d declare.Subscription) bool { return d.Key() == key })
		}
	}
	undeclared := slices.DeleteFunc(slices.Clone(s.Lock.Pins), func(pin lockfile.Pin) bool {
		return len(pin.RequestedBy) == 0 || slices.ContainsFunc(pin.RequestedBy, isIn(s.Declared().Subscriptions))
	})
	if len(undeclared) == 0 || !s.InGit() {
		return nil, nil // without a repository, earlier settings are unknown
	}
	isRead := isIn(s.Existing())
	var faults diag.List
	for _, pin := range undeclared {
		for _, d := range s.Base(pin) {
			if slices.Contains(pin.RequestedBy, d.Key()) && !isRead(d.Key()) {
				hint := "restore its path in spec.declarations; to remove the operator, delete this declaration"
				faults.Add(d.Pos, diag.Hintf(d.Pos, hint, "spec.declarations no longer includes this declaration, but %s is pinned for it", pin.Key()))
			}
		}
	}
	return errorsOf(faults), nil
}

// checkOnly returns an error for each environment in a declaration's spec.only that would not install the
// operator: no workspace of the repository has this name, or the workspace does not read the declaration.
func checkOnly(s *State) (Findings, error) {
	set := s.Declared()
	limited := slices.DeleteFunc(slices.Concat(set.Subscriptions, set.Elsewhere), func(d declare.Subscription) bool { return d.Only == nil })
	if len(limited) == 0 || s.Others == nil {
		return nil, nil
	}
	others, err := s.Others()
	if err != nil {
		return nil, err
	}
	repo, err := s.Repository()
	if err != nil {
		return nil, err
	}
	names, dirs := []string{s.Settings.Title(s.Dir)}, []string{s.Dir}
	for _, o := range others {
		if w, err := o.Settings(); err == nil { // its own commands report the error
			names, dirs = append(names, w.Title(o.Dir)), append(dirs, o.Dir)
		}
	}
	var faults diag.List
	for _, d := range limited {
		at, file := d.At(declare.FieldOnly), path.Join(s.Dir, d.Pos.File)
		for _, name := range d.Only {
			i := slices.Index(names, name)
			switch {
			case i < 0:
				faults.Addf(at, "spec.only: no environment %q (available: %s)%s", name, diag.Some(names, 5), diag.DidYouMean(name, names))
			case repo != nil && dirs[i] != s.Dir && !slices.ContainsFunc(repo.Declared[dirs[i]], func(dir string) bool { return filetree.Within(file, dir) }):
				faults.Add(at, diag.Hintf(at, "write it into a path that both environments have in spec.declarations, such as with --to", "spec.only: %s does not read %s", name, d.Pos.File))
			}
		}
	}
	return errorsOf(faults), nil
}
