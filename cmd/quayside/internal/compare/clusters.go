package compare

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// clusterInputs are the inputs for the objects of one cluster on a side.
type clusterInputs struct {
	overlays   []*overlay.Overlay // kustomizations of its pieces and CRDs; nil if the side has no such cluster
	asIs       []string           // directories and files of the tree that are applied without a build
	hasAllCRDs bool               // whether the cluster gets every CRD
	version    string             // Kubernetes version of the cluster
}

// key returns a key that is equal for equal inputs, independent of their paths.
func (x clusterInputs) key() string {
	key := fmt.Sprintf("%q %q", x.version, x.asIs)
	for _, o := range x.overlays {
		key += string(o.Digest[:])
	}
	return key
}

// equals reports whether the inputs are equal, independent of their paths.
func (x clusterInputs) equals(y clusterInputs) bool { return x.key() == y.key() }

// group is a group of clusters with the same inputs, both before and after.
type group struct {
	names         []string
	before, after clusterInputs
}

// groups returns the clusters of the side after, grouped by their inputs on both sides.
func (c *Comparison) groups() ([]group, error) {
	var out []group
	same := map[string][]int{} // indexes in out, by the key of group.after
	c.Before.overlays.ReuseFrom(c.After.overlays)
	for _, name := range c.After.clusters() {
		g := group{names: []string{name}}
		var err error
		if g.after, err = c.After.clusterInputs(name); err != nil {
			return nil, c.After.wrapName(err)
		}
		if g.before, err = c.Before.clusterInputs(name); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: compared without its overlay", name, c.Before.wrapName(err)))
			g.before = clusterInputs{version: g.after.version}
		}
		key := g.after.key()
		i := slices.IndexFunc(same[key], func(i int) bool { return out[i].before.equals(g.before) })
		if i < 0 {
			same[key], out = append(same[key], len(out)), append(out, g)
		} else {
			i = same[key][i]
			out[i].names = append(out[i].names, name)
		}
	}
	return out, nil
}

// clusterInputs returns the inputs of a cluster.
func (s *Side) clusterInputs(name string) (clusterInputs, error) {
	w := s.project.Settings
	x := clusterInputs{version: w.KubernetesVersion}
	if i := slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == name }); i >= 0 {
		x.version = cmp.Or(w.Clusters[i].KubernetesVersion, x.version)
	}
	c, found := s.layout.Cluster(name)
	if !found {
		return x, nil
	}
	key := c.Prefix + " " + x.version
	if known, is := s.inputs[key]; is {
		return known, nil
	}
	crds, built := s.layout.ClusterCRDDirs(c)
	x.asIs, x.hasAllCRDs = slices.Concat(crds, s.layout.Installations(c)), s.layout.CoversAllCRDs(crds)
	dirs := s.layout.Pieces(c)
	if built != "" {
		dirs = append(dirs, built)
	}
	for _, dir := range dirs {
		o, err := s.overlays.Open(path.Join(s.out, dir))
		if err != nil {
			return x, diag.PrefixPositions(s.prefix, err)
		}
		x.overlays = append(x.overlays, o)
	}
	s.inputs[key] = x
	return x, nil
}

// compareParts compares each group of clusters, and the objects for GitOps engines. It leaves out
// groups without differences.
func (c *Comparison) compareParts(opt diff.CompareOptions) ([]diff.Part, error) {
	groups, err := c.groups()
	if err != nil {
		return nil, err
	}
	parts, err := c.compareGroups(groups, opt)
	if err != nil {
		return nil, err
	}
	version := c.After.project.Settings.KubernetesVersion
	if len(groups) > 0 {
		version = groups[0].after.version
	}
	engine, err := c.compareEngine(opt, version)
	return append(parts, engine...), err
}

func (c *Comparison) compareGroups(groups []group, opt diff.CompareOptions) ([]diff.Part, error) {
	before, after, err := diff.Read(c.Before.source(groups), c.After.source(groups))
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		report, err := diff.Compare(before, after, opt)
		return []diff.Part{{Report: report}}, err
	}
	changed := !c.isEqualBeforeOverlays(before, after)
	bases := [2]*baseCache{c.Before.newBaseCache(before), c.After.newBaseCache(after)}
	var parts []diff.Part
	for _, g := range groups {
		if !changed && g.before.equals(g.after) {
			continue
		}
		b, a, err := c.states(g, bases[0], bases[1])
		if err != nil {
			return nil, err
		}
		report, err := diff.Compare(b, a, opt)
		if err != nil {
			return nil, err
		}
		parts = append(parts, diff.Part{Clusters: g.names, Report: report})
	}
	if len(parts) == 0 {
		version := groups[0].after.version
		report, err := diff.Compare(diff.State{Name: before.Name, KubernetesVersion: version},
			diff.State{Name: after.Name, KubernetesVersion: version, Skipped: after.Skipped}, opt)
		return []diff.Part{{Report: report}}, err
	}
	return parts, nil
}

// isEqualBeforeOverlays reports whether both sides have the same objects, CRDs and operators
// before overlays.
func (c *Comparison) isEqualBeforeOverlays(before, after diff.State) bool {
	definitions := func(s *Side) []diff.File {
		return slices.DeleteFunc(slices.Clone(s.manifests), func(f diff.File) bool { return !s.isCRDFile(f.Path) })
	}
	same := func(a, b diff.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) }
	return slices.EqualFunc(definitions(c.Before), definitions(c.After), same) &&
		slices.EqualFunc(before.Resources, after.Resources, func(a, b diff.Object) bool { return a.Path == b.Path && bytes.Equal(a.Raw, b.Raw) }) &&
		len(lockfile.Diff(&lockfile.File{Pins: before.Pins, Leaving: before.Leaving}, &lockfile.File{Pins: after.Pins, Leaving: after.Leaving})) == 0
}

// isCRDFile reports whether a file contains CRDs of the tree, which overlays do not change.
func (s *Side) isCRDFile(name string) bool {
	return strings.HasPrefix(name, s.displayPath(path.Join(s.out, layout.CRDs))+"/")
}

// states returns the states of a group, before and after. For a new cluster, the state before
// is the base, limited to the objects and operators that the cluster gets.
func (c *Comparison) states(g group, before, after *baseCache) (b, a diff.State, err error) {
	if a, err = c.state(after, g.after); err != nil {
		return b, a, c.After.wrapName(err)
	}
	if g.before.overlays != nil {
		b, err = c.state(before, g.before)
	}
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: compared without its overlay", g.names[0], c.Before.wrapName(err)))
	}
	if err != nil || g.before.overlays == nil {
		b = limitState(before.state, a)
		b.KubernetesVersion = g.before.version
	}
	return b, a, nil
}

// limitState returns s with only the objects and operators of another state.
func limitState(s, other diff.State) diff.State {
	keys, operators := map[k8s.Key]bool{}, map[string]bool{}
	for _, o := range other.Objects {
		keys[o.Key()], operators[o.Operator] = true, o.Operator != ""
	}
	s.Objects = slices.DeleteFunc(slices.Clone(s.Objects), func(o diff.Object) bool { return !keys[o.Key()] && !operators[o.Operator] })
	return s.Keep(func(operator string) bool { return !slices.Contains(other.Dropped, operator) })
}

// state returns the state of a cluster: the base objects that its overlays do not change,
// and the results of the overlays.
func (c *Comparison) state(g *baseCache, x clusterInputs) (diff.State, error) {
	l := g.layer(x.asIs)
	out := g.state
	out.KubernetesVersion, out.Objects = x.version, slices.Clip(l.direct)
	operators := []map[string]bool{l.directOperators}
	for _, o := range x.overlays {
		objects, by, err := c.objects(g, l, o)
		if err != nil {
			return out, err
		}
		out.Objects, operators = append(out.Objects, objects...), append(operators, by)
	}
	return out.Keep(func(operator string) bool {
		return !l.listableOperators[operator] || slices.ContainsFunc(operators, func(by map[string]bool) bool { return by[operator] })
	}), nil
}

// objects returns the objects of an overlay, and their operators as in operatorKeys. It applies
// simple patches directly, and runs a kustomize build only if necessary.
func (c *Comparison) objects(g *baseCache, l *layer, o *overlay.Overlay) ([]diff.Object, map[string]bool, error) {
	x, err := g.listing(l, o)
	if err != nil {
		return nil, nil, err
	}
	objects, operators := slices.Clone(x.objects), x.operators
	simple := x.simple && g.side.applyEdits(o, objects, x.indexes)
	if !simple {
		if objects, err = c.buildObjects(g.side, o, x.objects, x.indexes); err != nil {
			return nil, nil, err
		}
	}
	if !simple {
		operators = operatorKeys(objects)
	}
	return objects, operators, nil
}

// applyEdits applies the patches of an overlay to the listed objects in place. The map at has the
// index of each listed object. Patched objects keep their operator. It returns false if only a
// build can determine the result; some objects may then already be patched.
func (s *Side) applyEdits(o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) bool {
	edits, plain := o.Edits()
	if !plain || len(edits) == 0 {
		return plain
	}
	sources := s.sources(o)
	for _, e := range edits {
		i, found := at[e.Key]
		if !found {
			continue
		}
		whole := listed[i].Whole()
		content, ok := e.Apply(whole)
		if !ok {
			return false
		}
		if !reflect.DeepEqual(content, whole) {
			listed[i] = diff.NewBuilt(content, s.pins(), sources)
		}
	}
	return true
}

// buildObjects returns the objects that kustomize builds from an overlay. It reuses the listed
// objects that the overlay does not change.
func (c *Comparison) buildObjects(s *Side, o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) ([]diff.Object, error) {
	built, err := c.build(o)
	if err != nil {
		return nil, diag.PrefixPositions(s.prefix, err)
	}
	var out []diff.Object
	sources := s.sources(o)
	for _, data := range built {
		object, err := diff.ParseBuilt(data, s.pins(), sources)
		if err != nil {
			return nil, err
		}
		if diff.IsInstallation(object.Content) {
			continue
		}
		if i, there := at[object.Key()]; there && reflect.DeepEqual(listed[i].Whole(), object.Content) {
			object = listed[i]
		}
		out = append(out, object)
	}
	return out, nil
}

// maxCachedBuilds limits the number of cached builds. A build of hundreds of operators takes
// ten MB.
const maxCachedBuilds = 8

// build builds an overlay, and caches the result by digest.
func (c *Comparison) build(o *overlay.Overlay) ([][]byte, error) {
	if built, ok := c.built[o.Digest]; ok {
		return built, nil
	}
	built, err := o.Build()
	if err == nil {
		if len(c.built) >= maxCachedBuilds {
			clear(c.built)
		}
		c.built[o.Digest] = built
	}
	return built, err
}

// sources returns the files of an overlay that are not part of the base: the user's own files,
// then generated files.
func (s *Side) sources(o *overlay.Overlay) []diff.File {
	var names []string
	files := map[string][]byte{}
	for k := range o.Kustomizations() {
		if !s.isUserFile(k.File) && !strings.HasPrefix(k.File, path.Join(s.out, "clusters")+"/") {
			continue // part of the base, with all its references
		}
		for _, name := range k.Files() {
			names, files[name] = append(names, name), k.Data(name)
		}
	}
	slices.Sort(names)
	var out, generated []diff.File
	for _, name := range slices.Compact(names) {
		f := diff.File{Path: s.displayPath(name), Data: files[name]}
		switch {
		case name == o.File:
			out = append([]diff.File{f}, out...)
		case s.isUserFile(name):
			out = append(out, f)
		case strings.HasPrefix(name, path.Join(s.out, "clusters")+"/"):
			generated = append(generated, f)
		}
	}
	if out = append(out, generated...); len(out) == 0 {
		out = []diff.File{{Path: s.displayPath(o.File), Data: o.Data(o.File)}}
	}
	return out
}
