package survey

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
)

// Application is a declaration that a GitOps tool applies to a cluster.
type Application struct {
	By          string   // such as `Application "etcd"`, `Policy "etcd"` or `kustomization "clusters/lab"`
	Pos         diag.Pos // position of that object
	Declaration Declaration
	Declared    bool   // whether the declared paths include the file of the declaration
	Proven      bool   // whether an object of a GitOps tool certainly applies the declaration
	Cluster     string // name, server or kubeconfig of the target cluster; empty: not set or unknown
}

// Applications returns the declarations that a GitOps tool applies, sorted by position. For each cluster, it
// returns the first object that applies the declaration to that cluster. declared are the declared paths of a
// workspace, and others are the declared paths of other workspaces. A kustomization outside of these paths
// counts as applied, because the object that applies it may be in another repository. A Policy that clusters
// enforce also counts as applied. Declarations for which wanted returns false are omitted.
func (s *Survey) Applications(declared, others []string, wanted func(Declaration) bool) []Application {
	files, inputs := s.included(declared)
	_, more := s.included(others)
	maps.Copy(inputs, more)
	type key struct {
		pos     diag.Pos
		cluster string
	}
	found := map[key]bool{}
	var out []Application
	add := func(a *Applied, d Declaration, app Application) {
		if s.holders[d.Pos] != nil {
			app.Cluster = "" // the clusters of a policy are known only on the hub
		}
		at := key{d.Pos, app.Cluster}
		if found[at] || a != nil && !s.keeps(a, d) {
			return
		}
		found[at] = true
		app.Declaration, app.Declared = d, files[d.Pos.File]
		out = append(out, app)
	}
	for _, d := range s.Declarations {
		holder := s.holders[d.Pos]
		if d.Package == "" || d.Obstacle != "" || !wanted(d) || holder != nil && !holder.enforced {
			continue
		}
		appliers := s.Appliers(d)
		for _, a := range appliers {
			source := a.Entry.isNamed() || slices.Contains(declared, a.Entry.Pos.File) && len(s.applied[a.Entry.Pos.File]) == 0 // nothing in the repository applies the object: it only refers quayside to the declarations
			if !source || !a.suspended {
				add(a, d, Application{By: a.Entry.By, Pos: a.Pos, Proven: a.Guess == "" && !source, Cluster: a.Cluster})
			}
		}
		if len(appliers) > 0 {
			continue
		}
		for _, dir := range s.kustomizationsOf(d.Pos.File) {
			if !inputs[dir] {
				at := diag.Pos{File: s.repo.kustomizations[dir].File, Line: 1, Col: 1}
				add(&Applied{Dir: dir}, d, Application{By: fmt.Sprintf("kustomization %q", dir), Pos: at})
			}
		}
		for _, p := range s.Policies(d) {
			add(nil, d, Application{By: p.By, Pos: p.Pos})
		}
	}
	slices.SortStableFunc(out, func(a, b Application) int { return a.Declaration.Pos.Compare(b.Declaration.Pos) })
	return out
}

// kustomizationsOf returns the directories of the kustomizations that include a file, sorted.
func (s *Survey) kustomizationsOf(file string) []string {
	if s.including == nil {
		s.including = map[string][]string{}
		for _, dir := range slices.Sorted(maps.Keys(s.repo.kustomizations)) {
			files := map[string]bool{}
			s.repo.addIncluded(dir, files, map[string]bool{})
			for name := range files {
				if len(s.byFile[name]) > 0 {
					s.including[name] = append(s.including[name], dir)
				}
			}
		}
	}
	return s.including[file]
}

// Unread returns the declarations that the declared paths do not include, sorted by position.
func (s *Survey) Unread(declared []string) []Declaration {
	files, _ := s.included(declared)
	return slices.DeleteFunc(slices.Clone(s.Declarations), func(d Declaration) bool { return files[d.Pos.File] })
}

// Includes returns a function that reports whether the declared paths include a file.
func (s *Survey) Includes(declared []string) func(file string) bool {
	files, _ := s.included(declared)
	return func(file string) bool {
		return files[file] || slices.ContainsFunc(declared, func(top string) bool { return filetree.Within(file, top) })
	}
}

// Appliers returns those directories that entries apply and that contain d, sorted by position.
func (s *Survey) Appliers(d Declaration) []*Applied {
	if d.templated {
		return slices.SortedStableFunc(slices.Values(d.applied), func(a, b *Applied) int { return a.Pos.Compare(b.Pos) })
	}
	return slices.SortedStableFunc(slices.Values(s.applied[d.Pos.File]), func(a, b *Applied) int { return a.Pos.Compare(b.Pos) })
}

// Changing returns the entry points that apply operators in or below dir and change these operators. It also
// returns the kustomizations that include dir and change it. It omits entry points and kustomizations in the
// declared paths.
func (s *Survey) Changing(dir string, declared []string) (applied []*Applied, kustomizations []string) {
	for _, e := range s.Entries {
		for _, a := range e.Applied {
			if a.Guess == "" && filetree.Within(a.Dir, dir) && !slices.Contains(declared, e.Pos.File) && s.changes(a) {
				applied = append(applied, a)
			}
		}
	}
	for top, k := range s.repo.kustomizations {
		if k != nil && k.Changes && slices.Contains(k.Resources, dir) && !k.Component {
			kustomizations = append(kustomizations, top)
		}
	}
	if slices.ContainsFunc(kustomizations, func(top string) bool {
		return slices.ContainsFunc(declared, func(d string) bool { return filetree.Within(top, d) })
	}) {
		kustomizations = nil
	}
	slices.Sort(kustomizations)
	return applied, kustomizations
}

// isNamed reports whether the entry comes from a chart that a workspace names, directly or through other
// charts. In this case, no known object of the repository applies the entry.
func (e *Entry) isNamed() bool {
	for e.within != nil {
		if e = e.within.Entry; e.By == "" {
			return true
		}
	}
	return false
}

// changes reports whether the tool changes one of the operators that it applies from a.Dir.
func (s *Survey) changes(a *Applied) bool {
	if a.Chart != nil {
		return slices.ContainsFunc(s.Declarations, func(d Declaration) bool { return d.IsOperator() && slices.Contains(d.applied, a) })
	}
	if a.Changes.String() == "" && a.Changes.DefaultNamespace == "" {
		return false
	}
	for file := range s.repo.appliedFiles(a) {
		for _, i := range s.byFile[file] {
			if d := s.Declarations[i]; d.IsOperator() && d.Obstacle == "" && (a.Changes.String() != "" || d.Namespace == "") {
				return true
			}
		}
	}
	return false
}

// Dirs returns the topmost directories that contain the declarations in list, sorted.
func Dirs(list []Declaration) []string {
	var dirs []string
	for _, d := range list {
		dirs = append(dirs, path.Dir(d.Pos.File))
	}
	slices.Sort(dirs)
	var out []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(out, func(top string) bool { return filetree.Within(dir, top) }) {
			out = append(out, dir)
		}
	}
	return out
}

// included returns the files with declarations, and the directories of kustomizations, that the
// declared paths include.
func (s *Survey) included(declared []string) (files, dirs map[string]bool) {
	files, dirs = map[string]bool{}, map[string]bool{}
	for _, top := range declared {
		for dir, k := range s.repo.kustomizations {
			if k != nil && filetree.Within(dir, top) {
				s.repo.addIncluded(dir, files, dirs)
			}
		}
		for file := range s.byFile {
			files[file] = files[file] || filetree.Within(file, top)
		}
	}
	return files, dirs
}

// keeps reports whether the built kustomization in a.Dir still contains a declaration, which a patch may have
// deleted. It returns true if there is no kustomization, or if the kustomization cannot be built.
func (s *Survey) keeps(a *Applied, d Declaration) bool {
	if s.repo.kustomization(a.Dir) == nil {
		return true
	}
	objects := s.build(a.Dir)
	return objects == nil || contains(objects, d)
}

// contains reports whether v is a declaration of the same kind and package as d, or contains one.
func contains(v any, d Declaration) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return contains(item, d) })
	case map[string]any:
		if k8s.Text(v, "kind") == d.Kind {
			for _, where := range [][]string{{"spec", "name"}, {"spec", "package"}, {"spec", "source", "catalog", "packageName"}, {"spec", "subscription", "name"}} {
				if k8s.Text(v, where...) == d.Package {
					return true
				}
			}
		}
		for _, item := range v {
			if contains(item, d) {
				return true
			}
		}
	}
	return false
}
