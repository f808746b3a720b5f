package state

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
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/workspace"
)

// share is what a cluster gets of a side.
type share struct {
	overlays []*overlay.Overlay // of its pieces, and where they are built of its definitions; none where there is no such cluster
	asIs     []string           // directories of the tree, and files, whose objects it gets as they are
	all      bool               // it gets every definition
	version  string             // of Kubernetes there
}

// key returns what shares have in common that are equal, wherever they lie.
func (x share) key() string {
	key := fmt.Sprintf("%q %q", x.version, x.asIs)
	for _, o := range x.overlays {
		key += string(o.Digest[:])
	}
	return key
}

// is reports whether two shares are equal, wherever they lie.
func (x share) is(y share) bool { return x.key() == y.key() }

// group is clusters that get the same, before and after.
type group struct {
	names         []string
	before, after share
}

// groups returns the clusters of the side after.
func (c *Comparison) groups() ([]group, error) {
	var out []group
	same := map[string][]int{}                         // by what the clusters get after
	if c.Before.files != nil && c.After.files != nil { // a directory without an index has no overlays
		c.Before.files.Like(c.After.files)
	}
	for _, name := range c.After.clusters {
		g := group{names: []string{name}}
		var err error
		if g.after, err = c.After.share(name); err != nil {
			return nil, c.After.named(err)
		}
		if g.before, err = c.Before.share(name); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: it is compared without what its overlay changed", name, c.Before.named(err)))
			g.before = share{version: g.after.version}
		}
		key := g.after.key()
		i := slices.IndexFunc(same[key], func(i int) bool { return out[i].before.is(g.before) })
		if i < 0 {
			same[key], out = append(same[key], len(out)), append(out, g)
		} else {
			i = same[key][i]
			out[i].names = append(out[i].names, name)
		}
	}
	return out, nil
}

// share finds what a cluster gets.
func (s *Side) share(name string) (share, error) {
	w := s.project.Settings
	x := share{version: w.KubernetesVersion}
	if i := slices.IndexFunc(w.Clusters, func(c workspace.Cluster) bool { return c.Name == name }); i >= 0 {
		x.version = cmp.Or(w.Clusters[i].KubernetesVersion, x.version)
	}
	if s.layout == nil { // a directory that quayside did not write
		return x, nil
	}
	c, there := s.layout.Cluster(name)
	if !there {
		return x, nil
	}
	key := c.Prefix + " " + x.version
	if known, is := s.shares[key]; is {
		return known, nil
	}
	crds, built := s.layout.Definitions(c)
	x.asIs, x.all = slices.Concat(crds, s.layout.Installations(c)), s.layout.Everything(crds)
	dirs := s.layout.Pieces(c)
	if built != "" {
		dirs = append(dirs, built)
	}
	for _, dir := range dirs {
		o, err := s.files.Open(path.Join(s.out, dir))
		if err != nil {
			return x, diag.Below(s.as, err)
		}
		x.overlays = append(x.overlays, o)
	}
	s.shares[key] = x
	return x, nil
}

// reports compares what the clusters get, each group once. A group for which
// nothing differs is left out.
func (c *Comparison) reports(opt diff.Options) ([]diff.Part, error) {
	groups, err := c.groups()
	if err != nil {
		return nil, err
	}
	before, after, err := diff.Read(c.Before.source(groups), c.After.source(groups))
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		report, err := diff.Compare(before, after, opt)
		return []diff.Part{{Report: report}}, err
	}
	changed := !c.alike(before, after)
	grounds := [2]*ground{c.Before.ground(before), c.After.ground(after)}
	var parts []diff.Part
	for _, g := range groups {
		if !changed && g.before.is(g.after) {
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

// alike reports whether everything is the same on both sides but what overlays
// make of it.
func (c *Comparison) alike(before, after diff.State) bool {
	definitions := func(s *Side) []diff.File {
		return slices.DeleteFunc(slices.Clone(s.tree), func(f diff.File) bool { return !s.definition(f.Path) })
	}
	same := func(a, b diff.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) }
	return slices.EqualFunc(definitions(&c.Before), definitions(&c.After), same) &&
		slices.EqualFunc(before.Resources, after.Resources, func(a, b diff.Object) bool { return a.Path == b.Path && bytes.Equal(a.Raw, b.Raw) }) &&
		len(lockfile.Diff(&lockfile.File{Pins: before.Pins, Leaving: before.Leaving}, &lockfile.File{Pins: after.Pins, Leaving: after.Leaving})) == 0
}

// definition reports whether a file is a definition of the tree, which no overlay
// changes.
func (s *Side) definition(name string) bool {
	return strings.HasPrefix(name, path.Join(s.as, s.out, "crds")+"/")
}

// states returns what a group gets, before and after. What is new is compared
// with the base of what it gets.
func (c *Comparison) states(g group, before, after *ground) (b, a diff.State, err error) {
	if a, err = c.state(after, g.after); err != nil {
		return b, a, c.After.named(err)
	}
	if g.before.overlays != nil {
		b, err = c.state(before, g.before)
	}
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: it is compared without what its overlay changed", g.names[0], c.Before.named(err)))
	}
	if err != nil || g.before.overlays == nil {
		b = base(before.whole, a)
		b.KubernetesVersion = g.before.version
	}
	return b, a, nil
}

// base returns what a cluster that gets of would have got of a base.
func base(s, of diff.State) diff.State {
	there, operators := map[kobj.Key]bool{}, map[string]bool{}
	for _, o := range of.Objects {
		there[o.Key()], operators[o.Operator] = true, o.Operator != ""
	}
	s.Objects = slices.DeleteFunc(slices.Clone(s.Objects), func(o diff.Object) bool { return !there[o.Key()] && !operators[o.Operator] })
	return s.Keep(func(operator string) bool { return !slices.Contains(of.Dropped, operator) })
}

// state returns what a cluster gets: of the objects of the base those that its
// overlays leave as they are, and what they make of the others.
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

// objects returns what an overlay brings, and its operators: what it lists where that
// is all, what its patches make of that where they are as easily told, else what
// kustomize builds.
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
		here = operators(objects)
	}
	return objects, here, nil
}

// edited puts in their place, which is at their key, what the patches of an overlay
// make of the objects that it lists, each of the operator that it was of. It reports
// whether that is all that a build does; where it is not, what is listed may be half
// done.
func (s *Side) edited(o *overlay.Overlay, listed []diff.Object, at map[kobj.Key]int) bool {
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
			listed[i] = diff.Made(content, s.pins(), sources)
		}
	}
	return true
}

// asBuilt returns what kustomize builds of an overlay: of what it leaves as it is,
// the objects that are listed.
func (c *Comparison) asBuilt(s *Side, o *overlay.Overlay, listed []diff.Object, at map[kobj.Key]int) ([]diff.Object, error) {
	built, err := c.build(o)
	if err != nil {
		return nil, diag.Below(s.as, err)
	}
	var out []diff.Object
	sources := s.sources(o)
	for _, data := range built {
		object, err := diff.Built(data, s.pins(), sources)
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

// maxBuilt bounds how many builds are kept for whoever asks for the same again: of
// a whole corpus of operators each takes ten MB.
const maxBuilt = 8

// build builds an overlay, equal ones once where they follow each other.
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

// sources returns the files of an overlay that are not the base's, the user's own
// before those that are generated.
func (s *Side) sources(o *overlay.Overlay) []diff.File {
	var names []string
	files := map[string][]byte{}
	for k := range o.Kustomizations() {
		if !s.theirs(k.File) && !strings.HasPrefix(k.File, path.Join(s.out, "clusters")+"/") {
			continue // the base's, and so is all that it refers to
		}
		for _, name := range k.Files() {
			names, files[name] = append(names, name), k.Data(name)
		}
	}
	slices.Sort(names)
	var out, generated []diff.File
	for _, name := range slices.Compact(names) {
		f := diff.File{Path: path.Join(s.as, name), Data: files[name]}
		switch {
		case name == o.File:
			out = append([]diff.File{f}, out...)
		case s.theirs(name):
			out = append(out, f)
		case strings.HasPrefix(name, path.Join(s.out, "clusters")+"/"):
			generated = append(generated, f)
		}
	}
	if out = append(out, generated...); len(out) == 0 {
		out = []diff.File{{Path: path.Join(s.as, o.File), Data: o.Data(o.File)}}
	}
	return out
}
