package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/picture"
)

// How much is drawn of what would have no end.
const (
	mostChannels = 100
	mostBoxes    = 2000
	width        = 1200 // of a picture that stands alone
)

// SVG returns graphs of one package, one for each catalog that has it, as one
// picture, 1,200 pixels wide.
func SVG(graphs []Graph) []byte { return pictureOf(graphs).SVG(width) }

// drawn returns the graph with no more in it than can be drawn; what is missing is
// said.
func (g Graph) drawn() Graph {
	out := g
	out.notes = slices.Clone(g.notes)
	if n := len(g.Channels) - mostChannels; n > 0 {
		out.Channels = g.Channels[:mostChannels]
		out.notes = append(out.notes, fmt.Sprintf("%s: too many to be drawn, all are told by -o json", diag.Count(n, "more channel")))
	}
	out.Channels = slices.Clone(out.Channels)
	boxes := 0
	for _, ch := range out.Channels {
		boxes += len(ch.Nodes)
	}
	if boxes <= mostBoxes {
		return out
	}
	for i, ch := range out.Channels {
		if n := mostBoxes / len(out.Channels); len(ch.Nodes) > n {
			f := folding{nodes: ch.ordered()}
			var runs [][2]int
			for j := range n - 1 {
				runs = append(runs, [2]int{j, j + 1})
			}
			out.Channels[i] = f.joined(ch, append(runs, [2]int{n - 1, len(f.nodes)}))
		}
	}
	out.notes = append(out.notes, "the oldest versions of large channels: too many to be drawn, all are told by -o json")
	return out
}

// pictureOf returns graphs of one package as one picture, which ends somewhere.
func pictureOf(graphs []Graph) picture.Picture {
	p := picture.Picture{Legend: []picture.Key{
		{Text: "pinned", Look: picture.Strong},
		{Text: "the way up", Look: picture.Way},
		{Text: "skipped, or not in the channel", Look: picture.Faint},
		{Text: "replaces", Line: true, Stroke: picture.Solid},
		{Text: "skips", Line: true, Stroke: picture.Dashed},
		{Text: "skipRange", Line: true, Stroke: picture.Dotted},
	}}
	var words []string
	for _, g := range graphs {
		g = g.drawn()
		p.Title = g.Package + ": what can be upgraded to what"
		group := picture.Group{Title: "Catalog " + g.Catalog}
		for _, ch := range g.Channels {
			group.Lanes = append(group.Lanes, ch.lane())
		}
		p.Groups = append(p.Groups, group)
		p.Notes = append(p.Notes, g.notes...)
		words = append(words, g.words())
	}
	p.Desc = strings.Join(words, " ")
	return p
}

// words returns in a sentence or two what the graph shows.
func (g Graph) words() string {
	text := []string{fmt.Sprintf("%s of package %s in catalog %s.", diag.Count(len(g.Channels), "channel"), g.Package, g.Catalog)}
	for _, ch := range g.Channels {
		pin, hops, head := "", 0, ""
		for _, n := range ch.Nodes {
			switch {
			case n.Pinned:
				pin = n.name()
			case n.OnPath:
				hops += n.count()
			}
			if n.Head {
				head = n.name()
			}
		}
		switch {
		case pin != "" && hops > 0:
			text = append(text, fmt.Sprintf("In channel %s, %s is pinned, and %s of upgrades remain; the head is %s.", ch.Name, pin, diag.Count(hops, "hop"), head))
		case pin != "" && pin != head:
			text = append(text, fmt.Sprintf("In channel %s, %s is pinned, from which nothing leads to the head, %s.", ch.Name, pin, head))
		case pin != "":
			text = append(text, fmt.Sprintf("In channel %s, the head %s is pinned.", ch.Name, pin))
		}
	}
	return strings.Join(text, " ")
}

// count returns how many versions the node stands for.
func (n Node) count() int { return max(1, len(n.members)) }

// title returns the name of the channel with what there is to say of it.
func (c Channel) title() string {
	return c.Name + when(c.Default, " (default)") + when(c.Deprecated, " (deprecated)")
}

// lane returns the channel with the oldest box first.
func (c Channel) lane() picture.Lane {
	l := picture.Lane{Title: c.title()}
	nodes := c.ordered()
	slices.Reverse(nodes)
	at := map[string]int{}
	kube := ""
	for i, n := range nodes {
		at[n.Bundle] = i
		l.Boxes = append(l.Boxes, n.box(n.MinKubeVersion != kube || n.Pinned || n.Head))
		kube = n.MinKubeVersion
	}
	for _, e := range c.Edges {
		l.Links = append(l.Links, picture.Link{From: at[e.From], To: at[e.To], Stroke: strokeOf(e.Kind), Way: e.OnPath, Label: string(e.Kind)})
	}
	return l
}

func strokeOf(kind catalog.Edge) picture.Stroke {
	switch kind {
	case catalog.EdgeSkips:
		return picture.Dashed
	case catalog.EdgeSkipRange:
		return picture.Dotted
	default:
		return picture.Solid
	}
}

// box returns the node as a box, with what it wants of Kubernetes where that is
// to be shown.
func (n Node) box(kube bool) picture.Box {
	b := picture.Box{Name: n.tooltip(), Lines: []picture.Text{{S: n.name()}}}
	if k := len(n.members); k > 0 {
		b.Lines = []picture.Text{
			{S: fmt.Sprintf("%d %s", k, n.what())},
			{S: n.members[k-1].name() + " … " + n.members[0].name()},
		}
	} else if words := n.states(); len(words) > 0 {
		b.Lines = append(b.Lines, picture.Text{S: strings.Join(words, ", ")})
	}
	if n.Deprecated {
		b.Lines = append(b.Lines, picture.Text{S: "deprecated", Warn: true})
	}
	if kube && n.MinKubeVersion != "" {
		b.Lines = append(b.Lines, picture.Text{S: "Kubernetes " + n.MinKubeVersion + "+"})
	}
	switch {
	case n.Pinned:
		b.Look = picture.Strong
	case n.OnPath:
		b.Look = picture.Way
	case n.Skipped || n.Absent:
		b.Look = picture.Faint
	}
	return b
}

// what returns what the versions are that the node stands for.
func (n Node) what() string {
	switch {
	case n.OnPath:
		return "hops"
	case n.Absent:
		return "not in the channel"
	case n.Skipped:
		return "versions skipped"
	default:
		return "versions"
	}
}

// states returns what there is to say of a single version.
func (n Node) states() []string {
	var out []string
	for _, s := range []struct {
		is   bool
		word string
	}{{n.Pinned, "pinned"}, {n.Head, "head"}, {n.Skipped, "skipped"}, {n.Absent, "not in the channel"}} {
		if s.is {
			out = append(out, s.word)
		}
	}
	return out
}

// tooltip returns the names of the bundles.
func (n Node) tooltip() string {
	if n.members == nil {
		return n.Bundle
	}
	var names []string
	for _, m := range n.members {
		names = append(names, m.Bundle)
	}
	return some(names, 20)
}
