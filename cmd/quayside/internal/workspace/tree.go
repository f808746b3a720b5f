package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TreeReport contains the differences between the tree on disk and the rendered lock.
type TreeReport struct {
	Output    string                `json:"output"`
	Written   bool                  `json:"written"`
	Operators int                   `json:"operators"`
	Files     int                   `json:"files"`
	Changes   []filetree.FileChange `json:"changes" doc:"states of the files before the command: missing, differs, extra; foreign: not written by quayside"`
	Warnings  []diag.Warning        `json:"warnings"`

	Elsewhere bool `json:"-"` // whether the tree is in another repository, so that it is neither written nor compared

	Notes  []string       `json:"-"` // messages for the user, to be printed after the warnings
	Result *render.Result `json:"-"`

	state         *rules.State
	refused       error    // reason why the tree cannot be written, for example edited files
	foreignFaults []string // faults of files that quayside did not write; see checkForeign
	broken        error    // errors of the rules about the repository, and about the needs of operators
}

// Foreign is the kind of change for files in the tree that quayside did not write.
const Foreign = "foreign"

// OwnChanges returns the changes except changes of kind Foreign.
func (r *TreeReport) OwnChanges() []filetree.FileChange {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c filetree.FileChange) bool { return c.Kind == Foreign })
}

// Written is the result of writing a lock.
type Written struct {
	Changed bool        // whether the lock changed
	Tree    *TreeReport // nil if no tree was written
}

// WriteLock writes a lock and, if tree is true, the rendered tree. If the tree cannot be written, it does not
// write the lock either. The result is valid together with an error.
func (p *Project) WriteLock(ctx context.Context, lock *lockfile.File, tree bool) (w Written, err error) {
	if tree {
		if w.Tree, err = p.PrepareLock(ctx, lock); err != nil {
			return w, err
		}
	}
	if w.Changed, err = p.WriteFile(LockFile, lockfile.Format(lock)); err != nil {
		return w, err
	}
	if tree {
		err = p.WritePrepared(w.Tree, false)
	}
	return w, err
}

// WriteTree renders the lock and writes the tree. If files of the tree were edited, the error is an
// [*EditedError]; with force, it overwrites them. Together with an error, it may return a report that
// has warnings.
//
//house:path render
func (p *Project) WriteTree(ctx context.Context, force bool) (*TreeReport, error) {
	r, err := p.PrepareTree(ctx, force)
	if err == nil {
		err = r.evaluateKnown(lockRules()...)
	}
	if err == nil {
		err = p.WritePrepared(r, force)
	}
	return r, err
}

// lockToRender returns the lock. It is an error if there is no lock, or if a name or pattern in the
// settings matches nothing.
func (p *Project) lockToRender() (*lockfile.File, error) {
	if err := p.CheckPatterns(); err != nil {
		return nil, err
	}
	return p.NeedLock()
}

// PrepareTree renders the lock without writing, and returns the errors that WriteTree would return.
// Together with an error, it may return a report that has warnings.
//
//house:path render
func (p *Project) PrepareTree(ctx context.Context, force bool) (*TreeReport, error) {
	lock, err := p.lockToRender()
	if err != nil {
		return nil, err
	}
	return p.prepareTree(ctx, lock, force)
}

// prepareTree renders a lock for 'quayside render', and checks that the tree can be written.
//
//house:path render
func (p *Project) prepareTree(ctx context.Context, lock *lockfile.File, force bool) (*TreeReport, error) {
	r, err := p.render(ctx, lock)
	if err != nil {
		return nil, err
	}
	have, err := p.Rendered(r.Result.Tree)
	if err != nil {
		return r, err
	}
	r.compare(have)
	if err := r.addForeign(&p.Opened, have); err != nil {
		return r, err
	}
	if err := errors.Join(r.evaluateKnown(rules.Fresh, rules.Addresses, rules.Git), r.evaluate(rules.Findings.WhileWriting, rules.Repo, rules.Outputs, rules.Needs, rules.Patched)); err != nil {
		return r, err
	}
	if err := errors.Join(r.broken, rules.Check(r.state, rules.Selectors)); err != nil {
		return r, err
	}
	if err := r.evaluateKnown(rules.Policy); err != nil || force {
		return r, err
	}
	return r, TreeError(p.Settings.OutputDir(), r.refused)
}

// PrepareLock is like PrepareTree, for a lock that is not written yet. If the tree cannot be rendered, the report
// has a note that neither the lock nor the tree was written.
func (p *Project) PrepareLock(ctx context.Context, lock *lockfile.File) (*TreeReport, error) {
	s := p.state(lock)
	err := errors.Join(rules.Check(s, rules.Settings), rules.Check(s, rules.Operators))
	var r *TreeReport
	if err == nil {
		r, err = p.prepareTree(ctx, lock, false)
	}
	if r == nil {
		r = &TreeReport{}
	}
	if err != nil {
		r.Notes = append(r.Notes, "nothing was written, because the tree cannot be rendered")
	}
	return r, err
}

// WritePrepared writes the tree that PrepareTree rendered. It writes nothing if the tree belongs in another repository.
func (p *Project) WritePrepared(r *TreeReport, force bool) error {
	if p.Settings.Output.Repository != "" {
		return nil
	}
	dir, err := p.disk.Sub(r.Output)
	if err != nil {
		return err
	}
	return r.WriteTo(dir, force)
}

// CheckTree compares the tree on disk with the rendered lock. If all is true, it also lists files
// that quayside did not write, and evaluates the rules about the repository and the needs of
// operators. Together with an error, it may return a report that has warnings.
func (p *Project) CheckTree(ctx context.Context, all bool) (*TreeReport, error) {
	lock, err := p.lockToRender()
	if err != nil {
		return nil, err
	}
	r, err := p.render(ctx, lock)
	if err != nil {
		return nil, err
	}
	have, err := p.Rendered(r.Result.Tree)
	if err != nil {
		return r, err
	}
	if r.compare(have); !all {
		return r, r.evaluateKnown(append(lockRules(), rules.Fresh)...)
	}
	if err := r.addForeign(&p.Opened, have); err != nil {
		return r, err
	}
	return r, r.evaluate(func(found rules.Findings) rules.Findings { return found }, rules.Addresses, rules.Git, rules.Repo, rules.Outputs, rules.Needs, rules.Patched)
}

// CheckUnrendered evaluates the rules about the repository with the tree on disk, for a lock that is not
// rendered. Together with an error, it may return a report that has warnings.
func CheckUnrendered(ctx context.Context, p *Project) (*TreeReport, error) {
	lock, err := p.lockToRender()
	if err != nil {
		return nil, err
	}
	have, err := p.Tree(p.Settings.OutputDir())
	if err != nil {
		return nil, err
	}
	r, err := newTreeReport(ctx, p, lock, &render.Result{Tree: have})
	if err != nil {
		return nil, err
	}
	return r, r.evaluate(slices.Clone[rules.Findings], rules.Addresses, rules.Git, rules.Repo, rules.Outputs)
}

// evaluate evaluates rules about parts of the state. To r, it adds the warnings and errors that the
// function adjust returns for the findings. An error about the part Outputs ends the evaluation at
// once, because the GitOps tool would apply a different tree.
func (r *TreeReport) evaluate(adjust func(rules.Findings) rules.Findings, about ...rules.Part) error {
	for _, part := range about {
		found, err := rules.Evaluate(r.state, part)
		found = adjust(found)
		if err == nil && part == rules.Outputs {
			err = found.Err()
		}
		if err != nil {
			return err
		}
		r.Warnings = append(r.Warnings, found.Warnings()...)
		r.broken = errors.Join(r.broken, found.Err())
	}
	return nil
}

// lockRules returns the parts of a state that rendering does not change. Commands that write a lock evaluate
// their rules before they render.
func lockRules() []rules.Part {
	return []rules.Part{rules.Waivers, rules.Requests, rules.Declarations, rules.Locks}
}

// evaluateKnown evaluates the rules about parts that rendering does not change. It adds all findings, including
// errors, to the warnings of r.
func (r *TreeReport) evaluateKnown(about ...rules.Part) error {
	for _, part := range about {
		found, err := rules.Evaluate(r.state, part)
		if err != nil {
			return err
		}
		r.Warnings = append(r.Warnings, found.Introduced(found).Warnings()...)
	}
	return nil
}

// RenderChecked renders the lock and evaluates the rules about rendered objects. Together with an
// error, it may return a report that has warnings.
func (p *Project) RenderChecked(ctx context.Context) (*TreeReport, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	r, err := p.render(ctx, lock)
	if err != nil {
		return nil, err
	}
	if err := r.evaluateKnown(append(lockRules(), rules.Fresh)...); err != nil {
		return r, err
	}
	needs, err1 := rules.Evaluate(r.state, rules.Needs)
	patched, err2 := rules.Evaluate(r.state, rules.Patched)
	found := append(needs, patched...)
	r.Warnings = append(r.Warnings, found.Warnings()...)
	return r, errors.Join(err1, err2, found.Err(), rules.Check(r.state, rules.Selectors))
}

// CompareWith replaces the tree of the report by tree, and adds the differences between tree and
// the directory dir, which may be in another repository. name is the path of dir for messages.
func (r *TreeReport) CompareWith(dir filetree.Dir, name string, tree *filetree.Tree) error {
	have, err := filetree.ReadLike(dir.FS(), tree)
	if errors.Is(err, fs.ErrNotExist) {
		have, err = filetree.New(), nil
	}
	if err != nil {
		return err
	}
	foreign := filetree.UserFiles(have, tree)
	if _, written := have.Get(filetree.Index); !written { // all files are the user's
		known := filetree.New()
		for name, data := range have.All() {
			if _, wanted := tree.Get(name); !wanted {
				foreign = append(foreign, name)
			} else if err := known.Add(name, data); err != nil {
				return err
			}
		}
		have = known
	}
	r.Output, r.Elsewhere, r.Files, r.Result.Tree = name, false, tree.Len(), tree
	r.compare(have)
	for _, name := range foreign {
		r.Changes = append(r.Changes, filetree.FileChange{Path: name, Kind: Foreign})
	}
	return nil
}

// WriteTo writes the tree to dir. It removes files that an earlier run wrote and that the tree no longer has.
// It leaves other files unchanged. With force, it overwrites edited files.
func (r *TreeReport) WriteTo(dir filetree.Dir, force bool) error {
	if r.refused != nil && !force {
		return TreeError(r.Output, r.refused)
	}
	r.Changes = r.OwnChanges()
	if err := dir.Write(r.Result.Tree, filetree.Force(force)); err != nil {
		return TreeError(r.Output, err)
	}
	r.Written = len(r.Changes) > 0
	return nil
}

// CheckClusters evaluates the rules about the objects of each cluster. It adds warnings about
// waivers.
func (r *TreeReport) CheckClusters() error {
	if err := rules.Check(r.state, rules.Clusters); err != nil {
		return AsDiffersErrors(err)
	}
	found, err := rules.Evaluate(r.state, rules.Policy)
	r.Warnings = append(r.Warnings, found.Warnings()...)
	return errors.Join(err, found.Err())
}

// Stream returns the objects of a cluster, or of one operator (namespace/package) in it, in the order of
// application.
func (r *TreeReport) Stream(cluster, operator string) (render.Stream, error) {
	f, err := r.state.Fleet()
	if err != nil {
		return nil, err
	}
	all, err := render.StreamOverlay(r.Result, f.BuildDir, cluster)
	namespace, pkg, one := strings.Cut(operator, "/")
	if err != nil || !one {
		return all, err
	}
	return all.Of(namespace, pkg), nil
}

// render renders a lock. It does not compare the result with the tree on disk.
func (p *Project) render(ctx context.Context, lock *lockfile.File) (*TreeReport, error) {
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	return newTreeReport(ctx, p, lock, res)
}

// newTreeReport returns the report of a rendered lock, in which the list of changes is empty.
func newTreeReport(ctx context.Context, p *Project, lock *lockfile.File, res *render.Result) (*TreeReport, error) {
	r := &TreeReport{
		Output: p.Settings.OutputName(), Operators: len(lock.Pins), Files: res.Tree.Len(), Result: res,
		Changes: []filetree.FileChange{}, Warnings: append([]diag.Warning{}, res.Warnings...), Elsewhere: p.Settings.Output.Repository != "",
	}
	var err error
	if r.state, err = p.renderedState(ctx, lock, res); err != nil {
		return nil, err
	}
	r.state.Attributes = p.changedInCheckout
	r.state.Ignored = func(names []string) []string { return p.ignored(ctx, names) }
	return r, nil
}

// compare adds the differences between the rendered tree and have, the tree on disk.
func (r *TreeReport) compare(have *filetree.Tree) {
	r.Changes = append(r.Changes, filetree.Diff(have, r.Result.Tree)...)
	_, r.refused = filetree.SimulateWrite(have, r.Result.Tree)
}

// addForeign adds the files on disk that quayside did not write, and their faults.
func (r *TreeReport) addForeign(p *Opened, have *filetree.Tree) error {
	links, err := p.listLinks(p.Settings.OutputDir())
	if err != nil {
		return err
	}
	names := slices.Sorted(slices.Values(append(links, filetree.UserFiles(have, r.Result.Tree)...)))
	for _, name := range names {
		r.Changes = append(r.Changes, filetree.FileChange{Path: name, Kind: Foreign})
	}
	r.foreignFaults, err = p.checkForeign(names, r.Result.Tree)
	return err
}

// Err returns an error that joins these problems: the tree is out of date with the lock, a file
// that quayside did not write affects the applied objects, OLM would install an operator of the tree again, or a
// cluster does not meet a need of an operator.
func (r *TreeReport) Err() error {
	return errors.Join(r.errDiffers(), r.errForeign(), AsDiffersErrors(r.broken))
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

// IsUpToDate reports whether the tree has no differences, and no foreign file that affects the applied objects.
func (r *TreeReport) IsUpToDate() bool { return len(r.OwnChanges()) == 0 && len(r.foreignFaults) == 0 }

// errForeign returns a *DiffersError with the faults of files that quayside did not write.
func (r *TreeReport) errForeign() error {
	if len(r.foreignFaults) == 0 {
		return nil
	}
	return &DiffersError{Msg: strings.Join(r.foreignFaults, "\n") + "\n  hint: " + foreignHint}
}
