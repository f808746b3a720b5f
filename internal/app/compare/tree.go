package compare

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s/overlay"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/render"
)

// tree is a rendered tree, and the files around it. It is immutable.
type tree struct {
	as, out   string            // prefix of displayed paths; directory of the tree, below as
	around    overlay.Source    // any file inside or around the tree, by path
	have      map[string][]byte // manifests and lists of the tree, by path
	manifests []diff.File       // the manifests, with displayed paths
	layout    *layout.Tree      // without clusters if quayside did not write the tree
	overlays  *overlay.Files
	shares    map[string]share // by cluster prefix and Kubernetes version, filled on demand
}

// newTree returns the tree of these files, which are also in around. It returns an error if
// the list of clusters is invalid.
func newTree(as, out string, files []diff.File, around overlay.Source) (*tree, error) {
	t := &tree{as: as, out: out, around: around, have: map[string][]byte{}, overlays: overlay.New(around), shares: map[string]share{}}
	inside := map[string][]byte{}
	for _, f := range files {
		t.have[f.Path] = f.Data
		if t.contains(f.Path) {
			inside[strings.TrimPrefix(f.Path, out+"/")] = f.Data
		}
	}
	var err error
	t.layout, err = layout.Read(maps.Keys(inside), func(name string) ([]byte, bool) { text, there := inside[name]; return text, there })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.shown(out), err)
	}
	t.manifests = diff.BaseFiles(t.shown(out), t.named(files))
	return t, nil
}

// contains reports whether a path is inside the tree.
func (t *tree) contains(name string) bool { return t.out == "." || strings.HasPrefix(name, t.out+"/") }

// shown returns the displayed path of a file.
func (t *tree) shown(name string) string { return path.Join(t.as, name) }

// named returns files with displayed paths.
func (t *tree) named(files []diff.File) []diff.File {
	out := make([]diff.File, len(files))
	for i, f := range files {
		out[i] = diff.File{Path: t.shown(f.Path), Data: f.Data}
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

// generated returns the cluster-specific files of the tree, by their paths below its
// clusters directory.
func (t *tree) generated() map[string][]byte {
	out := map[string][]byte{}
	for name, data := range t.have {
		if rest, inside := strings.CutPrefix(name, path.Join(t.out, layout.Clusters)+"/"); inside {
			out[rest] = data
		}
	}
	return out
}

// rendered returns a rendered lock in place of the tree.
func (t *tree) rendered(res *render.Result, pool pool) (*tree, error) {
	var files []diff.File
	have := map[string][]byte{}
	for name, data := range res.Tree.All() {
		f := diff.File{Path: path.Join(t.out, name), Data: pool.add(data)}
		files, have[f.Path] = append(files, f), f.Data
	}
	get := func(name string) ([]byte, bool) { data, is := have[name]; return data, is }
	return newTree(t.as, t.out, files, overlay.ReplacingSource{Dir: t.out, Files: get, Base: t.around})
}
