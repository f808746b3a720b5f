package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// view is the part of the tree that one cluster gets.
type view struct {
	*tree
	cluster profile.Cluster // with Prefix set
	chosen  []*operator     // operators of t.installs that the cluster gets
	here    []*operator     // chosen, and replaced operators whose leftover objects the cluster gets
	own     *view           // the objects of the cluster, if it has values of its own; otherwise nil
}

// makeViews returns a view for each cluster. Clusters with the same operators share the lists in their views.
func (t *tree) makeViews() ([]*view, error) {
	known := map[string]*view{}
	var out []*view
	for _, c := range t.opt.Clusters {
		c.Prefix = t.opt.prefix(c)
		key := strings.Join(c.Operators, "\x00")
		like, is := known[key]
		if !is {
			chosen, err := chosenOperators(c, t.installs)
			if err != nil {
				return nil, fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			leftover, err := chosenOperators(c, t.replaced)
			if err != nil {
				return nil, fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			like = &view{chosen: chosen, here: slices.Concat(chosen, leftover)}
			known[key] = like
		}
		out = append(out, &view{tree: t, cluster: c, chosen: like.chosen, here: like.here})
	}
	return out, nil
}

// chosenOperators returns the operators in list that are installed in cluster c.
func chosenOperators(c profile.Cluster, list []operator) ([]*operator, error) {
	var out []*operator
	for i := range list {
		ok, err := c.Gets(list[i].name())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, &list[i])
		}
	}
	return out, nil
}

// view returns the view of the named cluster, with the objects that were rendered with the cluster's own
// values.
func (t *tree) view(name string) (*view, error) {
	var names []string
	for _, v := range t.views {
		if v.cluster.Name == name {
			return cmp.Or(v.own, v), nil
		}
		names = append(names, v.cluster.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("no cluster %q (available: %s)", name, strings.Join(names, ", "))
}

// config returns the config of the cluster. Images in its environment variables are replaced with mirrors.
func (v *view) config() (config, error) {
	cfg, err := parseConfig(v.cluster.Config)
	mirrorValues(k8s.Items(cfg, "env"), v.opt.Mirrors)
	return cfg, err
}

// ownFiles returns the files for the cluster's own directories.
func (v *view) ownFiles() ([]file, error) {
	cfg, err := v.config()
	if err != nil {
		return nil, err
	}
	inherited := v.inheritedFiles(cfg)
	var out []file
	own := func(dir string, fields map[string]any, names []string, more []file) {
		var components []string
		// The Component for all pieces comes last, as when the whole cluster is built.
		for _, name := range append(names, "") {
			// The reporter gets only its own Component, because kustomize always builds the reporter separately.
			if slices.Contains(v.cluster.Overlays, name) && (name != "" || !v.opt.byCluster() && dir != layout.Reporter) {
				components = append(components, v.overlayPath(dir, name))
			}
		}
		if len(components) > 0 {
			fields["components"] = k8s.Values(components...)
		}
		_, patched := fields["patches"]
		same := k8s.Equal(fields["resources"], k8s.Values(pathAbove(dir, true)+dir))
		// If nothing differs, all/ refers to the directory of the base.
		if v.opt.byCluster() && dir != layout.Reporter && !patched && len(components) == 0 && same {
			return
		}
		for _, f := range append(more, file{layout.Kustomization, encodeKustomization(fields)}) {
			out = append(out, file{path.Join(dir, f.name), f.data})
		}
	}
	for _, ns := range v.neededNamespaces() {
		dir := path.Join(layout.Namespaces, ns)
		own(dir, map[string]any{"resources": k8s.Values(pathAbove(dir, true) + dir)}, nil, nil)
	}
	for _, p := range v.pieces {
		if !p.containsAny(v.here) {
			continue
		}
		more, targets, patches, err := inherited[p.name], []any(nil), []file(nil), error(nil)
		if v.own != nil {
			more, targets, patches, err = v.valueChanges(p, cfg)
		} else {
			targets, patches, err = configPatches(cfg, v.configurables(p, maxClusterFileName(v.cluster, p.dir())))
		}
		if err != nil {
			return nil, err
		}
		resources, without := v.pieceShare(p)
		for _, f := range more {
			resources = append(resources, f.name)
		}
		fields := map[string]any{"resources": k8s.Values(resources...)}
		if targets = append(without, targets...); len(targets) > 0 {
			fields["patches"] = targets
		}
		var names []string
		for _, in := range p.members {
			names = append(names, pieceName(in.pin))
		}
		own(p.dir(), fields, names, append(more, patches...))
	}
	// If the cluster is applied as one unit, all/ refers to the user's resources, so no separate directory is needed.
	if slices.Contains(v.cluster.Overlays, layout.Resources) && !v.opt.byCluster() {
		own(layout.Resources, map[string]any{"resources": k8s.Values(v.overlayPath(layout.Resources, layout.Resources))}, nil, nil)
	}
	if v.opt.Reporter == nil {
		return out, nil
	}
	own(layout.Reporter, map[string]any{"resources": k8s.Values(pathAbove(layout.Reporter, true) + layout.Reporter)}, []string{layout.Reporter}, nil)
	expected, err := cmp.Or(v.own, v).installations()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, in := range expected {
		files = append(files, installationFile(in))
		out = append(out, file{path.Join(layout.Installations, installationFile(in)), v.encodeDocuments(v.annotateAll(v.installationObjects(in)))})
	}
	if !v.opt.hasEngine() {
		out = append(out, file{path.Join(layout.Installations, layout.Kustomization), encodeKustomization(map[string]any{"resources": k8s.Values(files...)})})
	}
	return out, nil
}

// pieceShare returns the directories of a piece that the cluster gets, relative to the cluster's own directory
// of the piece. It also returns kustomize patches (without) that remove leftover objects of operators that the
// cluster never had.
func (v *view) pieceShare(p piece) (dirs []string, without []any) {
	up := pathAbove(p.dir(), true)
	whole := []string{up + p.dir()}
	for _, in := range p.members {
		switch {
		case slices.Contains(v.here, in):
			dirs = append(dirs, up+p.memberDir(in))
		case in.successor != "":
			for _, o := range in.objects {
				without = append(without, deletePatch(o))
			}
		}
	}
	switch {
	case len(dirs) == len(p.members):
		return whole, nil
	case slices.Contains(dirs, whole[0]): // the directory of the piece contains all leftover objects
		return whole, without
	}
	return dirs, nil
}

// overlayPath returns the relative path from a directory of the cluster to one of the user's overlays. The name
// "" stands for the overlay for all pieces.
func (v *view) overlayPath(dir, name string) string {
	return pathAbove(dir, true) + path.Join(v.opt.overlaysDir(), v.cluster.Name, name)
}

// configurables returns the objects of a piece that the config of the cluster can change, if the
// cluster gets their operator. limit is the maximum length of the patches' file names in bytes.
func (v *view) configurables(p piece, limit int) []configurable {
	var out []configurable
	for _, in := range p.members {
		if in.successor == "" && slices.Contains(v.here, in) {
			out = append(out, v.configurablesOf(p, in, limit)...)
		}
	}
	return out
}

func (v *view) configurablesOf(p piece, in *operator, limit int) []configurable {
	key := fmt.Sprintf("%s %d", in.name(), limit)
	if known, is := v.configurableCache[key]; is {
		return known
	}
	var out []configurable
	n := naming{maxLength: limit}
	if p.memberDir(in) == p.dir() { // the path of the patch contains namespace and package
		n.namespace, n.pkg = in.pin.Namespace, in.pin.Package
	}
	for _, o := range in.objects {
		if isConfigurable(o) {
			out = append(out, configurable{o, n.patchFile(o), patchTarget(o)})
		}
	}
	v.configurableCache[key] = out
	return out
}

// inheritedFiles returns a file for each of the inheritedObjects, grouped by the name of the piece. The objects
// include changes by the cluster's config.
func (v *view) inheritedFiles(cfg config) map[string][]file {
	out, all := map[string][]file{}, inheritedObjects(v.here)
	for _, p := range v.pieces {
		var objects []Object
		for _, o := range all {
			if slices.ContainsFunc(p.members, func(in *operator) bool { return in == o.by }) {
				objects = append(objects, o.object)
			}
		}
		names := fileNames(naming{maxLength: maxFileName(path.Join(layout.Clusters, strings.Repeat("n", 40), p.dir()))}, objects)
		for i, o := range objects {
			out[p.name] = append(out[p.name], file{names[i], yamlnode.Encode(v.annotate(cfg.applyToCopy(o)))})
		}
		slices.SortFunc(out[p.name], func(a, b file) int { return strings.Compare(a.name, b.name) })
	}
	return out
}

// writeRoot writes a kustomization of everything that the cluster gets, including CRDs and the
// reporter, for kubectl apply -k.
func (v *view) writeRoot() error {
	prefix, up := v.cluster.Prefix, ""
	if prefix != "" {
		up = "../../"
	}
	var resources []string
	for _, dir := range v.crdDirectories() {
		if own, is := strings.CutPrefix(dir, prefix); is {
			resources = append(resources, own)
			continue
		}
		resources = append(resources, up+dir)
	}
	resources = append(resources, layout.All)
	if v.opt.Reporter != nil {
		for _, dir := range []string{layout.Reporter, layout.Installations} {
			resources = append(resources, v.relativeDir("", up, dir))
		}
	}
	return v.writeKustomization(path.Join(".", prefix), resources)
}

// relativeDir returns the relative path to dir: in the cluster's own directory if dir exists there, otherwise
// in the base. near and up are the relative paths to these two directories.
func (v *view) relativeDir(near, up, dir string) string {
	if _, own := v.files.Get(path.Join(v.cluster.Prefix, dir, layout.Kustomization)); own && v.cluster.Prefix != "" {
		return near + dir
	}
	return up + dir
}

// crdDirectories returns the directories of the CRDs that the cluster gets. Each has a
// kustomization.
func (v *view) crdDirectories() []string {
	if own := path.Join(layout.Clusters, v.cluster.Name, layout.CRDs); v.ownCRDs {
		return []string{own}
	}
	dirs := map[string]bool{}
	for _, r := range v.objects {
		if k8s.IsCRD(r.Object) {
			dirs[path.Dir(r.Path)] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// crdFilter returns a function that reports whether the cluster gets a CRD of the tree. The cluster gets the CRDs
// of quayside itself and the CRDs that its operators ship. A shipped CRD may be rendered for another operator.
func (v *view) crdFilter() func(crd Object) bool {
	if !v.opt.byCluster() {
		return v.pieceCRDFilter()
	}
	names := map[string]bool{}
	for _, o := range v.sharedCRDs() {
		names[o.Name()] = true
	}
	for _, in := range v.chosen {
		for _, o := range in.crds {
			names[o.Name()] = true
		}
	}
	return func(crd Object) bool { return names[crd.Name()] }
}

// pieceCRDFilter is like crdFilter, for an engine that applies each piece separately. If a package
// provides one of the CRDs of a piece, the piece gets the whole directory of the package.
func (v *view) pieceCRDFilter() func(crd Object) bool {
	var dirs []string
	if v.opt.Reporter != nil {
		dirs = append(dirs, path.Join(layout.CRDs, sharedPackage))
	}
	for _, p := range v.pieces {
		if p.containsAny(v.here) {
			dirs = append(dirs, p.crds(v.crdDirs)...)
		}
	}
	return func(crd Object) bool { return slices.Contains(dirs, v.crdDirs[crd.Name()]) }
}

// installations returns the Installations of the cluster.
func (v *view) installations() ([]Installation, error) {
	cfg, err := v.config()
	if err != nil {
		return nil, err
	}
	return v.listInstallations(v.chosen, cfg.applyToCopy), nil
}

// neededNamespaces returns the rendered Namespaces that the cluster needs. The result contains:
//   - the install Namespaces of its operators
//   - declared Namespaces that its operators watch
//   - the declared Namespace of the reporter
//   - declared Namespaces in which no cluster installs an operator
func (v *view) neededNamespaces() []string {
	return slices.DeleteFunc(slices.Clone(v.namespaces), func(ns string) bool {
		_, declared := v.declared[ns]
		needs := func(in *operator) bool {
			return in.pin.Namespace == ns || declared && slices.Contains(in.pin.WatchNamespaces, ns)
		}
		free := declared && !slices.ContainsFunc(slices.Concat(v.installs, v.replaced), func(in operator) bool { return in.pin.Namespace == ns })
		reporter := declared && v.opt.Reporter != nil && v.opt.Reporter.Namespace == ns
		return !free && !reporter && !slices.ContainsFunc(v.here, needs)
	})
}
