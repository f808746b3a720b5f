package compare

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/render"
)

// tree is a rendered tree with the other files of its repository. It is immutable.
type tree struct {
	prefix    string            // prefix of displayed paths
	out       string            // directory of the tree
	reader    overlay.Source    // reads the files of the tree and of the repository
	contents  map[string][]byte // manifests and lists of the tree, by path
	manifests []diff.File       // manifests, with displayed paths
	layout    *layout.Tree      // has no clusters if quayside did not write the tree
	overlays  *overlay.Files
	inputs    map[string]clusterInputs // cache, by cluster prefix and Kubernetes version
}

// newTree returns the tree of files, which reader must also contain. An invalid list of clusters
// is an error.
func newTree(prefix, out string, files []diff.File, reader overlay.Source) (*tree, error) {
	t := &tree{prefix: prefix, out: out, reader: reader, contents: map[string][]byte{}, overlays: overlay.New(reader), inputs: map[string]clusterInputs{}}
	inside := map[string][]byte{}
	for _, f := range files {
		t.contents[f.Path] = f.Data
		if t.contains(f.Path) {
			inside[strings.TrimPrefix(f.Path, out+"/")] = f.Data
		}
	}
	var err error
	t.layout, err = layout.Read(maps.Keys(inside), func(name string) ([]byte, bool) { text, there := inside[name]; return text, there })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.displayPath(out), err)
	}
	t.manifests = diff.BaseFiles(t.displayPath(out), t.withDisplayPaths(files))
	return t, nil
}

// contains reports whether a path is inside the tree.
func (t *tree) contains(name string) bool { return t.out == "." || strings.HasPrefix(name, t.out+"/") }

// displayPath returns the displayed path of a file.
func (t *tree) displayPath(name string) string { return path.Join(t.prefix, name) }

// withDisplayPaths returns files with displayed paths.
func (t *tree) withDisplayPaths(files []diff.File) []diff.File {
	out := make([]diff.File, len(files))
	for i, f := range files {
		out[i] = diff.File{Path: t.displayPath(f.Path), Data: f.Data}
	}
	return out
}

// clusters returns the names of the clusters of the tree, sorted.
func (t *tree) clusters() []string {
	var names []string
	for _, c := range t.layout.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// clusterFiles returns the files of the tree for single clusters, by path in the clusters
// directory.
func (t *tree) clusterFiles() map[string][]byte {
	out := map[string][]byte{}
	for name, data := range t.contents {
		if rest, inside := strings.CutPrefix(name, path.Join(t.out, layout.Clusters)+"/"); inside {
			out[rest] = data
		}
	}
	return out
}

// withRendered returns a copy of t with a rendered lock in place of the files on disk.
func (t *tree) withRendered(res *render.Result, pool pool) (*tree, error) {
	var files []diff.File
	have := map[string][]byte{}
	for name, data := range res.Tree.All() {
		f := diff.File{Path: path.Join(t.out, name), Data: pool.add(data)}
		files, have[f.Path] = append(files, f), f.Data
	}
	get := func(name string) ([]byte, bool) { data, is := have[name]; return data, is }
	return newTree(t.prefix, t.out, files, overlay.ReplacingSource{Dir: t.out, Files: get, Base: t.reader})
}
