package project

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TreeReport lists the differences between the tree and the rendered lock.
type TreeReport struct {
	Output    string            `json:"output"`
	Written   bool              `json:"written"`
	Operators int               `json:"operators"`
	Files     int               `json:"files"`
	Changes   []filetree.Change `json:"changes" doc:"of the files: missing, differs, extra (as they were before); foreign: not quayside's"`
	Warnings  []diag.Warning    `json:"warnings"`

	Result  *render.Result `json:"-"`
	fold    bool           // many changes are told by directory
	earlier []string       // overlays of an earlier layout
}

// foreign is what a file is called that quayside did not write. Most of these
// are the user's patches.
const foreign = "foreign"

// WriteLock writes a lock and reports whether that changed anything; with tree also the
// tree that it renders to. That a lock of an older schema is migrated is noted.
func (p *Project) WriteLock(ctx context.Context, lock *lockfile.File, tree bool) (written bool, r *TreeReport, err error) {
	if written, err = filetree.WriteFile(p.Path(LockFile), lockfile.Format(lock)); err == nil {
		p.noteMigration()
	}
	if err == nil && tree {
		r, err = p.RenderAnew(ctx)
	}
	return written, r, err
}

// noteMigration notes that the lock which was read had an older schema than the one that
// was written.
func (p *Project) noteMigration() {
	if before, err := p.LockIfAny(); err == nil && before.IsOlder() {
		p.Talk.Note("migrated %s from schema %d to %d", LockFile, before.ReadSchema, lockfile.Schema)
	}
}

// RenderAnew writes what the lock renders to that is there now.
func (p *Project) RenderAnew(ctx context.Context) (*TreeReport, error) {
	again, err := Open(p.Root, p.Env)
	if err != nil {
		return nil, err
	}
	return again.WriteTree(ctx)
}

// WriteTree writes the tree that the lock renders to. A lock of an older schema is written
// in the new one. Edited files are an [*EditedError], unless they are overwritten by force.
func (p *Project) WriteTree(ctx context.Context, opts ...filetree.Option) (*TreeReport, error) {
	r, err := p.CheckTree(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := r.checkLayout(); err != nil {
		return nil, err
	}
	r.Changes = slices.DeleteFunc(r.Changes, func(c filetree.Change) bool { return c.Kind == foreign })
	if err := filetree.Write(p.Path(r.Output), r.Result.Tree, opts...); err != nil {
		return nil, p.TreeError(err)
	}
	if lock, err := p.NeedLock(); err == nil && lock.IsOlder() {
		if _, _, err := p.WriteLock(ctx, lock, false); err != nil {
			return nil, err
		}
	}
	r.fold, r.Written = true, len(r.Changes) > 0
	return r, nil
}

// CheckTree compares the tree with what the lock renders to; with all also what
// there is that is not quayside's.
func (p *Project) CheckTree(ctx context.Context, all bool) (*TreeReport, error) {
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
		earlier: earlierOverlays(have),
		Changes: append([]filetree.Change{}, filetree.Diff(have, res.Tree)...), Warnings: append([]diag.Warning{}, res.Warnings...),
	}
	if all {
		for _, name := range filetree.Foreign(have, res.Tree) {
			r.Changes = append(r.Changes, filetree.Change{Path: name, Kind: foreign})
		}
	}
	return r, nil
}

// RenderLock renders the lock that there is, and tells the warnings.
func (p *Project) RenderLock(ctx context.Context) (*render.Result, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err == nil {
		p.Talk.Warn(res.Warnings)
	}
	return res, err
}

// checkLayout refuses a tree with the team's own overlays where an earlier version expected
// them: nothing reads them any more.
func (r *TreeReport) checkLayout() error {
	var faults diag.List
	for _, name := range r.earlier {
		hint := "run 'quayside migrate' to move it to " + path.Join(r.Output, "..", layout.Overlays)
		faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{File: path.Join(r.Output, name)}, hint, "overlay of an earlier layout: this version does not read it"))
	}
	return faults.Err()
}

// Err returns a *DiffersError where the tree is not what the lock says.
func (r *TreeReport) Err() error {
	ours, applied, in := 0, 0, ""
	for _, c := range r.Changes {
		switch {
		case c.Kind != foreign:
			ours++
		case layout.AppliedAsIs(c.Path):
			applied++
			in = path.Join(r.Output, path.Dir(c.Path))
		}
	}
	switch {
	case ours > 0:
		return &DiffersError{Msg: fmt.Sprintf("%s is not what %s says (%s): run 'quayside render'", r.Output, LockFile, diag.Count(ours+applied, "file"))}
	case applied > 0:
		return &DiffersError{Msg: fmt.Sprintf("%s is applied as it is and holds what is not quayside's (%s): move it away", in, diag.Count(applied, "file"))}
	}
	return nil
}

// manyFiles is how many written files are listed one by one.
const manyFiles = 40

// Print lists what differs, and notes what became of it.
func (r *TreeReport) Print(out *terminal.Terminal, talk Talk) {
	changes := r.Changes
	if r.fold && len(changes) > manyFiles {
		changes = folded(changes)
	}
	theirs := 0
	for _, c := range changes {
		if c.Kind == foreign {
			fmt.Fprintf(out, "? %s (not quayside's)\n", inert.Line(c.Path))
			theirs++
			continue
		}
		fmt.Fprintf(out, "%s %s\n", out.Sign(c.Kind.Sign()), inert.Line(c.Path))
	}
	has := diag.Count(r.Operators, "operator") + ", " + diag.Count(r.Files, "file")
	switch {
	case r.Written:
		talk.Note("wrote %s (%s)", r.Output, has)
	case len(changes) == theirs:
		talk.Note("%s is up to date (%s)", r.Output, has)
	}
}

// folded returns a change for every operator, package of CRDs or other
// directory in place of those of its files.
func folded(changes []filetree.Change) []filetree.Change {
	var dirs []string
	files := map[string][]filetree.Change{}
	for _, c := range changes {
		parts := strings.Split(c.Path, "/")
		depth := 1 // pieces/, argocd/
		switch parts[0] {
		case "operators", "crds", "clusters":
			depth = 2
		}
		dir := strings.Join(parts[:min(depth, len(parts)-1)], "/")
		if files[dir] == nil {
			dirs = append(dirs, dir)
		}
		files[dir] = append(files[dir], c)
	}
	var out []filetree.Change
	for _, dir := range dirs {
		all := files[dir]
		if dir == "" || len(all) == 1 {
			out = append(out, all...)
			continue
		}
		kind := all[0].Kind
		if slices.ContainsFunc(all, func(c filetree.Change) bool { return c.Kind != kind }) {
			kind = filetree.Differs
		}
		out = append(out, filetree.Change{Path: fmt.Sprintf("%s/ (%s)", dir, diag.Count(len(all), "file")), Kind: kind})
	}
	return out
}
