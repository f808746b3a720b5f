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

// subdirs returns the directories of the tree and all suffixes of their paths. For example,
// "clusters/prod/operators" also gives "prod/operators" and "operators".
func (s *Side) subdirs() map[string]bool {
	out, seen := map[string]bool{}, map[string]bool{}
	for name := range s.Contents {
		for dir := path.Dir(name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			for end, more := dir, true; more; _, end, more = strings.Cut(end, "/") {
				out[end] = true
			}
		}
	}
	return out
}

// compareEngine compares the files that configure GitOps engines. It compares each directory
// separately, because different clusters may have objects with the same name.
func (c *Comparison) compareEngine(opt diff.CompareOptions, version string) ([]diff.Part, error) {
	before := engineSide{c.Before, c.Before.EngineFiles(), sync.OnceValue(c.Before.subdirs)}
	after := engineSide{c.After, c.After.EngineFiles(), sync.OnceValue(c.After.subdirs)}
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
		// A cluster may have its own directory on one side and a shared directory on the other side.
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
			parts = append(parts, diff.Part{Clusters: c.After.Clusters(), Report: report})
		}
	}
	return parts, nil
}

// siblingFiles returns the files of the first directory below layout.Pieces. If dir is not below layout.Pieces,
// it returns nil.
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

type engineSide struct {
	*Side
	files map[string][]diff.File
	dirs  func() map[string]bool
}

// state returns a state with the objects in files, which are the files of the directory dir. It
// sets Follows for an object whose operator, namespace or cluster is missing on the other side. If
// introduced is true, it sets Follows for all objects.
func (s engineSide) state(other engineSide, files []diff.File, dir string, introduced bool) (diff.State, error) {
	state := diff.State{Name: s.Name}
	if s.Settings.GitOps != nil {
		state.Declared = []string{s.Settings.GitOps.Namespace}
	}
	shown := ""
	if s.treeOnly { // the two sides are in different directories
		shown = dir
	}
	var err error
	if state.Objects, err = diff.EngineObjects(files, shown); err != nil {
		return state, err
	}
	onlyHere := func(cluster string) bool {
		return slices.Contains(s.Clusters(), cluster) && !slices.Contains(other.Clusters(), cluster)
	}
	for i := range state.Objects {
		o := &state.Objects[i]
		cluster := onlyHere(path.Base(dir)) || onlyHere(k8s.Text(o.Content, "spec", "defaultValues", "cluster"))
		moved := slices.ContainsFunc(o.AppliedDirs(), func(dir string) bool { return s.dirs()[dir] && !other.dirs()[dir] })
		o.Follows = introduced || (cluster || moved) && usesSources(other.files, o)
	}
	return state, nil
}

// usesSources reports whether the files in others contain all sources of an object: repositories, revisions and
// projects.
func usesSources(others map[string][]diff.File, o *diff.Object) bool {
	texts := o.SourceTexts()
	for _, files := range others {
		for _, f := range files {
			texts = slices.DeleteFunc(texts, func(text string) bool { return bytes.Contains(f.Data, []byte(text)) })
		}
	}
	return len(texts) == 0
}
