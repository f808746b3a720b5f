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
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/overlay"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// share is the inputs for the objects of one cluster on a side.
type share struct {
	overlays []*overlay.Overlay // of its pieces, and of CRDs that are built; nil if there is no such cluster
	asIs     []string           // directories and files of the tree that it gets without a build
	all      bool               // it gets every CRD
	version  string             // Kubernetes version of the cluster
}

// key returns a key that is equal for equal shares, independent of their paths.
func (x share) key() string {
	key := fmt.Sprintf("%q %q", x.version, x.asIs)
	for _, o := range x.overlays {
		key += string(o.Digest[:])
	}
	return key
}

// equals reports whether two shares are equal, independent of their paths.
func (x share) equals(y share) bool { return x.key() == y.key() }

// group is a group of clusters that get the same objects, before and after.
type group struct {
	names         []string
	before, after share
}

// groups returns the clusters of the side after, grouped by their shares on both sides.
func (c *Comparison) groups() ([]group, error) {
	var out []group
	same := map[string][]int{} // by the key of the share after
	c.Before.overlays.ReuseFrom(c.After.overlays)
	for _, name := range c.After.clusters() {
		g := group{names: []string{name}}
		var err error
		if g.after, err = c.After.share(name); err != nil {
			return nil, c.After.wrapName(err)
		}
		if g.before, err = c.Before.share(name); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: compared without its overlay", name, c.Before.wrapName(err)))
			g.before = share{version: g.after.version}
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

// share returns the share of a cluster.
func (s *Side) share(name string) (share, error) {
	w := s.project.Settings
	x := share{version: w.KubernetesVersion}
	if i := slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == name }); i >= 0 {
		x.version = cmp.Or(w.Clusters[i].KubernetesVersion, x.version)
	}
	c, there := s.layout.Cluster(name)
	if !there {
		return x, nil
	}
	key := c.Prefix + " " + x.version
	if known, is := s.shares[key]; is {
		return known, nil
	}
	crds, built := s.layout.ClusterCRDDirs(c)
	x.asIs, x.all = slices.Concat(crds, s.layout.Installations(c)), s.layout.CoversAllCRDs(crds)
	dirs := s.layout.Pieces(c)
	if built != "" {
		dirs = append(dirs, built)
	}
	for _, dir := range dirs {
		o, err := s.overlays.Open(path.Join(s.out, dir))
		if err != nil {
			return x, diag.PrefixPositions(s.as, err)
		}
		x.overlays = append(x.overlays, o)
	}
	s.shares[key] = x
	return x, nil
}

// reports compares each group of clusters once, and the objects for engines. It leaves out
// groups without differences.
func (c *Comparison) reports(opt diff.CompareOptions) ([]diff.Part, error) {
	groups, err := c.groups()
	if err != nil {
		return nil, err
	}
	parts, err := c.groupReports(groups, opt)
	if err != nil {
		return nil, err
	}
	version := c.After.project.Settings.KubernetesVersion
	if len(groups) > 0 {
		version = groups[0].after.version
	}
	engine, err := c.engine(opt, version)
	return append(parts, engine...), err
}

func (c *Comparison) groupReports(groups []group, opt diff.CompareOptions) ([]diff.Part, error) {
	before, after, err := diff.Read(c.Before.source(groups), c.After.source(groups))
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		report, err := diff.Compare(before, after, opt)
		return []diff.Part{{Report: report}}, err
	}
	changed := !c.isEqualBeforeOverlays(before, after)
	grounds := [2]*ground{c.Before.ground(before), c.After.ground(after)}
	var parts []diff.Part
	for _, g := range groups {
		if !changed && g.before.equals(g.after) {
			continue
		}
		b, a, err := c.states(g, grounds[0], grounds[1])
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

// isEqualBeforeOverlays reports whether both sides are equal apart from the effect of overlays.
func (c *Comparison) isEqualBeforeOverlays(before, after diff.State) bool {
	definitions := func(s *Side) []diff.File {
		return slices.DeleteFunc(slices.Clone(s.manifests), func(f diff.File) bool { return !s.definition(f.Path) })
	}
	same := func(a, b diff.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) }
	return slices.EqualFunc(definitions(c.Before), definitions(c.After), same) &&
		slices.EqualFunc(before.Resources, after.Resources, func(a, b diff.Object) bool { return a.Path == b.Path && bytes.Equal(a.Raw, b.Raw) }) &&
		len(lockfile.Diff(&lockfile.File{Pins: before.Pins, Leaving: before.Leaving}, &lockfile.File{Pins: after.Pins, Leaving: after.Leaving})) == 0
}

// definition reports whether a file contains CRDs of the tree, which overlays do not change.
func (s *Side) definition(name string) bool {
	return strings.HasPrefix(name, s.shown(path.Join(s.out, layout.CRDs))+"/")
}

// states returns the states of a group, before and after. It compares a new cluster with
// the part of the base that the cluster gets.
func (c *Comparison) states(g group, before, after *ground) (b, a diff.State, err error) {
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
		b = baseSide(before.whole, a)
		b.KubernetesVersion = g.before.version
	}
	return b, a, nil
}

// baseSide limits base state s to the objects and operators of another state.
func baseSide(s, of diff.State) diff.State {
	there, operators := map[k8s.Key]bool{}, map[string]bool{}
	for _, o := range of.Objects {
		there[o.Key()], operators[o.Operator] = true, o.Operator != ""
	}
	s.Objects = slices.DeleteFunc(slices.Clone(s.Objects), func(o diff.Object) bool { return !there[o.Key()] && !operators[o.Operator] })
	return s.Keep(func(operator string) bool { return !slices.Contains(of.Dropped, operator) })
}

// state returns the state of a cluster: the base objects that its overlays do not change,
// and the results of the overlays.
func (c *Comparison) state(g *ground, x share) (diff.State, error) {
	l := g.layer(x.asIs)
	out := g.whole
	out.KubernetesVersion, out.Objects = x.version, slices.Clip(l.given)
	here := []map[string]bool{l.here}
	for _, o := range x.overlays {
		objects, by, err := c.objects(g, l, o)
		if err != nil {
			return out, err
		}
		out.Objects, here = append(out.Objects, objects...), append(here, by)
	}
	return out.Keep(func(operator string) bool {
		return !l.there[operator] || slices.ContainsFunc(here, func(by map[string]bool) bool { return by[operator] })
	}), nil
}

// objects returns the objects of an overlay, and their operators. It applies simple patches
// to the listed objects directly, and runs a kustomize build only if necessary.
func (c *Comparison) objects(g *ground, l *layer, o *overlay.Overlay) ([]diff.Object, map[string]bool, error) {
	x, err := g.listing(l, o)
	if err != nil {
		return nil, nil, err
	}
	objects, here := slices.Clone(x.objects), x.here
	simple := x.simple && g.side.edited(o, objects, x.at)
	if !simple {
		if objects, err = c.asBuilt(g.side, o, x.objects, x.at); err != nil {
			return nil, nil, err
		}
	}
	if !simple {
		here = operatorKeys(objects)
	}
	return objects, here, nil
}

// edited applies the patches of an overlay to the listed objects in place; at has their
// indexes. Each object keeps its operator. It returns false if a build does more than that;
// the list may then be partly changed.
func (s *Side) edited(o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) bool {
	edits, plain := o.Edits()
	if !plain || len(edits) == 0 {
		return plain
	}
	sources := s.sources(o)
	for _, e := range edits {
		i, there := at[e.Key]
		if !there {
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

// asBuilt returns the objects that kustomize builds from an overlay. It reuses the listed
// objects that the overlay does not change.
func (c *Comparison) asBuilt(s *Side, o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) ([]diff.Object, error) {
	built, err := c.build(o)
	if err != nil {
		return nil, diag.PrefixPositions(s.as, err)
	}
	var out []diff.Object
	sources := s.sources(o)
	for _, data := range built {
		object, err := diff.ParseBuilt(data, s.pins(), sources)
		if err != nil {
			return nil, err
		}
		if diff.Repeats(object.Content) {
			continue
		}
		if i, there := at[object.Key()]; there && reflect.DeepEqual(listed[i].Whole(), object.Content) {
			object = listed[i]
		}
		out = append(out, object)
	}
	return out, nil
}

// maxBuilt limits the number of cached builds. Each takes ten MB for a whole corpus of
// operators.
const maxBuilt = 8

// build builds an overlay, and caches the result by digest.
func (c *Comparison) build(o *overlay.Overlay) ([][]byte, error) {
	if built, ok := c.built[o.Digest]; ok {
		return built, nil
	}
	built, err := o.Build()
	if err == nil {
		if len(c.built) >= maxBuilt {
			clear(c.built)
		}
		c.built[o.Digest] = built
	}
	return built, err
}

// sources returns the files of an overlay that are not part of the base, the user's own
// before generated ones.
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
		f := diff.File{Path: s.shown(name), Data: files[name]}
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
		out = []diff.File{{Path: s.shown(o.File), Data: o.Data(o.File)}}
	}
	return out
}
