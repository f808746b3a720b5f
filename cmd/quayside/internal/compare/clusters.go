package compare

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// group is a set of clusters with equal inputs on the old side, and equal inputs on the new side.
type group struct {
	names         []string
	before, after fleet.Inputs
}

// groups returns the clusters of the new side. Clusters with the same inputs on both sides are in one group.
func (c *Comparison) groups() ([]group, error) {
	var out []group
	same := map[string][]int{} // indexes in out by the key of group.after
	c.Before.ReuseFrom(c.After.Tree)
	for _, name := range c.After.Clusters() {
		g := group{names: []string{name}}
		var err error
		if g.after, err = c.After.Inputs(name); err != nil {
			return nil, c.After.wrapName(err)
		}
		if g.before, err = c.Before.Inputs(name); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: compared without its overlay", name, c.Before.wrapName(err)))
			g.before = fleet.Inputs{Version: g.after.Version}
		}
		key := g.after.Key()
		i := slices.IndexFunc(same[key], func(i int) bool { return out[i].before.Equals(g.before) })
		if i < 0 {
			same[key], out = append(same[key], len(out)), append(out, g)
		} else {
			i = same[key][i]
			out[i].names = append(out[i].names, name)
		}
	}
	return out, nil
}

// compareParts compares the objects of each group of clusters, and then the objects for the GitOps engine. It
// omits groups without differences.
func (c *Comparison) compareParts(opt diff.CompareOptions) ([]diff.Part, error) {
	groups, err := c.groups()
	if err != nil {
		return nil, err
	}
	parts, err := c.compareGroups(groups, opt)
	if err != nil {
		return nil, err
	}
	version := c.After.Settings.KubernetesVersion
	if len(groups) > 0 {
		version = groups[0].after.Version
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
	bases := [2]*fleet.Base{c.Before.NewBase(before), c.After.NewBase(after)}
	var parts []diff.Part
	for _, g := range groups {
		if !changed && g.before.Equals(g.after) {
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
		version := groups[0].after.Version
		report, err := diff.Compare(diff.State{Name: before.Name, KubernetesVersion: version},
			diff.State{Name: after.Name, KubernetesVersion: version, Skipped: after.Skipped}, opt)
		return []diff.Part{{Report: report}}, err
	}
	return parts, nil
}

// isEqualBeforeOverlays reports whether both sides have the same objects, CRDs and operators before overlays
// are applied.
func (c *Comparison) isEqualBeforeOverlays(before, after diff.State) bool {
	definitions := func(s *Side) []diff.File {
		return slices.DeleteFunc(slices.Clone(s.Manifests), func(f diff.File) bool { return !s.IsCRDFile(f.Path) })
	}
	same := func(a, b diff.File) bool { return a.Path == b.Path && bytes.Equal(a.Data, b.Data) }
	return slices.EqualFunc(definitions(c.Before), definitions(c.After), same) &&
		slices.EqualFunc(before.Resources, after.Resources, func(a, b diff.Object) bool { return a.Path == b.Path && bytes.Equal(a.Raw, b.Raw) }) &&
		len(lockfile.Diff(&lockfile.File{Pins: before.Pins, Leaving: before.Leaving}, &lockfile.File{Pins: after.Pins, Leaving: after.Leaving})) == 0
}

// states returns the states of a group on both sides. A new cluster has no state on the old side. It is
// compared with the old side's tree without overlays, reduced to objects and operators that the new side has in
// the cluster.
func (c *Comparison) states(g group, before, after *fleet.Base) (b, a diff.State, err error) {
	if a, err = after.State(g.after); err != nil {
		return b, a, c.After.wrapName(err)
	}
	if g.before.Overlays != nil {
		b, err = before.State(g.before)
	}
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("cluster %s, before: %v: compared without its overlay", g.names[0], c.Before.wrapName(err)))
	}
	if err != nil || g.before.Overlays == nil {
		b = limitState(before.Start, a)
		b.KubernetesVersion = g.before.Version
	}
	return b, a, nil
}

// limitState returns s without the objects and operators that other does not have.
func limitState(s, other diff.State) diff.State {
	keys, operators := map[k8s.Key]bool{}, map[string]bool{}
	for _, o := range other.Objects {
		keys[o.Key()], operators[o.Operator] = true, o.Operator != ""
	}
	s.Objects = slices.DeleteFunc(slices.Clone(s.Objects), func(o diff.Object) bool { return !keys[o.Key()] && !operators[o.Operator] })
	return s.Keep(func(operator string) bool { return !slices.Contains(other.Dropped, operator) })
}
