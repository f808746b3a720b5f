// Package edit changes what a workspace declares: an operator more, or one less.
// What it writes is what a person would have written, in the dialect that the
// workspace is in, and everything else in its files stays as it is, comments and
// order included.
//
// Nothing is written that does not resolve: an [Edit] is the declarations together
// with the lock that answers them.
//
// Start from [Add], [Remove] and [Edit.Write].
package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Edit is a change to the declarations and the lock that comes of it.
type Edit struct {
	Files      []File // by path
	Inputs     *project.Inputs
	Resolution *project.Resolution // without a lock where there is no solution
	Notes      []string            // what a person may want to know
	SharedWith []string            // directories of other workspaces that read one of Files

	project *project.Project
}

// File is a file of declarations that changes.
type File struct {
	Path   string `json:"path"`
	Change Change `json:"change"`

	text []byte // nil: the file goes
}

// Change is what becomes of a file.
type Change string

// The changes.
const (
	Created Change = "created"
	Changed Change = "changed"
	Removed Change = "removed"
)

// Sign returns how a change is marked in a list: "+", "~" or "-".
func (c Change) Sign() string {
	return map[Change]string{Created: "+", Changed: "~", Removed: "-"}[c]
}

// finish resolves what is then declared.
func finish(ctx context.Context, p *project.Project, set *subscription.Set, files []File, prune bool) (*Edit, error) {
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	there := p.With(p.Settings, set, lock)
	opt := there.ResolveOptions()
	opt.Prune = prune
	e := &Edit{Files: files, project: p}
	if e.Inputs, err = there.Inputs(ctx, opt, false); err != nil {
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
		e.Notes = append(e.Notes, fmt.Sprintf("shared with %s: run 'quayside resolve --all' to update their locks", strings.Join(e.SharedWith, ", ")))
	}
	e.Resolution, err = e.Inputs.Resolve(ctx)
	return e, err
}

// Write puts the declarations in place, and the lock last. Without a solution
// nothing is written, and the error is the resolution's.
func (e *Edit) Write() error {
	if e.Resolution.Lock == nil {
		return e.Resolution.Failed
	}
	for _, f := range e.Files {
		at := e.project.Path(f.Path)
		if f.text == nil {
			if err := os.Remove(at); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if _, err := filetree.WriteFile(at, f.text); err != nil {
			return err
		}
	}
	_, err := filetree.WriteFile(e.project.Path(project.LockFile), lockfile.Format(e.Resolution.Lock))
	return err
}

// dialect returns that in which most of set is written; quayside's own where
// nothing is.
func dialect(set *subscription.Set) subscription.Dialect {
	best, most := subscription.Quayside, 0
	for _, d := range []subscription.Dialect{subscription.Quayside, subscription.V0, subscription.V1} {
		n := 0
		for _, s := range set.Subscriptions {
			if s.Dialect == d {
				n++
			}
		}
		if n > most {
			best, most = d, n
		}
	}
	return best
}

// declaredAs returns the subscriptions that want so names: "namespace/package", or
// the package alone.
func declaredAs(set *subscription.Set, want string) []subscription.Subscription {
	var out []subscription.Subscription
	for _, s := range set.Subscriptions {
		if slices.Contains([]string{s.Package, s.Namespace + "/" + s.Package, s.Name, s.Key()}, want) {
			out = append(out, s)
		}
	}
	return out
}

// readIfAny reads a file of the workspace; nil where there is none.
func readIfAny(p *project.Project, name string) ([]byte, error) {
	data, err := p.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// byHand returns the error for a declaration that is not edited here.
func byHand(s subscription.Subscription, why string) error {
	return fmt.Errorf("%s is declared at %s, %s: edit that by hand", s.Key(), s.Pos, why)
}
