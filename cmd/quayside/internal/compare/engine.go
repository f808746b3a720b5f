package compare

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// engineFiles returns the files of the tree for GitOps engines, by directory in the tree. It
// leaves out the objects of clusters and their kustomizations.
func (t *tree) engineFiles() map[string][]diff.File {
	built := []string{
		layout.CRDs, layout.Namespaces, layout.Operators, layout.Leaving, layout.Reporter, layout.Installations, layout.Clusters, layout.All, layout.Resources,
		layout.Kustomization,
	}
	out := map[string][]diff.File{}
	for name, data := range t.contents {
		if !t.contains(name) || !isManifest(name) {
			continue
		}
		rel := name
		if t.out != "." {
			rel = strings.TrimPrefix(name, t.out+"/")
		}
		if top, _, _ := strings.Cut(rel, "/"); !slices.Contains(built, top) {
			out[path.Dir(rel)] = append(out[path.Dir(rel)], diff.File{Path: t.displayPath(name), Data: data})
		}
	}
	for _, files := range out {
		slices.SortFunc(files, func(a, b diff.File) int { return strings.Compare(a.Path, b.Path) })
	}
	return out
}

// subdirs returns all suffixes of the directory paths in the tree, such as
// "operators/my-etcd.etcd" for "clusters/prod/operators/my-etcd.etcd".
func (t *tree) subdirs() map[string]bool {
	out, seen := map[string]bool{}, map[string]bool{}
	for name := range t.contents {
		for dir := path.Dir(name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			for end, more := dir, true; more; _, end, more = strings.Cut(end, "/") {
				out[end] = true
			}
		}
	}
	return out
}

// compareEngine compares the files of both sides for GitOps engines. It compares each directory
// separately, because the objects of different clusters may have equal names.
func (c *Comparison) compareEngine(opt diff.CompareOptions, version string) ([]diff.Part, error) {
	before := engineSide{c.Before, c.Before.engineFiles(), sync.OnceValue(c.Before.subdirs)}
	after := engineSide{c.After, c.After.engineFiles(), sync.OnceValue(c.After.subdirs)}
	dirs := map[string]bool{}
	for _, files := range []map[string][]diff.File{before.files, after.files} {
		for dir := range files {
			dirs[dir] = true
		}
	}
	introduced := len(before.files) == 0
	var parts []diff.Part
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		a, b := before.files[dir], after.files[dir]
		if slices.EqualFunc(a, b, func(x, y diff.File) bool {
			return path.Base(x.Path) == path.Base(y.Path) && bytes.Equal(x.Data, y.Data)
		}) {
			continue
		}
		// A cluster may have its own directory on one side and share one on the other.
		if a == nil {
			a = siblingFiles(before.files, dir)
		}
		if b == nil {
			b = siblingFiles(after.files, dir)
		}
		old, err := before.state(after, a, dir, introduced)
		if err != nil {
			return nil, c.Before.wrapName(err)
		}
		now, err := after.state(before, b, dir, introduced)
		if err != nil {
			return nil, c.After.wrapName(err)
		}
		old.KubernetesVersion, now.KubernetesVersion = version, version
		report, err := diff.Compare(old, now, opt)
		if err != nil {
			return nil, err
		}
		if len(report.Findings) > 0 {
			parts = append(parts, diff.Part{Clusters: c.After.clusters(), Report: report})
		}
	}
	return parts, nil
}

// siblingFiles returns the files of the first directory that clusters share, if dir is a directory of
// pieces. Otherwise it returns nil.
func siblingFiles(files map[string][]diff.File, dir string) []diff.File {
	if path.Dir(dir) != layout.Pieces {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(other) == layout.Pieces {
			return files[other]
		}
	}
	return nil
}

// engineSide is one side with the results of engineFiles and subdirs.
type engineSide struct {
	*Side
	files map[string][]diff.File
	dirs  func() map[string]bool
}

// state returns the objects in files, which are in directory dir. It sets Follows for objects of
// operators, namespaces and clusters that the other side does not have. If introduced is true,
// it sets Follows for all objects.
func (s engineSide) state(other engineSide, files []diff.File, dir string, introduced bool) (diff.State, error) {
	state := diff.State{Name: s.Name}
	var err error
	if state.Objects, err = diff.EngineObjects(files); err != nil {
		return state, err
	}
	onlyHere := func(cluster string) bool {
		return slices.Contains(s.clusters(), cluster) && !slices.Contains(other.clusters(), cluster)
	}
	for i := range state.Objects {
		o := &state.Objects[i]
		cluster := onlyHere(path.Base(dir)) || onlyHere(k8s.Text(o.Content, "spec", "defaultValues", "cluster"))
		moved := slices.ContainsFunc(o.AppliedDirs(), func(dir string) bool { return s.dirs()[dir] && !other.dirs()[dir] })
		o.Follows = introduced || (cluster || moved) && usesSources(other.files, o)
	}
	return state, nil
}

// usesSources reports whether the files in others name all sources of an object: its
// repositories, revisions and projects.
func usesSources(others map[string][]diff.File, o *diff.Object) bool {
	texts := o.SourceTexts()
	for _, files := range others {
		for _, f := range files {
			texts = slices.DeleteFunc(texts, func(text string) bool { return bytes.Contains(f.Data, []byte(text)) })
		}
	}
	return len(texts) == 0
}
