// Package layout says where what a cluster gets lies in a rendered tree, to whoever
// has nothing but its files.
//
// Start from [Read].
package layout

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/yamlnode"
)

// Files and directories of a tree.
const (
	ClustersFile  = "clusters.yaml"
	Kustomization = "kustomization.yaml"
	Overlays      = "overlays" // beside it: the team's own changes
	Resources     = "resources"

	all           = "all"
	crds          = "crds"
	installations = "installations"
	reporter      = "reporter"
)

// CRDsAnnotation is on the kustomization of a piece: the directories below crds of
// the definitions that go with it, separated by spaces.
const CRDsAnnotation = "quayside.dev/crds"

// maxClusters bounds what a stranger's list of clusters can make the reader do.
const maxClusters = 100_000

// Cluster is one that a tree is for.
type Cluster struct {
	Name      string `json:"cluster"`
	Prefix    string `json:"prefix"`   // what stands before the directories of its pieces
	Overlays  bool   `json:"overlays"` // the team changes something there
	Resources bool   `json:"resources"`
}

// Tree is the layout of a tree.
type Tree struct {
	Clusters []Cluster // by name; none where the files are no tree

	builds map[string][]string // directories with a kustomization, by the one above them
	plain  []string            // directories below crds, sorted
	read   func(name string) ([]byte, bool)

	installations map[string][]string // names of files, by directory
}

// Read returns the layout of the files of a tree, whose names are relative to it. The
// error is that of a list of clusters that cannot be read.
func Read(names func(yield func(string) bool), read func(name string) ([]byte, bool)) (*Tree, error) {
	t := &Tree{builds: map[string][]string{}, installations: map[string][]string{}, read: read}
	for name := range names {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		switch {
		case file == Kustomization:
			t.builds[path.Dir(dir)] = append(t.builds[path.Dir(dir)], dir)
		case path.Base(dir) == installations && path.Ext(file) == ".yaml":
			t.installations[dir] = append(t.installations[dir], file)
		case path.Dir(dir) == crds && !slices.Contains(t.plain, dir):
			t.plain = append(t.plain, dir)
		}
	}
	for _, dirs := range t.builds {
		slices.Sort(dirs)
	}
	for _, files := range t.installations {
		slices.Sort(files)
	}
	slices.Sort(t.plain)
	data, there := read(ClustersFile)
	if !there {
		return t, nil
	}
	if err := yaml.Unmarshal(data, &t.Clusters); err != nil {
		return nil, fmt.Errorf("%s: %w", ClustersFile, err)
	}
	if len(t.Clusters) > maxClusters {
		return nil, fmt.Errorf("%s: more than %d clusters", ClustersFile, maxClusters)
	}
	for _, c := range t.Clusters {
		if c.Name == "" || c.Name != path.Base(c.Name) || c.Prefix != "" && c.Prefix != "clusters/"+c.Name+"/" {
			return nil, fmt.Errorf("%s: cluster %q with prefix %q is none that quayside wrote", ClustersFile, c.Name, c.Prefix)
		}
	}
	slices.SortFunc(t.Clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return t, nil
}

// Cluster returns the cluster of that name.
func (t *Tree) Cluster(name string) (Cluster, bool) {
	i := slices.IndexFunc(t.Clusters, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		return Cluster{}, false
	}
	return t.Clusters[i], true
}

// Pieces returns the directories that are built for a cluster, as seen from the tree;
// together they are all that it gets but definitions and what the reporter is to
// look at.
func (t *Tree) Pieces(c Cluster) []string {
	var out []string
	if whole := path.Join(c.Prefix, all); slices.Contains(t.builds[above(c)], whole) {
		out = append(out, whole)
	} else {
		for _, level := range []string{"namespaces", "operators"} {
			out = append(out, t.builds[path.Join(c.Prefix, level)]...)
		}
		if own := path.Join(c.Prefix, Resources); slices.Contains(t.builds[above(c)], own) {
			out = append(out, own)
		}
	}
	for _, dir := range []string{path.Join(c.Prefix, reporter), reporter} {
		if slices.Contains(t.builds[path.Dir(dir)], dir) {
			return append(out, dir)
		}
	}
	return out
}

func above(c Cluster) string { return path.Join(".", c.Prefix) }

// Installations returns what the reporter is to look at in a cluster: files of the
// tree, sorted. Those in the cluster's own directory may say more of the same.
func (t *Tree) Installations(c Cluster) []string {
	var out []string
	for _, name := range t.installations[path.Join(c.Prefix, installations)] {
		out = append(out, path.Join(installations, name))
	}
	return out
}

// Definitions returns the directories of the definitions that a cluster gets, sorted,
// whose files are applied as they are; or one with a kustomization of them.
func (t *Tree) Definitions(c Cluster) (plain []string, built string) {
	if c.Prefix == "" {
		return t.plain, ""
	}
	if own := path.Join(c.Prefix, crds); slices.Contains(t.builds[above(c)], own) {
		return nil, own
	}
	if slices.Contains(t.builds[above(c)], path.Join(c.Prefix, all)) {
		return t.plain, ""
	}
	dirs := []string{}
	for _, dir := range append(t.builds[path.Join(c.Prefix, "operators")], path.Join(c.Prefix, reporter)) {
		for _, name := range t.marks(strings.TrimPrefix(dir, c.Prefix)) {
			if dir := path.Join(crds, name); slices.Contains(t.plain, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), ""
}

// marks returns the names of the definitions' directories that go with a piece.
func (t *Tree) marks(dir string) []string {
	data, there := t.read(path.Join(dir, Kustomization))
	if !there {
		return nil
	}
	var k struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(data, &k); err != nil {
		return nil
	}
	return strings.Fields(k.Metadata.Annotations[CRDsAnnotation])
}

// All returns the directories of all definitions, sorted.
func (t *Tree) All() []string { return t.plain }

// Operator returns the operator, as "namespace/package", that a file below operators
// belongs to. Its directory is called "namespace.package"; where several operators are
// one piece, it lies in the directory of that. Kustomizations belong to none.
func Operator(name string) (key string, ok bool) {
	if !strings.HasPrefix(name, "operators/") || path.Base(name) == Kustomization {
		return "", false
	}
	ns, pkg, ok := strings.Cut(path.Base(path.Dir(name)), ".")
	return ns + "/" + pkg, ok
}

// Only returns a list of clusters with those of some names alone.
func Only(data []byte, names []string) ([]byte, error) {
	var members []map[string]any
	if err := yaml.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("%s: %w", ClustersFile, err)
	}
	members = slices.DeleteFunc(members, func(m map[string]any) bool {
		name, _ := m["cluster"].(string)
		return !slices.Contains(names, name)
	})
	return yamlnode.Marshal(members)
}
