package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TreeReport lists the differences between the tree on disk and the rendered lock.
type TreeReport struct {
	Output    string                `json:"output"`
	Written   bool                  `json:"written"`
	Operators int                   `json:"operators"`
	Files     int                   `json:"files"`
	Changes   []filetree.FileChange `json:"changes" doc:"of the files: missing, differs, extra (as they were before); foreign: not quayside's"`
	Warnings  []diag.Warning        `json:"warnings"`

	Result        *render.Result `json:"-"`
	refused       error          // why the tree cannot be written, such as files edited by hand
	foreignFaults []string       // faults of foreign files, see checkForeign
	applied       []diag.Warning // objects that make OLM install rendered operators, see findStillApplied
	unmet         diag.List      // needs of operators that a cluster does not meet, see unmetNeeds
}

// Foreign is the change kind of files not written by quayside, mostly the user's patches.
const Foreign = "foreign"

// OwnChanges returns the changes of quayside's files.
func (r *TreeReport) OwnChanges() []filetree.FileChange {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c filetree.FileChange) bool { return c.Kind == Foreign })
}

// WriteLock writes a lock, and reports whether the file changed. With tree it also writes the
// rendered tree; if the tree cannot be written, the lock is not written either. It logs the migration
// of an older schema.
func (p *Project) WriteLock(ctx context.Context, lock *lockfile.File, tree bool) (written bool, r *TreeReport, err error) {
	if tree {
		if r, err = p.PrepareLock(ctx, lock); err != nil {
			return false, nil, err
		}
	}
	if written, err = p.WriteFile(LockFile, lockfile.Format(lock)); err != nil {
		return false, nil, err
	}
	p.logMigration()
	if tree {
		err = p.WritePrepared(r, false)
	}
	return written, r, err
}

// logMigration logs that the lock was migrated, if the lock of p has an older schema.
func (p *Project) logMigration() {
	if before, err := p.LockIfAny(); err == nil && before.IsOlder() {
		p.Log.Note("migrated %s from schema %d to %d", LockFile, before.ReadSchema, lockfile.Schema)
	}
}

// WriteTree writes the rendered tree, and migrates a lock of an older schema. It returns an
// [*EditedError] if files were edited, unless force is set: then it overwrites them.
func (p *Project) WriteTree(ctx context.Context, force bool) (*TreeReport, error) {
	r, err := p.PrepareTree(ctx, force)
	if err != nil {
		return nil, err
	}
	if err := p.WritePrepared(r, force); err != nil {
		return nil, err
	}
	if lock, err := p.NeedLock(); err == nil && lock.IsOlder() {
		if _, _, err := p.WriteLock(ctx, lock, false); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// PrepareTree renders the lock and returns every error of WriteTree, without writing.
func (p *Project) PrepareTree(ctx context.Context, force bool) (*TreeReport, error) {
	r, err := p.CheckTree(ctx, true)
	if err != nil {
		return nil, err
	}
	err = errors.Join(r.errApplied(), r.unmet.Err())
	if p.CheckObjects != nil {
		err = errors.Join(err, p.CheckObjects(p, r.Result))
	}
	if err != nil {
		return nil, err
	}
	if !force && r.refused != nil {
		return nil, p.TreeError(r.refused)
	}
	return r, nil
}

// PrepareLock is like PrepareTree for a lock that is not written yet. If the tree cannot be written, it
// notes that nothing was written.
func (p *Project) PrepareLock(ctx context.Context, lock *lockfile.File) (*TreeReport, error) {
	r, err := p.WithLock(lock).PrepareTree(ctx, false)
	if err != nil {
		p.Log.Note("nothing was written, because the tree cannot be rendered")
	}
	return r, err
}

// WritePrepared writes the tree of PrepareTree.
func (p *Project) WritePrepared(r *TreeReport, force bool) error {
	r.Changes = r.OwnChanges()
	if err := p.WriteDir(r.Output, r.Result.Tree, filetree.Force(force)); err != nil {
		return p.TreeError(err)
	}
	r.Written = len(r.Changes) > 0
	return nil
}

// CheckTree compares the tree with the rendered lock. With all it also lists files not
// written by quayside.
func (p *Project) CheckTree(ctx context.Context, all bool) (*TreeReport, error) {
	if err := p.CheckPatterns(); err != nil {
		return nil, err
	}
	res, err := p.RenderLock(ctx)
	if err != nil {
		return nil, err
	}
	have, err := p.Rendered(res.Tree)
	if err != nil {
		return nil, err
	}
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	r := &TreeReport{
		Output: p.Settings.Output, Operators: len(lock.Pins), Files: res.Tree.Len(), Result: res,
		Changes: append([]filetree.FileChange{}, filetree.Diff(have, res.Tree)...), Warnings: append([]diag.Warning{}, res.Warnings...),
	}
	_, r.refused = filetree.SimulateWrite(have, res.Tree)
	if all {
		links, err := p.listLinks()
		if err != nil {
			return nil, err
		}
		names := slices.Sorted(slices.Values(append(links, filetree.UserFiles(have, res.Tree)...)))
		for _, name := range names {
			r.Changes = append(r.Changes, filetree.FileChange{Path: name, Kind: Foreign})
		}
		if r.foreignFaults, err = p.checkForeign(names, res.Tree); err != nil {
			return nil, err
		}
		var notes []diag.Warning
		if r.applied, notes, err = p.findStillApplied(lock); err != nil {
			return nil, err
		}
		var expected []diag.Warning
		if r.unmet, expected, err = p.unmetNeeds(lock, res); err != nil {
			return nil, err
		}
		notes = append(notes, expected...)
		p.Log.Warn(notes)
		r.Warnings = append(r.Warnings, notes...)
	}
	return r, nil
}

// RenderLock renders the current lock, and logs the warnings.
func (p *Project) RenderLock(ctx context.Context) (*render.Result, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err == nil {
		p.Log.Warn(res.Warnings)
	}
	return res, err
}

// Err joins an error for each of these problems: the tree is out of date with the lock, foreign
// files affect the applied objects, OLM would also install an operator, or a cluster does not meet
// the needs of an operator.
func (r *TreeReport) Err() error {
	return errors.Join(r.errDiffers(), r.errForeign(), r.errApplied(), r.unmet.Err())
}

func (r *TreeReport) errDiffers() error {
	var edited *filetree.EditedError
	ours := len(r.OwnChanges())
	switch {
	case errors.As(r.refused, &edited):
		return &DiffersError{Msg: fmt.Sprintf("%s is out of date with %s (%s, %d edited by hand)\n  hint: %s", r.Output, LockFile, diag.Count(ours, "file"), len(edited.Paths), editedHint)}
	case ours > 0:
		return &DiffersError{Msg: fmt.Sprintf("%s is out of date with %s (%s): run 'quayside render'", r.Output, LockFile, diag.Count(ours, "file"))}
	}
	return nil
}

// IsUpToDate reports whether the tree has no difference, and no foreign file affects it.
func (r *TreeReport) IsUpToDate() bool { return len(r.OwnChanges()) == 0 && len(r.foreignFaults) == 0 }

// errForeign returns a *DiffersError that lists the faults of foreign files.
func (r *TreeReport) errForeign() error {
	if len(r.foreignFaults) == 0 {
		return nil
	}
	return &DiffersError{Msg: strings.Join(r.foreignFaults, "\n") + "\n  hint: " + foreignHint}
}

// errApplied returns an error for each object that makes OLM install rendered operators as well.
func (r *TreeReport) errApplied() error {
	var faults diag.List
	for _, w := range r.applied {
		if !w.Waived {
			faults.Add(w.Pos, diag.Hintf(w.Pos, appliedHint, "%s [%s]", w.Msg, w.Code))
		}
	}
	return faults.Err()
}

const appliedHint = "remove these declarations from its path; if OLM runs the operators, see docs/adopt.md; or add a waiver for still-applied"
