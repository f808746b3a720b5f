package edit

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// neighbor is another workspace that reads the edited declarations.
type neighbor struct {
	*workspace.Project
	dir        string   // in the repository
	isUpstream bool     // whether the edited workspace follows it
	removed    []string // operators that the edit removes, when the workspace is resolved
}

// has reports whether the lock of the workspace has the operator of a declaration.
func (n neighbor) has(s declare.Subscription) bool {
	lock, err := n.LockIfAny()
	_, has := lock.Operator(s.Namespace + "/" + s.Package)
	return err == nil && has
}

// resolveShared resolves the other workspaces that read the edited declarations, and adds notes with the
// changes of each workspace. It returns an error for each workspace that can be resolved only without the edit.
func (e *Edit) resolveShared(ctx context.Context, after *declare.Set) error {
	if len(e.SharedWith) == 0 {
		return nil
	}
	before, err := e.project.DeclarationsIfAny()
	if err != nil {
		return err
	}
	var faults diag.List
	for _, dir := range e.SharedWith {
		other, err := e.project.Neighbor(dir)
		if err != nil {
			continue // its own commands report the error
		}
		n := neighbor{Project: other, dir: dir, isUpstream: e.project.Follows(&other.Opened)}
		e.shared = append(e.shared, n)
		here := &e.shared[len(e.shared)-1]
		was, err := n.DeclarationsIfAny()
		lock, lockErr := n.LockIfAny()
		if err != nil || lockErr != nil || lock == nil {
			continue // not resolved yet, or its own commands report the error
		}
		set, err := e.applyTo(n, was, before, after)
		if err != nil {
			return err
		}
		changes, unread, broken := n.resolve(ctx, set)
		if broken != nil {
			if _, _, already := n.resolve(ctx, was); already != nil {
				e.Notes = append(e.Notes, fmt.Sprintf("%s cannot be resolved, with or without this change", dir))
				continue
			}
			hint := "to change only one environment, add a new operator with --only ENVIRONMENT, or put a declaration with the version into a separate path with 'overrides: true'"
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{}, hint, "%s reads the same declarations, and the change breaks it: %s", dir, firstLine(broken)))
		}
		for _, w := range unread {
			e.Notes = append(e.Notes, fmt.Sprintf("whether the change breaks %s is not known: %s", dir, w.Msg))
		}
		for _, change := range changes {
			e.Notes = append(e.Notes, fmt.Sprintf("%s changes, too, when it is resolved: %s %s", dir, change.Sign(), change))
			if change.Change == lockfile.Removed {
				here.removed = append(here.removed, change.Operator)
			}
		}
	}
	return faults.Err()
}

// firstLine returns the first line of an error, without the chain of a conflict.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// resolve resolves declarations in the workspace. It returns the changes to the workspace's lock, and warnings
// about unreadable catalogs. Operators of these catalogs do not change.
func (n neighbor) resolve(ctx context.Context, set *declare.Set) ([]workspace.Change, []diag.Warning, error) {
	lock, err := n.LockIfAny()
	if err != nil {
		return nil, nil, err
	}
	edited := n.With(n.Settings, set, lock)
	pr, err := workspace.ReadProblem(ctx, edited, workspace.Request{Options: edited.ResolveOptions()})
	if err != nil {
		return nil, nil, err
	}
	res, err := workspace.Resolve(ctx, pr)
	if res == nil || err != nil || res.Failed != nil {
		if res != nil {
			err = errors.Join(err, res.Failed)
		}
		return nil, nil, err
	}
	unread := slices.DeleteFunc(slices.Clone(res.Warnings), func(w diag.Warning) bool { return w.Code != "broken-catalog" })
	return res.Changes, unread, nil
}

// applyTo returns set, the declarations of another workspace, with the changes of the edit. before and after
// are the declarations of the edited workspace before and after the edit.
func (e *Edit) applyTo(n neighbor, set, before, after *declare.Set) (*declare.Set, error) {
	_, own := e.project.Repository()
	id := func(dir string, s declare.Subscription) string {
		return strings.Join([]string{path.Join(dir, s.Pos.File), string(s.Dialect), s.Namespace, s.Name}, " ")
	}
	was, is := map[string]declare.Subscription{}, map[string]declare.Subscription{}
	all := func(set *declare.Set) []declare.Subscription { return slices.Concat(set.Subscriptions, set.Elsewhere) }
	for _, s := range all(before) {
		was[id(own, s)] = s
	}
	for _, s := range all(after) {
		is[id(own, s)] = s
	}
	out := *set
	out.Subscriptions, out.Elsewhere = nil, nil
	for _, s := range all(set) {
		old, edited := was[id(n.dir, s)]
		now, stays := is[id(n.dir, s)]
		switch {
		case edited && !stays:
			continue
		case edited && old.Digest != now.Digest:
			now.Pos, now.Fields = s.Pos, s.Fields
			s = now
		}
		out.Subscriptions = append(out.Subscriptions, s)
	}
	for _, s := range all(after) {
		if _, known := was[id(own, s)]; known {
			continue
		}
		readers, err := e.project.SharedWith([]string{s.Pos.File})
		if err != nil {
			return nil, err
		}
		if slices.Contains(readers, n.dir) {
			out.Subscriptions = append(out.Subscriptions, s)
		}
	}
	inGroups := func(dir string, list []declare.OperatorGroup, g declare.OperatorGroup, in string) bool {
		return slices.ContainsFunc(list, func(o declare.OperatorGroup) bool {
			return o.Namespace == g.Namespace && o.Name == g.Name && path.Join(dir, o.Pos.File) == path.Join(in, g.Pos.File)
		})
	}
	out.OperatorGroups = slices.DeleteFunc(slices.Clone(set.OperatorGroups), func(g declare.OperatorGroup) bool {
		return inGroups(own, before.OperatorGroups, g, n.dir) && !inGroups(own, after.OperatorGroups, g, n.dir)
	})
	for _, g := range after.OperatorGroups {
		if inGroups(own, before.OperatorGroups, g, own) {
			continue
		}
		readers, err := e.project.SharedWith([]string{g.Pos.File})
		if err != nil {
			return nil, err
		}
		if slices.Contains(readers, n.dir) {
			out.OperatorGroups = append(out.OperatorGroups, g)
		}
	}
	slices.SortStableFunc(out.Subscriptions, func(a, b declare.Subscription) int { return strings.Compare(a.Key(), b.Key()) })
	return out.In(n.Environment()), nil
}
