package render

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// writeClusters writes clusters.yaml, and a directory for each cluster that differs from the base.
func (t *tree) writeClusters() error {
	var members []profile.Member
	seen := map[string]bool{}
	if err := t.checkOverlays(); err != nil {
		return err
	}
	shared, parts := textSet{}, map[string][]file{}
	for _, v := range t.views {
		c := v.cluster
		if c.Name == "" || fileName(c.Name) != c.Name || seen[c.Name] {
			return fmt.Errorf("clusters: %q is not a unique name of lower-case letters, digits, \"-\" and \".\"", c.Name)
		}
		seen[c.Name] = true
		member := profile.MemberOf(c)
		if t.opt.hasEngine() {
			member = t.opt.profile.Member(*t.opt.GitOps, c)
		}
		members = append(members, member)
		if c.Prefix == "" {
			continue
		}
		part, known := parts[pieceSharingKey(c)]
		// Clusters with overlays cannot share results, because the paths of overlays contain the name of the
		// cluster.
		if own := len(c.Overlays) > 0; !known || own {
			var err error
			if part, err = v.ownFiles(); err != nil {
				return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			for i, f := range part {
				part[i].data = shared.intern(f.data)
			}
			if !own {
				parts[pieceSharingKey(c)] = part
			}
		}
		for _, f := range part {
			if err := t.files.Add(c.Prefix+f.name, f.data); err != nil {
				return err
			}
		}
	}
	list, err := yamlnode.Marshal(members)
	if err != nil {
		return err
	}
	if err := t.files.Add(layout.ClustersFile, list); err != nil {
		return err
	}
	if err := t.writeClusterCRDs(); err != nil {
		return err
	}
	return t.writeAllPieces()
}

// checkOverlays returns an error if a cluster has an overlay of an operator that the cluster does not get. Such
// an overlay would have no effect.
func (t *tree) checkOverlays() error {
	var faults diag.List
	for _, v := range t.views {
		c := v.cluster
		var known []string
		for _, in := range v.here {
			known = append(known, pieceName(in.pin))
		}
		for _, name := range c.Overlays {
			if strings.Contains(name, ".") && !slices.Contains(known, name) {
				at := diag.Pos{File: path.Join(cmp.Or(t.opt.OverlaysDir, layout.Overlays), c.Name, name)}
				faults.Add(at, diag.Hintf(at, "name the directory after an operator of the cluster, as <namespace>.<package>, or delete the directory",
					"overlay of an unknown operator: cluster %q has no operator %s%s", c.Name, name, diag.DidYouMean(name, known)))
			}
		}
	}
	return faults.Err()
}

// pathAbove returns the relative path from dir up to the root of the tree. dir is relative to the base or, if
// own is true, to a cluster's own directory.
func pathAbove(dir string, own bool) string {
	depth := strings.Count(dir, "/") + 1
	if own {
		depth += 2
	}
	return strings.Repeat("../", depth)
}

// pieceSharingKey returns a key for the settings that determine the pieces of a cluster. Clusters with equal
// keys and without overlays have equal pieces.
func pieceSharingKey(c profile.Cluster) string {
	return strconv.Itoa(max(len(c.Name), commonNameLength)) + c.Shared()
}

// commonNameLength is a length in bytes. The file names of patches are equal for all cluster names up to this
// length.
const commonNameLength = 24

// maxClusterFileName returns the maximum length of file names in a directory of a cluster.
func maxClusterFileName(c profile.Cluster, dir string) int {
	return maxFileName(path.Join(layout.Clusters, strings.Repeat("n", max(len(c.Name), commonNameLength)), dir))
}

// file is a file in a directory of the tree.
type file struct {
	name string
	data []byte
}

// textSet contains file contents that many clusters share, by digest.
type textSet map[[sha256.Size]byte][]byte

// intern returns the content in the set that equals data. If there is none, it adds data to the set and returns data.
func (t textSet) intern(data []byte) []byte {
	sum := sha256.Sum256(data)
	if _, held := t[sum]; !held {
		t[sum] = data
	}
	return t[sum]
}

// configurable is an object of the base that the config of a cluster can change.
type configurable struct {
	object Object // the object in the base
	file   string // name of the file with the patch
	target map[string]any
}

// writeAllPieces writes a directory all/ for each cluster, if clusters are applied as one unit each. The
// kustomization in all/ lists directories instead of files, so it changes only when an operator or a Namespace
// is added or removed.
func (t *tree) writeAllPieces() error {
	if !t.opt.byCluster() {
		return nil
	}
	written := map[string]bool{}
	for _, v := range t.views {
		c, prefix := v.cluster, v.cluster.Prefix
		if written[prefix] {
			continue
		}
		written[prefix] = true
		up := pathAbove(layout.All, prefix != "")
		var resources []string
		add := func(dir string) { resources = append(resources, v.relativeDir("../", up, dir)) }
		for _, ns := range v.neededNamespaces() {
			add(path.Join(layout.Namespaces, ns))
		}
		for _, p := range t.pieces {
			if p.containsAny(v.here) {
				add(p.dir())
			}
		}
		if slices.Contains(c.Overlays, layout.Resources) {
			resources = append(resources, up+path.Join(t.opt.overlaysDir(), c.Name, layout.Resources))
		}
		fields := annotatedKustomization(resources, nil)
		if slices.Contains(c.Overlays, "") {
			fields["components"] = k8s.Values(up + path.Join(t.opt.overlaysDir(), c.Name))
		}
		if err := t.files.Add(path.Join(prefix, layout.All, layout.Kustomization), encodeKustomization(fields)); err != nil {
			return err
		}
		if t.opt.hasEngine() {
			continue
		}
		if err := v.writeRoot(); err != nil {
			return err
		}
	}
	return nil
}

// writeClusterCRDs writes kustomizations of CRDs, if clusters are applied as one unit each. If every cluster
// gets all CRDs and a GitOps engine applies the CRDs, it writes no kustomization. Otherwise it writes a
// kustomization for each package. If some cluster gets only a part of the CRDs, it also writes a kustomization
// for each cluster.
func (t *tree) writeClusterCRDs() error {
	if !t.opt.byCluster() {
		return nil
	}
	packages := map[string][]string{} // files by package directory
	lacking := map[string][]string{}  // files that a cluster does not get, by cluster
	known := map[string][]string{}    // cache of lacking, by the cluster's operators
	for _, v := range t.views {
		operators := strings.Join(v.cluster.Operators, "\x00")
		files, seen := known[operators]
		if !seen {
			gets := v.crdFilter()
			for _, r := range t.objects {
				if k8s.IsCRD(r.Object) && !gets(r.Object) {
					files = append(files, r.Path)
				}
			}
			known[operators] = files
		}
		if len(files) > 0 {
			lacking[v.cluster.Name] = files
		}
	}
	if t.ownCRDs = len(lacking) > 0; !t.ownCRDs && t.opt.hasEngine() {
		return nil
	}
	for _, r := range t.objects {
		if dir, file := path.Split(r.Path); k8s.IsCRD(r.Object) {
			packages[dir] = append(packages[dir], file)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		slices.Sort(packages[dir])
		if err := t.writeKustomization(dir, packages[dir]); err != nil {
			return err
		}
	}
	if !t.ownCRDs {
		return nil
	}
	for _, c := range t.opt.Clusters {
		if err := t.writeChosenCRDs(path.Join(layout.Clusters, c.Name, layout.CRDs), packages, lacking[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

// writeChosenCRDs writes a kustomization of a cluster's CRDs to dir. If the cluster gets all CRDs of a package,
// the kustomization refers to the package's directory. Otherwise it refers to copies of single CRDs. lacking
// lists the files that the cluster does not get.
func (t *tree) writeChosenCRDs(dir string, packages map[string][]string, lacking []string) error {
	var whole, some []string
	for _, from := range slices.Sorted(maps.Keys(packages)) {
		files := slices.DeleteFunc(slices.Clone(packages[from]), func(file string) bool { return slices.Contains(lacking, from+file) })
		if len(files) == len(packages[from]) {
			whole = append(whole, path.Join("../../..", from))
			continue
		}
		for _, file := range files {
			data, _ := t.files.Get(from + file)
			file = fitName(maxFileName(dir), strings.TrimSuffix(file, extension))
			if err := t.files.Add(path.Join(dir, file), data); err != nil {
				return err
			}
			some = append(some, file)
		}
	}
	return t.writeKustomization(dir, slices.Concat(whole, some))
}

// inheritedObject is an object that an operator of a cluster ships, but that is rendered for another operator,
// which the cluster does not get. by is the first operator of the cluster that ships the object.
type inheritedObject struct {
	object Object
	by     *operator
}

// inheritedObjects returns the objects that installs ship, but that are rendered for an operator
// outside of installs. Each object is listed once, with the first install that ships it.
func inheritedObjects(installs []*operator) []inheritedObject {
	rendered := map[Key]bool{}
	for _, in := range installs {
		for _, o := range in.objects {
			rendered[o.Key()] = true
		}
	}
	var out []inheritedObject
	for _, in := range installs {
		for _, o := range in.sharedObjects {
			if !rendered[o.Key()] {
				rendered[o.Key()] = true
				out = append(out, inheritedObject{o, in})
			}
		}
	}
	return out
}

// isConfigurable reports whether the config of a cluster can change an object.
func isConfigurable(o Object) bool { return o.Is("apps", "Deployment") }

// configPatches returns the changes that a config makes to objects: a patch file for each changed object, and
// the entries of the kustomization that apply these files.
func configPatches(cfg config, of []configurable) (targets []any, files []file, err error) {
	for _, c := range of {
		want := cfg.applyToCopy(c.object)
		if err := cfg.checkMounts(diag.Pos{}, want); err != nil {
			return nil, nil, err
		}
		ops := appendPatch(nil, "", map[string]any(c.object), map[string]any(want))
		if len(ops) == 0 {
			continue
		}
		files, targets = append(files, file{c.file, yamlnode.Encode(ops)}), append(targets, map[string]any{"path": c.file, "target": c.target})
	}
	return targets, files, nil
}

// patchTarget returns the target of a kustomize patch that selects only this object.
func patchTarget(o Object) map[string]any {
	_, version, _ := strings.Cut(o.APIVersion(), "/")
	// kustomize treats the name as a regular expression: escape it.
	out := map[string]any{"group": o.Group(), "version": version, "kind": o.Kind(), "name": regexp.QuoteMeta(o.Name())}
	if o.Namespace() != "" {
		out["namespace"] = o.Namespace()
	}
	return out
}
