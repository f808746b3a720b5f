package edit

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// Remove removes the declarations of operators. An operator is "namespace/package", or only the package if it
// is declared once. If a namespace has no other operators, Remove also removes its OperatorGroup, but not the
// Namespace. Dependencies that are no longer required stay in the lock, unless prune is true or operators
// contains the dependency. Remove returns an error if an overlay of a removed operator exists, or if another
// workspace must remove the operator first.
func Remove(ctx context.Context, p *workspace.Project, operators []string, prune bool) (*Edit, error) {
	set, err := p.Declarations()
	if err != nil {
		return nil, err
	}
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	if set, err = workspace.CompleteFromLock(set, lock); err != nil {
		return nil, err
	}
	r := remover{project: p, set: *set, cuts: map[string][]cut{}}
	var removed []declare.Subscription
	for _, want := range operators {
		s, err := findSubscription(set, want)
		if err != nil && isUndeclared(set, lock, want) {
			prune = prune || isOrphan(lock, want)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(removed, func(g declare.Subscription) bool { return g.Key() == s.Key() && g.Dialect == s.Dialect }) {
			removed = append(removed, s)
		}
	}
	for _, s := range removed {
		r.removeSubscription(s)
	}
	for _, s := range removed {
		r.removeGroups(s.Namespace)
	}
	if err := r.rewrite(); err != nil {
		return nil, err
	}
	e, err := resolveEdit(ctx, p, &r.set, r.files, editOptions{prune: prune})
	if err != nil {
		return nil, err
	}
	e.Notes = append(r.notes, e.Notes...)
	return e, e.checkRemoval(removed)
}

// checkRemoval returns an error for each obstacle to the removal of operators. An obstacle is an overlay that
// patches objects of the operator, a cluster with Helm values for the operator, or an upstream environment that
// reads the same declaration and whose lock still has the operator.
func (e *Edit) checkRemoval(removed []declare.Subscription) error {
	var faults diag.List
	for _, s := range removed {
		key := s.Namespace + "/" + s.Package
		for _, o := range e.shared {
			if slices.Contains(o.removed, key) {
				faults.Add(diag.Pos{}, checkClusters(o.Project, filetree.Relative(e.own(), o.dir), s))
			}
		}
		if _, stays := e.Resolution.Lock.Operator(key); stays {
			continue // another operator requires it
		}
		faults.Add(diag.Pos{}, checkClusters(e.project, ".", s))
		for _, o := range e.shared {
			if o.isUpstream && o.has(s) {
				faults.Add(s.Pos, diag.Hintf(s.Pos, fmt.Sprintf("run 'quayside remove -C' in %s first; to remove the operator only here, set spec.only of the declaration to the other environments", o.dir),
					"%s cannot be removed: the upstream environment %s reads the same declaration and still has the operator", key, o.dir))
			}
		}
	}
	return faults.Err()
}

// own returns the directory of the edited workspace in the repository.
func (e *Edit) own() string {
	_, dir := e.project.Repository()
	return dir
}

// checkClusters returns an error for each cluster of workspace p with an overlay or Helm values of an operator.
// dir is the directory of p, relative to the edited workspace.
func checkClusters(p *workspace.Project, dir string, s declare.Subscription) error {
	overlays, _, err := p.Overlays()
	if err != nil {
		return err
	}
	var faults diag.List
	for _, cluster := range slices.Sorted(maps.Keys(overlays)) {
		if slices.Contains(overlays[cluster], s.Namespace+"."+s.Package) {
			at := diag.Pos{File: path.Join(dir, p.Settings.OverlaysDir(), cluster, s.Namespace+"."+s.Package)}
			faults.Add(at, diag.Hintf(at, "delete the directory first, or move its content", "%s/%s cannot be removed: the overlay of cluster %s patches it", s.Namespace, s.Package, cluster))
		}
	}
	for i, c := range p.Settings.Clusters {
		if _, set := c.HelmValues[s.Namespace+"/"+s.Package]; set {
			at := p.Settings.At(diag.Member(diag.Item("spec.clusters", i)+".helmValues", s.Namespace+"/"+s.Package))
			at.File = path.Join(dir, at.File)
			faults.Add(at, diag.Hintf(at, "delete the values first", "%s/%s cannot be removed: cluster %s has Helm values for it", s.Namespace, s.Package, c.Name))
		}
	}
	return faults.Err()
}

// isUndeclared reports whether an operator is in the lock although it is neither declared nor required. Such an
// operator remains if an earlier run removed the declaration and was interrupted.
func isUndeclared(set *declare.Set, lock *lockfile.File, want string) bool {
	if lock == nil || len(matchSubscriptions(set, want)) > 0 {
		return false
	}
	found := false
	for _, pin := range lock.Pins {
		found = found || want == pin.Package || want == pin.Key()
		for _, r := range pin.Requires {
			if r.Pin == want || strings.HasSuffix(r.Pin, "/"+want) {
				return false
			}
		}
	}
	return found
}

// isOrphan reports whether an operator was locked only as a dependency.
func isOrphan(lock *lockfile.File, want string) bool {
	return slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool {
		return (want == pin.Package || want == pin.Key()) && len(pin.RequestedBy) == 0
	})
}

// findSubscription returns the only result of matchSubscriptions. No or several results are an error.
func findSubscription(set *declare.Set, want string) (declare.Subscription, error) {
	found := matchSubscriptions(set, want)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var keys []string
		for _, s := range set.Subscriptions {
			keys = append(keys, s.Namespace+"/"+s.Package)
		}
		return declare.Subscription{}, fmt.Errorf("%q is not declared%s", want, diag.DidYouMean(want, keys))
	default:
		var keys []string
		for _, s := range found {
			keys = append(keys, s.Namespace+"/"+s.Package)
		}
		return declare.Subscription{}, fmt.Errorf("%q is declared several times: choose one of %s", want, strings.Join(slices.Compact(keys), ", "))
	}
}

// remover removes YAML documents from files.
type remover struct {
	project *workspace.Project
	set     declare.Set
	files   []File // by path
	cuts    map[string][]cut
	notes   []string
}

// cut is a document to remove.
type cut struct {
	line         int
	subscription declare.Subscription
}

func (r *remover) removeSubscription(s declare.Subscription) {
	r.set.Subscriptions = slices.DeleteFunc(slices.Clone(r.set.Subscriptions), func(o declare.Subscription) bool { return o.Pos == s.Pos && o.Key() == s.Key() })
	r.cuts[s.Pos.File] = append(r.cuts[s.Pos.File], cut{s.Pos.Line, s})
}

// removeGroups removes the OperatorGroups of a namespace, unless the namespace still has operators.
func (r *remover) removeGroups(namespace string) {
	if slices.ContainsFunc(r.set.Subscriptions, func(s declare.Subscription) bool { return s.Namespace == namespace }) {
		return
	}
	for _, g := range r.set.OperatorGroupsIn(namespace) {
		if !r.project.IsKustomized(g.Pos.File) {
			r.cuts[g.Pos.File] = append(r.cuts[g.Pos.File], cut{line: g.Pos.Line})
			r.set.OperatorGroups = slices.DeleteFunc(slices.Clone(r.set.OperatorGroups), func(o declare.OperatorGroup) bool { return o.Pos == g.Pos })
		}
	}
	for _, ns := range r.set.Namespaces {
		if ns.Name == namespace {
			r.notes = append(r.notes, fmt.Sprintf("Namespace %s is still declared at %s, so it stays in the tree", namespace, ns.Pos))
		}
	}
}

// rewrite removes the documents from the text of the files. It returns an error if this would
// remove other declarations, too.
func (r *remover) rewrite() error {
	for _, file := range slices.Sorted(maps.Keys(r.cuts)) {
		cuts := r.cuts[file]
		for _, c := range cuts {
			if c.subscription.Name != "" && r.project.IsKustomized(file) {
				return newByHandError(c.subscription, "which a kustomization builds")
			}
			if slices.ContainsFunc(r.set.Subscriptions, func(o declare.Subscription) bool { return o.Pos == c.subscription.Pos }) {
				return newByHandError(c.subscription, "in an object that declares other operators")
			}
		}
		text, err := r.project.Read(file)
		if err != nil {
			return err
		}
		var lines []int
		for _, c := range cuts {
			lines = append(lines, c.line)
		}
		rest := yamlnode.DeleteDocuments(text, lines)
		if !r.hasSameRest(file, text, rest, cuts) {
			i := slices.IndexFunc(cuts, func(c cut) bool { return c.subscription.Name != "" })
			return newByHandError(cuts[max(i, 0)].subscription, "in a document with other objects")
		}
		f := File{Path: file, Change: Changed, text: rest}
		listed := slices.ContainsFunc(r.project.Settings.Declarations, func(p declare.Path) bool { return path.Clean(p.Path) == file })
		switch {
		case yamlnode.HasDocuments(rest):
		case listed: // a missing file would be an error
			r.notes = append(r.notes, fmt.Sprintf("%s is empty: delete it, and its path in spec.declarations", file))
		default:
			f.Change = Removed
		}
		r.files = append(r.files, f)
	}
	return nil
}

// hasSameRest reports whether rest has all declarations of text except the declarations in cuts.
func (r *remover) hasSameRest(file string, text, rest []byte, cuts []cut) bool {
	before, err := declare.Parse(file, text)
	if err != nil {
		return false
	}
	after, err := declare.Parse(file, rest)
	if err != nil {
		return false
	}
	removed := func(pos diag.Pos) bool {
		return slices.ContainsFunc(cuts, func(c cut) bool { return c.line == pos.Line })
	}
	return slices.Equal(listObjects(before, removed), listObjects(after, func(diag.Pos) bool { return false }))
}

// listObjects lists the declarations of a set, except those whose position removed accepts.
func listObjects(set *declare.Set, removed func(diag.Pos) bool) []string {
	var out []string
	add := func(pos diag.Pos, format string, args ...any) {
		if !removed(pos) {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	for _, s := range set.Subscriptions {
		add(s.Pos, "%s %s %s", s.Dialect, s.Key(), s.Digest)
	}
	for _, g := range set.OperatorGroups {
		add(g.Pos, "group %s/%s", g.Namespace, g.Name)
	}
	for _, c := range set.CatalogSources {
		if c.Charts != "" {
			continue // exists only for the charts
		}
		add(c.Pos, "catalog %s %s", c.ID, c.Image)
	}
	for _, n := range set.Namespaces {
		add(n.Pos, "namespace %s %v %v", n.Name, n.Labels, n.Annotations)
	}
	slices.Sort(out)
	return out
}
