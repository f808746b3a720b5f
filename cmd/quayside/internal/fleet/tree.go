// Package fleet computes the objects of each cluster: the objects of a rendered tree, changed by
// the user's overlays. Clusters with equal inputs share one result. Package overlay runs kustomize.
//
// Start from [New], [Fleet.ForEachGroup] and [Fleet.Patches].
package fleet

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/render"
)

// Tree is a rendered tree, together with the other files of its repository, which overlays may use.
// It is immutable.
type Tree struct {
	Out       string            // directory of the tree
	Reader    overlay.Source    // reads the files of the tree and of the repository
	Contents  map[string][]byte // manifests and lists of the tree, by path in the repository
	Manifests []diff.File       // manifests of the base, with displayed paths
	Layout    *layout.Tree      // without clusters if quayside did not render the tree

	prefix   string // prefix for displayed paths
	pool     *Pool
	overlays *overlay.Files
	inputs   map[string]Inputs  // cache, by directory of the cluster and Kubernetes version
	patches  map[[32]byte]Patch // cache, by digest of the overlay
}

// NewTree returns the tree in directory out. files holds the files of the tree. reader must contain them, too.
// An invalid list of clusters is an error.
func NewTree(prefix, out string, files []diff.File, reader overlay.Source, pool *Pool) (*Tree, error) {
	t := &Tree{prefix: prefix, pool: pool, Out: out, Reader: reader, Contents: map[string][]byte{}, overlays: overlay.New(reader), inputs: map[string]Inputs{}}
	inside := map[string][]byte{}
	for _, f := range files {
		t.Contents[f.Path] = f.Data
		if t.Contains(f.Path) {
			inside[strings.TrimPrefix(f.Path, out+"/")] = f.Data
		}
	}
	var err error
	t.Layout, err = layout.Read(maps.Keys(inside), func(name string) ([]byte, bool) { text, there := inside[name]; return text, there })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.DisplayPath(out), err)
	}
	t.Manifests = diff.BaseFiles(t.DisplayPath(out), t.withDisplayPaths(files))
	return t, nil
}

// Contains reports whether a path is inside the tree.
func (t *Tree) Contains(name string) bool { return t.Out == "." || strings.HasPrefix(name, t.Out+"/") }

// DisplayPath returns the path of a file as shown to users.
func (t *Tree) DisplayPath(name string) string { return path.Join(t.prefix, name) }

// withDisplayPaths returns files with displayed paths.
func (t *Tree) withDisplayPaths(files []diff.File) []diff.File {
	out := make([]diff.File, len(files))
	for i, f := range files {
		out[i] = diff.File{Path: t.DisplayPath(f.Path), Data: f.Data}
	}
	return out
}

// Clusters returns the names of the clusters of the tree, sorted.
func (t *Tree) Clusters() []string {
	var names []string
	for _, c := range t.Layout.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// ClusterFiles returns the files of the tree that belong to single clusters. Paths are relative to
// clusters/ in the tree.
func (t *Tree) ClusterFiles() map[string][]byte {
	out := map[string][]byte{}
	for name, data := range t.Contents {
		if rest, inside := strings.CutPrefix(name, path.Join(t.Out, layout.Clusters)+"/"); inside {
			out[rest] = data
		}
	}
	return out
}

// ReuseFrom lets t reuse those overlays of other whose input is completely equal.
func (t *Tree) ReuseFrom(other *Tree) { t.overlays.ReuseFrom(other.overlays) }

// EngineFiles returns the files that configure GitOps engines, by directory in the tree. It omits the objects
// that clusters get, and their kustomizations.
func (t *Tree) EngineFiles() map[string][]diff.File {
	built := []string{
		layout.CRDs, layout.Namespaces, layout.Operators, layout.Leaving, layout.Reporter, layout.Installations, layout.Clusters, layout.All, layout.Resources,
		layout.Kustomization, layout.Overlays,
	}
	out := map[string][]diff.File{}
	for name, data := range t.Contents {
		if !t.Contains(name) || !IsManifest(name) {
			continue
		}
		rel := name
		if t.Out != "." {
			rel = strings.TrimPrefix(name, t.Out+"/")
		}
		if top, _, _ := strings.Cut(rel, "/"); !slices.Contains(built, top) {
			out[path.Dir(rel)] = append(out[path.Dir(rel)], diff.File{Path: t.DisplayPath(name), Data: data})
		}
	}
	for _, files := range out {
		slices.SortFunc(files, func(a, b diff.File) int { return strings.Compare(a.Path, b.Path) })
	}
	return out
}

// WithRendered returns a copy of t with the files of a rendering result instead of the files on
// disk.
func (t *Tree) WithRendered(res *render.Result) (*Tree, error) {
	var files []diff.File
	have := map[string][]byte{}
	for name, data := range res.Tree.All() {
		f := diff.File{Path: path.Join(t.Out, name), Data: t.pool.Add(data)}
		files, have[f.Path] = append(files, f), f.Data
	}
	get := func(name string) ([]byte, bool) { data, is := have[name]; return data, is }
	return NewTree(t.prefix, t.Out, files, overlay.ReplacingSource{Dir: t.Out, Files: get, Base: t.Reader}, t.pool)
}
