package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// acceptFlag is --accept and --accept=namespace/package.
type acceptFlag struct {
	all   bool
	named []string
}

// acceptAll is what --accept means without a value.
const acceptAll = "all"

// String returns nothing: there is no default to show.
func (f *acceptFlag) String() string { return "" }

// Type names the value in usage lines.
func (f *acceptFlag) Type() string { return "operator" }

// Set adds one operator, or all.
func (f *acceptFlag) Set(s string) error {
	if s == acceptAll {
		f.all = true
		return nil
	}
	if namespace, pkg, ok := strings.Cut(s, "/"); !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") {
		return errors.New("want namespace/package")
	}
	f.named = append(f.named, s)
	return nil
}

func (f *acceptFlag) any() bool { return f.all || len(f.named) > 0 }

// accept writes into lock what its operators have, of those that f names.
func (s *space) accept(ctx context.Context, lock *lockfile.File, f acceptFlag, offline bool) error {
	for _, name := range f.named {
		namespace, pkg, _ := strings.Cut(name, "/")
		if _, ok := lock.Pin(namespace, pkg); !ok {
			return fmt.Errorf("--accept=%s: no such operator in %s", name, lockFile)
		}
	}
	res, err := s.renderQuietly(ctx, lock, offline)
	if err != nil {
		return err
	}
	state, err := renderedState(lock, res)
	if err != nil {
		return err
	}
	budget, err := diff.Budget(state)
	if err != nil {
		return err
	}
	taken := func(operator string) bool { return f.all || slices.Contains(f.named, operator) }
	lock.Accepted = slices.DeleteFunc(lock.Accepted, func(a lockfile.Accepted) bool { return taken(a.Operator) })
	for _, b := range budget {
		if taken(b.Operator) && b.Operator != "" {
			lock.Accepted = append(lock.Accepted, lockfile.Accepted{Operator: b.Operator, Permissions: b.Permissions, APIs: b.APIs})
		}
	}
	return nil
}

// renderedState returns what a lock renders to, as diff sees it.
func renderedState(lock *lockfile.File, res *render.Result) (diff.State, error) {
	var files []diff.File
	for name, data := range res.Tree.All() {
		files = append(files, diff.File{Path: name, Data: data})
	}
	objects, err := diff.Objects(diff.Base(".", files), lock.Pins, nil)
	return diff.State{Name: lockFile, Pins: lock.Pins, Objects: objects}, err
}
