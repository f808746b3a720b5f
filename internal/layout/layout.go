// Package layout says where what a cluster gets lies in a rendered tree, to whoever
// has nothing but its files.
//
// Start from [Read].
package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/yamlnode"
)

// Files and directories of a tree.
const (
	ClustersFile  = "clusters.yaml"
	Kustomization = "kustomization.yaml"

	CRDs          = "crds"          // a directory a package, without a kustomization
	Namespaces    = "namespaces"    // a directory each
	Operators     = "operators"     // a directory a piece
	Leaving       = "leaving"       // a directory an operator that is being uninstalled
	Reporter      = "reporter"      // the program
	Installations = "installations" // what the reporter is to look at, without a kustomization
	Clusters      = "clusters"      // a directory a cluster in which something differs
	All           = "all"           // the list of all that a cluster gets in one
	Pieces        = "pieces"        // what applies a piece each, without a kustomization

	Overlays  = "overlays"  // beside the tree: the team's own changes
	Resources = "resources" // there and in the tree: the team's own objects
)

// CRDsAnnotation is on the kustomization of a piece: the directories below crds of
// the definitions that go with it, separated by spaces.
const CRDsAnnotation = "quayside.dev/crds"

// maxClusters bounds what a stranger's list of clusters can make the reader do.
const maxClusters = 100_000

// Cluster is one that a tree is for.
type Cluster struct {
	Name     string `json:"cluster"`
	Prefix   string `json:"prefix"`   // what stands before the directories of its pieces
	Overlays bool   `json:"overlays"` // the team changes something there
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
func Read(names iter.Seq[string], read func(name string) ([]byte, bool)) (*Tree, error) {
	t := &Tree{builds: map[string][]string{}, installations: map[string][]string{}, read: read}
	for name := range names {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		switch {
		case file == Kustomization:
			t.builds[path.Dir(dir)] = append(t.builds[path.Dir(dir)], dir)
		case path.Base(dir) == Installations && path.Ext(file) == ".yaml":
			t.installations[dir] = append(t.installations[dir], file)
		case path.Dir(dir) == CRDs && !slices.Contains(t.plain, dir):
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
	if err := members(data, &t.Clusters); err != nil {
		return nil, err
	}
	if len(t.Clusters) > maxClusters {
		return nil, fmt.Errorf("%s: more than %d clusters", ClustersFile, maxClusters)
	}
	for _, c := range t.Clusters {
		if c.Name == "" || c.Name != path.Base(c.Name) || c.Prefix != "" && c.Prefix != Clusters+"/"+c.Name+"/" {
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
	if whole := path.Join(c.Prefix, All); slices.Contains(t.builds[above(c)], whole) {
		out = append(out, whole)
	} else {
		for _, level := range []string{Namespaces, Operators} {
			out = append(out, t.builds[path.Join(c.Prefix, level)]...)
		}
		if own := path.Join(c.Prefix, Resources); slices.Contains(t.builds[above(c)], own) {
			out = append(out, own)
		}
	}
	for _, dir := range []string{path.Join(c.Prefix, Reporter), Reporter} {
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
	for _, name := range t.installations[path.Join(c.Prefix, Installations)] {
		out = append(out, path.Join(Installations, name))
	}
	return out
}

// Definitions returns the directories of the definitions that a cluster gets, sorted,
// whose files are applied as they are; or one with a kustomization of them.
func (t *Tree) Definitions(c Cluster) (plain []string, built string) {
	if c.Prefix == "" {
		return t.plain, ""
	}
	if own := path.Join(c.Prefix, CRDs); slices.Contains(t.builds[above(c)], own) {
		return nil, own
	}
	if slices.Contains(t.builds[above(c)], path.Join(c.Prefix, All)) {
		return t.plain, ""
	}
	dirs := []string{}
	for _, dir := range append(t.builds[path.Join(c.Prefix, Operators)], path.Join(c.Prefix, Reporter)) {
		for _, name := range t.marks(strings.TrimPrefix(dir, c.Prefix)) {
			if dir := path.Join(CRDs, name); slices.Contains(t.plain, dir) {
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
	if err := decode(path.Join(dir, Kustomization), data, &k); err != nil {
		return nil // building it tells the fault
	}
	return strings.Fields(k.Metadata.Annotations[CRDsAnnotation])
}

// Everything reports whether directories of definitions are all that the tree has.
func (t *Tree) Everything(definitions []string) bool { return len(definitions) == len(t.plain) }

// AppliedAsIs reports whether an engine applies every manifest in the directory of a
// file, whoever wrote it: the directory has no kustomization.
func AppliedAsIs(name string) bool {
	dir := path.Dir(name)
	if own, inside := strings.CutPrefix(dir, Clusters+"/"); inside {
		_, dir, _ = strings.Cut(own, "/")
		return dir == Installations
	}
	return dir == CRDs || strings.HasPrefix(dir, CRDs+"/") || dir == Installations || dir == Pieces || strings.HasPrefix(dir, Pieces+"/")
}

// Operator returns the operator, as "namespace/package", that a file below operators
// belongs to. Its directory is called "namespace.package"; where several operators are
// one piece, it lies in the directory of that. Kustomizations belong to none.
func Operator(name string) (key string, ok bool) {
	if !strings.HasPrefix(name, Operators+"/") || path.Base(name) == Kustomization {
		return "", false
	}
	ns, pkg, ok := strings.Cut(path.Base(path.Dir(name)), ".")
	return ns + "/" + pkg, ok
}

// Only returns a list of clusters with those of some names alone.
func Only(data []byte, names []string) ([]byte, error) {
	var all []map[string]any
	if err := members(data, &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m map[string]any) bool {
		name, _ := m["cluster"].(string)
		return !slices.Contains(names, name)
	})
	return yamlnode.Marshal(all)
}

// members reads the list of the clusters into a slice.
func members(data []byte, into any) error {
	var said struct {
		List json.RawMessage `json:"list"`
	}
	if err := decode(ClustersFile, slices.Concat([]byte("list:\n"), data), &said); err != nil {
		return err
	}
	if !bytes.HasPrefix(said.List, []byte("[")) {
		return fmt.Errorf("%s: want a list", ClustersFile)
	}
	if err := json.Unmarshal(said.List, into); err != nil {
		return fmt.Errorf("%s: %w", ClustersFile, err)
	}
	return nil
}

// decode reads a file with one mapping, which may be a stranger's.
func decode(file string, data []byte, into any) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil {
		return err
	}
	if len(docs) != 1 {
		return fmt.Errorf("%s: want one document, got %d", file, len(docs))
	}
	text, err := yamlnode.JSON(docs[0])
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
