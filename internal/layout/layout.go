// Package layout finds the files of each cluster in a rendered tree. It needs only the tree, not
// the workspace.
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

	CRDs          = "crds"          // one directory per package, without a kustomization
	Namespaces    = "namespaces"    // one directory per namespace
	Operators     = "operators"     // one directory per piece (usually an operator)
	Leaving       = "leaving"       // one directory per operator that is being uninstalled
	Reporter      = "reporter"      // the in-cluster reporter
	Installations = "installations" // Installation objects, without a kustomization
	Clusters      = "clusters"      // one directory for each cluster whose objects differ from the base
	All           = "all"           // kustomization of all pieces of a cluster
	Pieces        = "pieces"        // objects of the GitOps tool, one per piece, without a kustomization

	Inputs = "inputs" // data of clusters for the user's own ApplicationSet or ResourceSet, which reads all files

	Overlays  = "overlays"  // outside of the tree: the user's overlays
	Resources = "resources" // in Overlays and in the tree: the user's own objects
)

// CRDsAnnotation is an annotation on the kustomization of a piece, a directory that is built. Its value
// lists those directories below crds that contain CRDs of the piece, separated by spaces.
const CRDsAnnotation = "quayside.dev/crds"

// maxClusters limits the number of clusters in clusters.yaml, which may be untrusted.
const maxClusters = 100_000

// Cluster is an entry of clusters.yaml: a target cluster of the tree.
type Cluster struct {
	Name     string `json:"cluster"`
	Prefix   string `json:"prefix"`   // path prefix of the directories for this cluster
	Overlays bool   `json:"overlays"` // whether the user has overlays for it
}

// Tree is the layout of a tree.
type Tree struct {
	Clusters []Cluster // sorted by name; empty if quayside did not render the files

	builds map[string][]string // directories with a kustomization, by parent directory, sorted
	plain  []string            // directories below crds without a kustomization, sorted
	read   func(name string) ([]byte, bool)

	installations map[string][]string // file names by directory, sorted
}

// Read returns the layout of a tree. names yields the paths of its files. read returns the content of a file,
// or false if there is no such file. Read returns an error if clusters.yaml is invalid.
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
	data, ok := read(ClustersFile)
	if !ok {
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
			return nil, fmt.Errorf("%s: invalid entry: cluster %q with prefix %q", ClustersFile, c.Name, c.Prefix)
		}
	}
	slices.SortFunc(t.Clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return t, nil
}

// Cluster returns the entry with this name in clusters.yaml, and whether there is one.
func (t *Tree) Cluster(name string) (Cluster, bool) {
	i := slices.IndexFunc(t.Clusters, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		return Cluster{}, false
	}
	return t.Clusters[i], true
}

// Pieces returns the directories to build for a cluster, relative to the tree. Their builds contain all objects
// of the cluster except CRDs and Installations.
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

// parentDir returns the directory that contains the pieces of a cluster.
func parentDir(c Cluster) string { return path.Join(".", c.Prefix) }

// Installations returns the files with the Installations of a cluster, sorted. The directory of the cluster
// may contain a file of the same name, whose Installation has additional fields.
func (t *Tree) Installations(c Cluster) []string {
	var out []string
	for _, name := range t.installations[path.Join(c.Prefix, Installations)] {
		out = append(out, path.Join(Installations, name))
	}
	return out
}

// ClusterCRDDirs returns the directories with the CRDs of a cluster. If the CRDs have a kustomization, it
// returns only built, the directory of this kustomization. Otherwise it returns only plain, a sorted list
// of directories whose files are applied without a build.
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

// crdDirs returns the directories that the CRDsAnnotation of a piece lists.
func (t *Tree) crdDirs(dir string) []string {
	data, ok := t.read(path.Join(dir, Kustomization))
	if !ok {
		return nil
	}
	var k struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := decodeFile(path.Join(dir, Kustomization), data, &k); err != nil {
		return nil // the build of the piece reports this error
	}
	return strings.Fields(k.Metadata.Annotations[CRDsAnnotation])
}

// CoversAllCRDs reports whether crdDirs, a result of ClusterCRDDirs, contains all CRD directories
// of the tree.
func (t *Tree) CoversAllCRDs(crdDirs []string) bool { return len(crdDirs) == len(t.plain) }

// IsAppliedAsIs reports whether a GitOps tool applies a file without a build. The directory of such a file has
// no kustomization.
func IsAppliedAsIs(name string) bool {
	dir := path.Dir(name)
	if own, inside := strings.CutPrefix(dir, Clusters+"/"); inside {
		_, dir, _ = strings.Cut(own, "/")
		return dir == Installations
	}
	return dir == CRDs || strings.HasPrefix(dir, CRDs+"/") || dir == Installations || dir == Inputs || strings.HasPrefix(dir, Inputs+"/") || dir == Pieces || strings.HasPrefix(dir, Pieces+"/")
}

// Operator returns the operator of a file below operators as "namespace/package". The name of the file's
// directory is "namespace.package". If several operators share a piece, this directory is in the directory
// of the piece. ok is false for other files and for kustomizations.
func Operator(name string) (key string, ok bool) {
	if !strings.HasPrefix(name, Operators+"/") || path.Base(name) == Kustomization {
		return "", false
	}
	ns, pkg, ok := strings.Cut(path.Base(path.Dir(name)), ".")
	return ns + "/" + pkg, ok
}

// FilterClusters returns the content of clusters.yaml, reduced to the clusters with the given
// names.
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

// decodeClusters decodes clusters.yaml into the slice that into points to.
func decodeClusters(data []byte, into any) error {
	var document struct {
		List json.RawMessage `json:"list"`
	}
	if err := decodeFile(ClustersFile, slices.Concat([]byte("list:\n"), data), &document); err != nil {
		return err
	}
	if !bytes.HasPrefix(document.List, []byte("[")) {
		return fmt.Errorf("%s: expected a list", ClustersFile)
	}
	if err := json.Unmarshal(document.List, into); err != nil {
		return fmt.Errorf("%s: %w", ClustersFile, err)
	}
	return nil
}

// decodeFile decodes a YAML file that contains one mapping. The file may be untrusted.
func decodeFile(file string, data []byte, into any) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil {
		return err
	}
	if len(docs) != 1 {
		return fmt.Errorf("%s: expected one YAML document, got %d", file, len(docs))
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
