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

// prefix returns the path prefix of a cluster's pieces in the tree: "" if the cluster uses the
// base unchanged, otherwise the cluster's own directory. The result depends on settings only.
func (t *tree) prefix(c profile.Cluster) string {
	separate := len(t.opt.Clusters) > 1 && profile.NeedsSeparateDirs(t.opt.GitOps)
	if c.GetsAll() && !separate && slices.Contains([]string{"", "null", "{}"}, string(c.Config)) && len(c.Overlays) == 0 {
		return ""
	}
	return path.Join(layout.Clusters, c.Name) + "/"
}

// writeClusters writes the list of clusters, and the directories of clusters that differ from the
// base.
func (t *tree) writeClusters() error {
	var members []profile.Member
	seen := map[string]bool{}
	if err := t.checkOverlays(); err != nil {
		return err
	}
	shared, parts := textSet{}, map[string][]file{}
	for _, c := range t.opt.Clusters {
		if c.Name == "" || fileName(c.Name) != c.Name || seen[c.Name] {
			return fmt.Errorf("clusters: %q is not a unique name of lower-case letters, digits, \"-\" and \".\"", c.Name)
		}
		seen[c.Name] = true
		profiled := t.profileCluster(c)
		member := profile.MemberOf(profiled)
		if t.hasEngine() {
			member = t.opt.profile.Member(*t.opt.GitOps, profiled)
		}
		members = append(members, member)
		if profiled.Prefix == "" {
			continue
		}
		part, known := parts[pieceSharingKey(c)]
		// Paths of overlays contain the cluster's name, so clusters with overlays share nothing.
		if own := len(c.Overlays) > 0; !known || own {
			var err error
			if part, err = t.clusterFiles(c); err != nil {
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
			if err := t.files.Add(profiled.Prefix+f.name, f.data); err != nil {
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

// checkOverlays rejects overlays of operators that a cluster does not get, because these overlays
// would have no effect.
func (t *tree) checkOverlays() error {
	var faults diag.List
	for _, c := range t.opt.Clusters {
		here, err := t.operatorsIn(c)
		if err != nil {
			return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
		}
		var known []string
		for _, in := range here {
			known = append(known, pieceName(in.pin))
		}
		for _, name := range c.Overlays {
			if strings.Contains(name, ".") && !slices.Contains(known, name) {
				at := diag.Pos{File: path.Join(cmp.Or(t.opt.OverlaysDir, layout.Overlays), c.Name, name)}
				faults.Add(at, diag.Hintf(at, "rename the directory to <namespace>.<package> of an operator of the cluster, or delete it",
					"overlay of an unknown operator: cluster %q has no operator %s%s", c.Name, name, diag.DidYouMean(name, known)))
			}
		}
	}
	return faults.Err()
}

// profileCluster returns a cluster with its prefix set.
func (t *tree) profileCluster(c profile.Cluster) profile.Cluster {
	c.Prefix = t.prefix(c)
	return c
}

// byCluster reports whether all objects of a cluster are applied as one unit: either the workspace
// configures this, or the tool that applies the tree is unknown.
func (t *tree) byCluster() bool {
	return !profile.PerPiece(t.opt.profile, t.opt.GitOps)
}

// hasEngine reports whether the tree contains objects that make an engine apply it.
func (t *tree) hasEngine() bool { return t.opt.GitOps != nil && t.opt.profile.About().Kind != "" }

// clusterFiles returns the files in a cluster's own directories.
func (t *tree) clusterFiles(c profile.Cluster) ([]file, error) {
	cfg, err := t.config(c)
	if err != nil {
		return nil, err
	}
	here, err := t.operatorsIn(c)
	if err != nil {
		return nil, err
	}
	inherited := t.inheritedFiles(here, cfg)
	var out []file
	own := func(dir string, fields map[string]any, names []string, more []file) {
		var components []string
		// The Component for all pieces is the last one, as in a build of the whole cluster.
		for _, name := range append(names, "") {
			// The reporter gets only its own Component, because it is always built separately.
			if slices.Contains(c.Overlays, name) && (name != "" || !t.byCluster() && dir != layout.Reporter) {
				components = append(components, t.overlayPath(c, dir, name))
			}
		}
		if len(components) > 0 {
			fields["components"] = k8s.Values(components...)
		}
		_, patched := fields["patches"]
		same := k8s.Equal(fields["resources"], k8s.Values(pathAbove(dir, true)+dir))
		// Without changes, the list of all pieces refers to the directory of the base.
		if t.byCluster() && dir != layout.Reporter && !patched && len(components) == 0 && same {
			return
		}
		for _, f := range append(more, file{layout.Kustomization, encodeKustomization(fields)}) {
			out = append(out, file{path.Join(dir, f.name), f.data})
		}
	}
	for _, ns := range t.neededNamespaces(here) {
		dir := path.Join(layout.Namespaces, ns)
		own(dir, map[string]any{"resources": k8s.Values(pathAbove(dir, true) + dir)}, nil, nil)
	}
	for _, p := range t.pieces {
		if !p.containsAny(here) {
			continue
		}
		more := inherited[p.name]
		resources, without := t.pieceShare(p, here)
		for _, f := range more {
			resources = append(resources, f.name)
		}
		fields := map[string]any{"resources": k8s.Values(resources...)}
		targets, patches, err := configPatches(cfg, t.configurables(p, here, maxClusterFileName(c, p.dir())))
		if err != nil {
			return nil, err
		}
		if targets = append(without, targets...); len(targets) > 0 {
			fields["patches"] = targets
		}
		var names []string
		for _, in := range p.members {
			names = append(names, pieceName(in.pin))
		}
		own(p.dir(), fields, names, append(more, patches...))
	}
	// If the cluster is applied as one unit, the list of all pieces refers to the user's directory.
	if slices.Contains(c.Overlays, layout.Resources) && !t.byCluster() {
		own(layout.Resources, map[string]any{"resources": k8s.Values(t.overlayPath(c, layout.Resources, layout.Resources))}, nil, nil)
	}
	if t.opt.Reporter == nil {
		return out, nil
	}
	own(layout.Reporter, map[string]any{"resources": k8s.Values(pathAbove(layout.Reporter, true) + layout.Reporter)}, []string{layout.Reporter}, nil)
	expected, err := t.clusterInstallations(c)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, in := range expected {
		files = append(files, installationFile(in))
		out = append(out, file{path.Join(layout.Installations, installationFile(in)), encodeDocuments(t.annotateAll(t.installationObjects(in)))})
	}
	if !t.hasEngine() {
		out = append(out, file{path.Join(layout.Installations, layout.Kustomization), encodeKustomization(map[string]any{"resources": k8s.Values(files...)})})
	}
	return out, nil
}

// pieceShare returns the directories of a piece that a cluster gets, relative to the cluster's own
// directory of the piece. It also returns kustomize patches that remove the leftover objects of
// operators that the cluster never had.
func (t *tree) pieceShare(p piece, here []*operator) (dirs []string, without []any) {
	up := pathAbove(p.dir(), true)
	whole := []string{up + p.dir()}
	for _, in := range p.members {
		switch {
		case slices.Contains(here, in):
			dirs = append(dirs, up+p.memberDir(in))
		case in.successor != "":
			for _, o := range in.objects {
				removed := k8s.New(o.APIVersion(), o.Kind(), o.Namespace(), o.Name())
				removed["$patch"] = "delete"
				without = append(without, map[string]any{"patch": string(yamlnode.Encode(removed))})
			}
		}
	}
	switch {
	case len(dirs) == len(p.members):
		return whole, nil
	case slices.Contains(dirs, whole[0]): // it includes all leftover objects
		return whole, without
	}
	return dirs, nil
}

// pathAbove returns the relative path from a directory up to the root of the tree. If own is true,
// the directory is inside of a cluster's own directory.
func pathAbove(dir string, own bool) string {
	depth := strings.Count(dir, "/") + 1
	if own {
		depth += 2
	}
	return strings.Repeat("../", depth)
}

// overlayPath returns the relative path from the directory dir of a cluster to the user's overlay with
// the given name; "" is the overlay of all pieces.
func (t *tree) overlayPath(c profile.Cluster, dir, name string) string {
	return pathAbove(dir, true) + path.Join("..", layout.Overlays, c.Name, name)
}

// pieceSharingKey returns a key of all inputs of a cluster's pieces except the base and the user's
// overlays. Clusters with the same key and without overlays have the same pieces.
func pieceSharingKey(c profile.Cluster) string {
	return strconv.Itoa(max(len(c.Name), commonNameLength)) + c.Shared()
}

// commonNameLength is the length in bytes up to which cluster names do not affect the file names of
// patches.
const commonNameLength = 24

// maxClusterFileName returns the maximum length of file names in a cluster's own directory.
func maxClusterFileName(c profile.Cluster, dir string) int {
	return maxFileName(path.Join(layout.Clusters, strings.Repeat("n", max(len(c.Name), commonNameLength)), dir))
}

// file is a file below a directory of the tree.
type file struct {
	name string
	data []byte
}

// textSet is a set of file contents, which many clusters share.
type textSet map[[sha256.Size]byte][]byte

// intern returns the equal text in the set. If there is none, it adds and returns data.
func (t textSet) intern(data []byte) []byte {
	sum := sha256.Sum256(data)
	if _, held := t[sum]; !held {
		t[sum] = data
	}
	return t[sum]
}

// configurable is an object of the base that a cluster's config can change.
type configurable struct {
	object Object // object of the base
	file   string // file name of the patch
	target map[string]any
}

// configurables returns the configurable objects of the operators of a piece that a cluster gets. File
// names of patches have at most limit bytes.
func (t *tree) configurables(p piece, here []*operator, limit int) []configurable {
	var out []configurable
	for _, in := range p.members {
		if in.successor == "" && slices.Contains(here, in) {
			out = append(out, t.configurablesOf(p, in, limit)...)
		}
	}
	return out
}

func (t *tree) configurablesOf(p piece, in *operator, limit int) []configurable {
	key := fmt.Sprintf("%s %d", in.name(), limit)
	if known, is := t.configurableCache[key]; is {
		return known
	}
	var out []configurable
	n := naming{maxLength: limit}
	if p.memberDir(in) == p.dir() { // the path contains namespace and package
		n.namespace, n.pkg = in.pin.Namespace, in.pin.Package
	}
	for _, o := range in.objects {
		if isConfigurable(o) {
			out = append(out, configurable{o, n.patchFile(o), patchTarget(o)})
		}
	}
	t.configurableCache[key] = out
	return out
}

// inheritedFiles returns a file for each object of inheritedObjects, with the cluster's config, by the
// name of its piece.
func (t *tree) inheritedFiles(here []*operator, cfg config) map[string][]file {
	out, all := map[string][]file{}, inheritedObjects(here)
	for _, p := range t.pieces {
		var objects []Object
		for _, o := range all {
			if slices.ContainsFunc(p.members, func(in *operator) bool { return in == o.by }) {
				objects = append(objects, o.object)
			}
		}
		names := fileNames(naming{maxLength: maxFileName(path.Join(layout.Clusters, strings.Repeat("n", 40), p.dir()))}, objects)
		for i, o := range objects {
			out[p.name] = append(out[p.name], file{names[i], yamlnode.Encode(t.annotate(t.withClusterConfig(cfg, o)))})
		}
		slices.SortFunc(out[p.name], func(a, b file) int { return strings.Compare(a.name, b.name) })
	}
	return out
}

// writeAllPieces writes the list of all pieces of each cluster, if a cluster is applied as one
// unit. A list contains only directories, so that it changes only if an operator or a Namespace is
// added or removed.
func (t *tree) writeAllPieces() error {
	if !t.byCluster() {
		return nil
	}
	written := map[string]bool{}
	for _, c := range t.opt.Clusters {
		prefix := t.prefix(c)
		if written[prefix] {
			continue
		}
		written[prefix] = true
		here, err := t.operatorsIn(c)
		if err != nil {
			return err
		}
		up := pathAbove(layout.All, prefix != "")
		var resources []string
		add := func(dir string) { resources = append(resources, t.relativeDir(prefix, "../", up, dir)) }
		for _, ns := range t.neededNamespaces(here) {
			add(path.Join(layout.Namespaces, ns))
		}
		for _, p := range t.pieces {
			if p.containsAny(here) {
				add(p.dir())
			}
		}
		if slices.Contains(c.Overlays, layout.Resources) {
			resources = append(resources, up+path.Join("..", layout.Overlays, c.Name, layout.Resources))
		}
		fields := annotatedKustomization(resources, nil)
		if slices.Contains(c.Overlays, "") {
			fields["components"] = k8s.Values(up + path.Join("..", layout.Overlays, c.Name))
		}
		if err := t.files.Add(path.Join(prefix, layout.All, layout.Kustomization), encodeKustomization(fields)); err != nil {
			return err
		}
		if t.hasEngine() {
			continue
		}
		if err := t.writeClusterRoot(c); err != nil {
			return err
		}
	}
	return nil
}

// writeClusterRoot writes a kustomization with everything in a cluster, including CRDs and the
// reporter, for kubectl apply -k.
func (t *tree) writeClusterRoot(c profile.Cluster) error {
	prefix, up := t.prefix(c), ""
	if prefix != "" {
		up = "../../"
	}
	var resources []string
	for _, dir := range t.crdsOf(c) {
		if own, is := strings.CutPrefix(dir, prefix); is {
			resources = append(resources, own)
			continue
		}
		resources = append(resources, up+dir)
	}
	resources = append(resources, layout.All)
	if t.opt.Reporter != nil {
		for _, dir := range []string{layout.Reporter, layout.Installations} {
			resources = append(resources, t.relativeDir(prefix, "", up, dir))
		}
	}
	return t.writeKustomization(path.Join(".", prefix), resources)
}

// relativeDir returns the relative path to the cluster's own directory dir if it exists, or else to the
// directory dir of the base. near and up are the relative paths to their parents.
func (t *tree) relativeDir(prefix, near, up, dir string) string {
	if _, own := t.files.Get(path.Join(prefix, dir, layout.Kustomization)); own && prefix != "" {
		return near + dir
	}
	return up + dir
}

// crdsOf returns the directories of the CRDs that a cluster gets. Each has a kustomization.
func (t *tree) crdsOf(c profile.Cluster) []string {
	if own := path.Join(layout.Clusters, c.Name, layout.CRDs); t.ownCRDs {
		return []string{own}
	}
	dirs := map[string]bool{}
	for _, r := range t.objects {
		if k8s.IsCRD(r.Object) {
			dirs[path.Dir(r.Path)] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// crdFilter returns a function that reports whether a cluster gets a CRD of the tree. A cluster gets
// the CRDs that its operators ship, even if they are rendered for another operator, and the CRDs of
// quayside.
func (t *tree) crdFilter(c profile.Cluster) (func(crd Object) bool, error) {
	if !t.byCluster() {
		return t.pieceCRDFilter(c)
	}
	installs, err := t.chosenOperators(c)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, o := range t.sharedCRDs() {
		names[o.Name()] = true
	}
	for _, in := range installs {
		for _, o := range in.crds {
			names[o.Name()] = true
		}
	}
	return func(crd Object) bool { return names[crd.Name()] }, nil
}

// pieceCRDFilter is like crdFilter for an engine that applies each piece separately. If a package
// provides some of a piece's CRDs, the piece gets the whole directory of the package.
func (t *tree) pieceCRDFilter(c profile.Cluster) (func(crd Object) bool, error) {
	here, err := t.operatorsIn(c)
	if err != nil {
		return nil, err
	}
	var dirs []string
	if t.opt.Reporter != nil {
		dirs = append(dirs, path.Join(layout.CRDs, sharedPackage))
	}
	for _, p := range t.pieces {
		if p.containsAny(here) {
			dirs = append(dirs, t.pieceCRDs(p)...)
		}
	}
	return func(crd Object) bool { return slices.Contains(dirs, t.crdDirs[crd.Name()]) }, nil
}

// writeClusterCRDs writes the kustomizations of CRDs, if a cluster is applied as one unit. If some
// cluster gets only a part of the CRDs, every cluster gets its own kustomization, which refers to
// the kustomizations of packages. Without an engine, which could apply directories without a
// kustomization, all packages have one.
func (t *tree) writeClusterCRDs() error {
	if !t.byCluster() {
		return nil
	}
	packages := map[string][]string{} // directory → files
	lacking := map[string][]string{}  // cluster → files that it does not get
	known := map[string][]string{}    // operators → files that their clusters do not get
	for _, c := range t.opt.Clusters {
		operators := strings.Join(c.Operators, "\x00")
		files, seen := known[operators]
		if !seen {
			gets, err := t.crdFilter(c)
			if err != nil {
				return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			for _, r := range t.objects {
				if k8s.IsCRD(r.Object) && !gets(r.Object) {
					files = append(files, r.Path)
				}
			}
			known[operators] = files
		}
		if len(files) > 0 {
			lacking[c.Name] = files
		}
	}
	if t.ownCRDs = len(lacking) > 0; !t.ownCRDs && t.hasEngine() {
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

// writeChosenCRDs writes the kustomization of a cluster's CRDs to dir. It refers to a package if the
// cluster gets all its CRDs, and copies the single CRDs of other packages. lacking are the files that
// the cluster does not get.
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

// inheritedObject is an object that the base contains in the directory of an operator that a cluster
// does not get. by is the first operator of the cluster that ships the object.
type inheritedObject struct {
	object Object
	by     *operator
}

// inheritedObjects returns the objects that an install ships but that are rendered for none of the
// installs, each with the first install that ships it.
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

// chosenOperators returns the installs that a cluster gets.
func (t *tree) chosenOperators(c profile.Cluster) ([]*operator, error) {
	var out []*operator
	for i := range t.installs {
		ok, err := c.Gets(t.installs[i].name())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, &t.installs[i])
		}
	}
	return out, nil
}

// config returns the config of a cluster with images replaced by their mirrors.
func (t *tree) config(c profile.Cluster) (config, error) {
	cfg, err := parseConfig(c.Config)
	mirrorValues(k8s.Items(cfg, "env"), t.opt.Mirrors)
	return cfg, err
}

// withClusterConfig returns o with the config of a cluster. The result shares unchanged values with o.
func (t *tree) withClusterConfig(cfg config, o Object) Object {
	if !isConfigurable(o) {
		return o
	}
	return cfg.applyToCopy(o)
}

// isConfigurable reports whether a cluster's config can change an object.
func isConfigurable(o Object) bool { return o.Is("apps", "Deployment") }

// configPatches returns the changes that a cluster's config makes to objects: one patch file for
// each changed object, and the kustomization's entries for the patches.
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

// patchTarget returns the target of a kustomization's patch that selects exactly this object.
func patchTarget(o Object) map[string]any {
	_, version, _ := strings.Cut(o.APIVersion(), "/")
	// The name is a regular expression, in which a dot matches any character.
	out := map[string]any{"group": o.Group(), "version": version, "kind": o.Kind(), "name": regexp.QuoteMeta(o.Name())}
	if o.Namespace() != "" {
		out["namespace"] = o.Namespace()
	}
	return out
}
