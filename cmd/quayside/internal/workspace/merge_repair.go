package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// If a merge conflict is resolved by hand, the lock may be valid but lack an upgrade of one side. So the pins
// of the lock are compared with the locks of the commits that a merge, rebase or cherry-pick combined.
// docs/lock.md has the rules.

// mergeRepair is the result of repairMerge, except for the lock.
type mergeRepair struct {
	restored    map[string]string    // commit of each restored pin, by namespace/package
	downgrades  []lockfile.Downgrade // downgraded pins that are neither restored nor permitted
	notCompared []diag.Warning       // warnings about commits whose locks cannot be compared
}

// WithoutConflict returns p. But if an uncommitted merge left conflict markers in the lock, it returns
// a copy with the lock of HEAD. [Request.RepairMerge] then adds the pins of the other branch.
func WithoutConflict(p *Project) (*Project, error) {
	data, err := p.Read(LockFile)
	if err != nil || !lockfile.HasConflict(data) {
		return p, nil //nolint:nilerr // the code that needs the lock reports the error
	}
	clone, found, err := merges(p)
	if err != nil || len(found) == 0 || !found[0].Open {
		return p, err
	}
	head := found[0].Sides[0]
	if data, err = readOptional(head, clone.Path(LockFile)); err != nil {
		return nil, err
	}
	settled := *p
	settled.Lock = func() (*lockfile.File, error) { return nil, fs.ErrNotExist }
	if data != nil {
		settled.Lock = func() (*lockfile.File, error) { return lockfile.Parse(head.Name()+":"+clone.Path(LockFile), data) }
	}
	return &settled, nil
}

// repairMerge returns lock with the pins that a merge downgraded or lost; see [Request]. It
// restores only pins of operators that are still declared and are not being uninstalled. lock may
// be nil.
func repairMerge(p *Project, lock *lockfile.File, declared *declare.Set, opt resolve.Options) (*lockfile.File, mergeRepair) {
	r := mergeRepair{restored: map[string]string{}}
	lowered, vanished, notCompared := compareSides(p, lock)
	r.notCompared = notCompared
	if len(lowered)+len(vanished) == 0 {
		return lock, r
	}
	var pins []lockfile.Pin
	if lock != nil {
		pins = slices.Clone(lock.Pins)
	}
	for _, l := range lowered {
		i := slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Key() == l.Pin.Key() })
		if target := findTarget(opt, l.Pin); target != nil && (target.Version == l.Higher.Version || target.Version == l.Higher.Bundle) {
			pins[i], r.restored[l.Pin.Key()] = l.Higher, l.Side
		} else if opt.AllowDowngrade {
			pins[i] = l.AllowedPin()
		} else {
			r.downgrades = append(r.downgrades, l)
		}
	}
	for _, l := range vanished {
		wanted := slices.ContainsFunc(declared.Subscriptions, func(s declare.Subscription) bool {
			return s.Namespace == l.Higher.Namespace && s.Package == l.Higher.Package
		})
		if _, uninstalled := lock.With(nil).LeavingOperator(l.Higher.Key()); wanted && !uninstalled {
			pins, r.restored[l.Higher.Key()] = append(pins, l.Higher), l.Side
		}
	}
	if lock != nil || len(pins) > 0 {
		lock = lock.With(pins)
	}
	return lock, r
}

// explain returns changes with a reason for each restored pin: the name of the commit that contains the pin.
func (r mergeRepair) explain(changes []Change) []Change {
	for i, c := range changes {
		if side, ok := r.restored[c.Operator]; ok && c.Why == "" {
			changes[i].Why = "as in " + side
		}
	}
	return changes
}

// compareSides compares a lock with the locks of the commits that were combined in the work tree.
// It returns the pins that were downgraded and, if the merge is not committed yet, the pins that
// are missing. It also returns warnings about locks that cannot be compared. lock may be nil.
func compareSides(p *Project, lock *lockfile.File) (downgrades, removed []lockfile.Downgrade, notCompared []diag.Warning) {
	clone, found, err := merges(p)
	if err != nil {
		return nil, nil, []diag.Warning{notComparedWarning(err)}
	}
	for _, merge := range found {
		sides, base, err := readSides(clone, merge)
		if err != nil {
			notCompared = append(notCompared, notComparedWarning(err))
			continue
		}
		for _, l := range lockfile.Downgrades(lock, base, sides...) {
			if !slices.ContainsFunc(downgrades, func(o lockfile.Downgrade) bool { return o.Pin.Key() == l.Pin.Key() }) {
				downgrades = append(downgrades, l)
			}
		}
		if merge.Open {
			removed = lockfile.RemovedPins(lock, sides...)
		}
	}
	return downgrades, removed, notCompared
}

// notComparedWarning returns a warning that versions were not compared.
func notComparedWarning(err error) diag.Warning {
	cause, _, _ := strings.Cut(err.Error(), "\n")
	return diag.Warning{Code: "not-checked", Subject: LockFile, Msg: "not checked: versions lowered by a merge: " + cause}
}

// merges returns the clone of the workspace, and the merges, rebases and cherry-picks in its work
// tree. Without a repository, both results are nil.
func merges(p *Project) (*Clone, []gitrepo.Merge, error) {
	clone, err := p.Clone()
	if errors.Is(err, gitrepo.ErrNone) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	merges, err := clone.Repo.Merges()
	return clone, merges, err
}

// readSides returns the locks of the commits that a merge combined, and the lock of their common base.
// If a commit did not change the lock, its element is nil. If the work tree already has the same lock
// as every commit that changed it, there is nothing to compare, and readSides returns nil.
func readSides(clone *Clone, merge gitrepo.Merge) (sides []lockfile.Side, base *lockfile.File, err error) {
	if merge.Open && merge.Base == nil {
		return nil, nil, fmt.Errorf("this clone has no common ancestor of %s and %s", merge.Sides[0].Name(), merge.Sides[1].Name())
	}
	name := clone.Path(LockFile)
	current, err := clone.Project.Read(LockFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	parse := func(rev *gitrepo.Revision, data []byte) (*lockfile.File, error) {
		if data == nil {
			return nil, nil
		}
		return lockfile.Parse(rev.Name()+":"+name, data)
	}
	var before []byte
	if merge.Base != nil {
		if before, err = readOptional(merge.Base, name); err != nil {
			return nil, nil, err
		}
	}
	changed := map[*gitrepo.Revision][]byte{}
	differs := false // whether a changed lock differs from the lock in the work tree
	for _, rev := range merge.Sides {
		data, err := readOptional(rev, name)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(data, before) {
			changed[rev], differs = data, differs || !bytes.Equal(data, current)
		}
	}
	if !differs {
		return nil, nil, nil
	}
	for _, rev := range merge.Sides {
		side := lockfile.Side{Name: rev.Name()}
		if side.Lock, err = parse(rev, changed[rev]); err != nil {
			return nil, nil, err
		}
		sides = append(sides, side)
	}
	base, err = parse(merge.Base, before)
	return sides, base, err
}

// readOptional returns the content of a file of a revision, or nil if the file does not exist.
func readOptional(rev *gitrepo.Revision, name string) ([]byte, error) {
	data, err := rev.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// downgradeReasons returns a reason to reject the lock for each downgraded pin.
func downgradeReasons(lowered []lockfile.Downgrade) []resolve.Reason {
	var out []resolve.Reason
	for _, l := range lowered {
		text := fmt.Sprintf("is locked at %s, which is lower than %s in %s: run 'quayside resolve --upgrade=%s@%s', or accept the lower version with 'quayside resolve --allow-downgrade'",
			l.Pin.VersionText(), l.Higher.VersionText(), l.Side, l.Pin.Key(), l.Higher.Version)
		out = append(out, resolve.Reason{Namespace: l.Pin.Namespace, Package: l.Pin.Package, Pos: l.Pin.Fields.At("version", l.Pin.Pos), Text: text})
	}
	return out
}

// rejectDowngrades returns an error for each downgraded pin whose version in next is still lower
// than on the other side of the merge.
func rejectDowngrades(downgrades []lockfile.Downgrade, next *lockfile.File) error {
	var faults diag.List
	for _, r := range downgradeReasons(slices.DeleteFunc(slices.Clone(downgrades), func(l lockfile.Downgrade) bool {
		now, ok := next.Pin(l.Pin.Namespace, l.Pin.Package)
		return !ok || now.CompareVersions(l.Higher) >= 0
	})) {
		faults.Addf(r.Pos, "%s", r.Sentence())
	}
	return faults.Err()
}
