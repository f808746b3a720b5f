// Package layout locates the objects of each cluster in a rendered tree, from
// its files alone.
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

	"github.com/quayside/quayside/internal/base/yamlnode"
)

// Files and directories of a tree.
const (
	ClustersFile  = "clusters.yaml"
	Kustomization = "kustomization.yaml"

	CRDs          = "crds"          // one directory per package, without a kustomization
	Namespaces    = "namespaces"    // one directory per namespace
	Operators     = "operators"     // one directory per piece
	Leaving       = "leaving"       // one directory per operator that is being uninstalled
	Reporter      = "reporter"      // the program
	Installations = "installations" // the Installations, without a kustomization
	Clusters      = "clusters"      // one directory per cluster with differences
	All           = "all"           // the list of everything for a cluster
	Pieces        = "pieces"        // manifests that apply one piece each, without a kustomization

	Overlays  = "overlays"  // next to the tree: the team's changes
	Resources = "resources" // in both: the team's own objects
)

// CRDsAnnotation is the annotation on the kustomization of a piece that lists
// the directories of its CRDs below crds, separated by spaces.
const CRDsAnnotation = "quayside.dev/crds"

// maxClusters limits the number of clusters in a list, which may be untrusted.
const maxClusters = 100_000

// Cluster is a cluster that a tree is rendered for.
type Cluster struct {
	Name     string `json:"cluster"`
	Prefix   string `json:"prefix"`   // prefix of the directories of its pieces
	Overlays bool   `json:"overlays"` // the team has overlays for it
}

// Tree is the layout of a tree.
type Tree struct {
	Clusters []Cluster // by name; empty if the files are not a tree

	builds map[string][]string // directories with a kustomization, by parent directory
	plain  []string            // directories below crds, sorted
	read   func(name string) ([]byte, bool)

	installations map[string][]string // names of files, by directory
}

// Read returns the layout of a tree from the names of its files, relative to the
// tree. It returns an error if the list of clusters is invalid.
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
	if err := decodeClusters(data, &t.Clusters); err != nil {
		return nil, err
	}
	if len(t.Clusters) > maxClusters {
		return nil, fmt.Errorf("%s: more than %d clusters", ClustersFile, maxClusters)
	}
	for _, c := range t.Clusters {
		if c.Name == "" || c.Name != path.Base(c.Name) || c.Prefix != "" && c.Prefix != Clusters+"/"+c.Name+"/" {
			return nil, fmt.Errorf("%s: cluster %q with prefix %q was not written by quayside", ClustersFile, c.Name, c.Prefix)
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

// Pieces returns the directories to build for a cluster, relative to the tree.
// Together they contain everything for the cluster, except CRDs and
// Installations.
func (t *Tree) Pieces(c Cluster) []string {
	var out []string
	if whole := path.Join(c.Prefix, All); slices.Contains(t.builds[parentDir(c)], whole) {
		out = append(out, whole)
	} else {
		for _, level := range []string{Namespaces, Operators} {
			out = append(out, t.builds[path.Join(c.Prefix, level)]...)
		}
		if own := path.Join(c.Prefix, Resources); slices.Contains(t.builds[parentDir(c)], own) {
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

func parentDir(c Cluster) string { return path.Join(".", c.Prefix) }

// Installations returns the files with Installations for a cluster, sorted.
// Files in the cluster's own directory may contain further fields of the same
// objects.
func (t *Tree) Installations(c Cluster) []string {
	var out []string
	for _, name := range t.installations[path.Join(c.Prefix, Installations)] {
		out = append(out, path.Join(Installations, name))
	}
	return out
}

// ClusterCRDDirs returns the directories with the CRDs of a cluster, sorted. Their
// files are applied without a build. If they have a kustomization, it returns
// the directory to build instead.
func (t *Tree) ClusterCRDDirs(c Cluster) (plain []string, built string) {
	if c.Prefix == "" {
		return t.plain, ""
	}
	if own := path.Join(c.Prefix, CRDs); slices.Contains(t.builds[parentDir(c)], own) {
		return nil, own
	}
	if slices.Contains(t.builds[parentDir(c)], path.Join(c.Prefix, All)) {
		return t.plain, ""
	}
	dirs := []string{}
	for _, dir := range append(t.builds[path.Join(c.Prefix, Operators)], path.Join(c.Prefix, Reporter)) {
		for _, name := range t.crdDirs(strings.TrimPrefix(dir, c.Prefix)) {
			if dir := path.Join(CRDs, name); slices.Contains(t.plain, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), ""
}

// crdDirs returns the names of the CRD directories that belong to a piece.
func (t *Tree) crdDirs(dir string) []string {
	data, there := t.read(path.Join(dir, Kustomization))
	if !there {
		return nil
	}
	var k struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := decodeFile(path.Join(dir, Kustomization), data, &k); err != nil {
		return nil // the build reports the fault
	}
	return strings.Fields(k.Metadata.Annotations[CRDsAnnotation])
}

// CoversAllCRDs reports whether definitions are all CRD directories of the tree.
func (t *Tree) CoversAllCRDs(definitions []string) bool { return len(definitions) == len(t.plain) }

// AppliedAsIs reports whether an engine applies every manifest in the directory
// of a file, because the directory has no kustomization.
func AppliedAsIs(name string) bool {
	dir := path.Dir(name)
	if own, inside := strings.CutPrefix(dir, Clusters+"/"); inside {
		_, dir, _ = strings.Cut(own, "/")
		return dir == Installations
	}
	return dir == CRDs || strings.HasPrefix(dir, CRDs+"/") || dir == Installations || dir == Pieces || strings.HasPrefix(dir, Pieces+"/")
}

// Operator returns the operator, as "namespace/package", of a file below
// operators. Its directory is called "namespace.package", and lies in the
// directory of the piece if several operators share one. Kustomizations belong
// to no operator.
func Operator(name string) (key string, ok bool) {
	if !strings.HasPrefix(name, Operators+"/") || path.Base(name) == Kustomization {
		return "", false
	}
	ns, pkg, ok := strings.Cut(path.Base(path.Dir(name)), ".")
	return ns + "/" + pkg, ok
}

// FilterClusters returns a list of clusters reduced to the given names.
func FilterClusters(data []byte, names []string) ([]byte, error) {
	var all []map[string]any
	if err := decodeClusters(data, &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m map[string]any) bool {
		name, _ := m["cluster"].(string)
		return !slices.Contains(names, name)
	})
	return yamlnode.Marshal(all)
}

// decodeClusters decodes the list of clusters into a slice.
func decodeClusters(data []byte, into any) error {
	var said struct {
		List json.RawMessage `json:"list"`
	}
	if err := decodeFile(ClustersFile, slices.Concat([]byte("list:\n"), data), &said); err != nil {
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

// decodeFile decodes a file with one mapping, which may be untrusted.
func decodeFile(file string, data []byte, into any) error {
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
