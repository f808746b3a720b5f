// Package edit adds and removes operators in the declarations of a workspace. New declarations look
// handwritten. All other text in the files stays unchanged, including comments and order.
//
// An [Edit] contains the declarations and the resulting lock. It can be written only if the declarations can be
// resolved.
//
// Start from [Add], [Remove], [Draft] and [Edit.Write].
package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Edit is a change to the declarations, with the resulting lock.
type Edit struct {
	Files      []File // quayside.yaml first, then by path
	Problem    *workspace.Problem
	Resolution *workspace.Resolution // its Lock is nil if the declarations cannot be resolved
	Notes      []string              // notes for the user
	SharedWith []string              // directories of other workspaces that share some of Files

	project *workspace.Project
	edited  *workspace.Project // project with the changed declarations
	shared  []neighbor         // workspaces in SharedWith
}

// File is a changed file of declarations.
type File struct {
	Path    string     `json:"path"`
	Change  ChangeKind `json:"change"`
	Objects []string   `json:"objects,omitempty" doc:"added objects, such as Subscription my-etcd/etcd"`

	text []byte // new content; ignored for a removed file
}

// ChangeKind is the kind of change to a file.
type ChangeKind string

// The kinds of changes.
const (
	Created ChangeKind = "created"
	Changed ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

// Symbol returns "+", "~" or "-".
func (c ChangeKind) Symbol() string {
	return map[ChangeKind]string{Created: "+", Changed: "~", Removed: "-"}[c]
}

// editOptions are options for resolving the changed declarations.
type editOptions struct {
	prune   bool
	targets []resolve.Target // versions to upgrade to, over any number of steps
	fresh   bool             // whether to resolve the tags of catalog images again
}

// resolveEdit resolves the changed declarations in set, and returns the Edit.
func resolveEdit(ctx context.Context, p *workspace.Project, set *declare.Set, files []File, o editOptions) (*Edit, error) {
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	edited := p.With(p.Settings, set, lock)
	opt := edited.ResolveOptions()
	opt.Prune, opt.Named = o.prune, o.targets
	if len(o.targets) > 0 {
		opt.Hops = -1
	}
	e := &Edit{Files: files, project: p, edited: edited}
	if e.Problem, err = workspace.ReadProblem(ctx, edited, workspace.Request{Options: opt, Fresh: o.fresh}); err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if e.SharedWith, err = p.SharedWith(paths); err != nil {
		return nil, err
	}
	if len(e.SharedWith) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("the changed files are shared with %s: run 'quayside resolve --all' to update their locks", strings.Join(e.SharedWith, ", ")))
	}
	if e.Resolution, err = workspace.Resolve(ctx, e.Problem); err != nil || e.Resolution.Lock == nil {
		return e, err
	}
	return e, e.resolveShared(ctx, set)
}

// Write writes the declarations, then the lock and, if tree is true, the rendered tree. It writes nothing if the
// declarations cannot be resolved, or if the tree cannot be written. If tree is false, the report is nil; otherwise
// Write may return a report together with an error. After an interruption, the same edit can be repeated.
func (e *Edit) Write(ctx context.Context, tree bool) (r *workspace.TreeReport, err error) {
	if e.Resolution.Lock == nil {
		return nil, e.Resolution.Failed
	}
	if tree {
		if r, err = e.edited.PrepareLock(ctx, e.Resolution.Lock); err != nil {
			return r, err
		}
	}
	for _, step := range e.steps() {
		if err := step(); err != nil {
			return r, err
		}
	}
	if tree {
		err = e.project.WritePrepared(r, false)
	}
	return r, err
}

// Settings returns the content of a new quayside.yaml, or nil if the edit has none.
func (e *Edit) Settings() []byte {
	if len(e.Files) > 0 && e.Files[0].Path == settings.FileName {
		return e.Files[0].text
	}
	return nil
}

// steps returns the file changes in the order to make them. Each change is atomic.
func (e *Edit) steps() []func() error {
	var out []func() error
	write := func(name string, data []byte) {
		out = append(out, func() error {
			_, err := e.project.WriteFile(name, data)
			return err
		})
	}
	for _, f := range e.Files {
		if f.Change == Removed {
			out = append(out, func() error { return e.project.RemoveFile(f.Path) })
			continue
		}
		write(f.Path, f.text)
	}
	write(workspace.LockFile, lockfile.Format(e.Resolution.Lock))
	return out
}

// IsEmpty reports whether the edit changes neither declarations nor the lock.
func (e *Edit) IsEmpty() bool { return len(e.Files)+len(e.Resolution.Changes) == 0 }

// usualWriter returns the writer for the dialect that set uses most, or the default writer if set is empty.
func usualWriter(set *declare.Set) declare.Writer {
	best, most := declare.Writers()[0], 0
	for _, w := range declare.Writers() {
		n := 0
		for _, s := range set.Subscriptions {
			if s.Dialect == w.Dialect {
				n++
			}
		}
		if n > most {
			best, most = w, n
		}
	}
	return best
}

// matchSubscriptions returns the declared operators that match want: a package,
// "namespace/package", or the name of a Subscription with or without its namespace.
func matchSubscriptions(set *declare.Set, want string) []declare.Subscription {
	var out []declare.Subscription
	for _, s := range set.Subscriptions {
		if slices.Contains([]string{s.Package, s.Namespace + "/" + s.Package, s.Name, s.Key()}, want) {
			out = append(out, s)
		}
	}
	return out
}

// readIfAny reads a file of the workspace. It returns nil if the file does not exist.
func readIfAny(p *workspace.Project, name string) ([]byte, error) {
	data, err := p.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// newByHandError returns the error for a declaration that quayside cannot edit. why is the reason.
func newByHandError(s declare.Subscription, why string) error {
	return fmt.Errorf("%s is declared at %s, %s: edit the declaration by hand", s.Key(), s.Pos, why)
}
