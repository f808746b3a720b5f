package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
)

// newest is the number of versions of a channel that are shown where none is pinned.
const newest = 30

// Print returns graphs of one package in a format: "text", "dot", "mermaid", "svg" or
// "html"; "" for any other, such as JSON. Unless all is set, they are made shorter by
// [Graph.Short].
func Print(format string, graphs []Graph, all bool) (string, error) {
	shown := make([]Graph, len(graphs))
	for i, g := range graphs {
		if shown[i] = g; !all {
			shown[i] = g.Short()
		}
	}
	joined := func(print func(Graph) string) string {
		var b strings.Builder
		for _, g := range shown {
			b.WriteString(print(g))
		}
		return b.String()
	}
	switch format {
	case "text":
		return joined(Graph.Text), nil
	case "dot":
		return joined(Graph.DOT), nil
	case "mermaid":
		return joined(Graph.Mermaid), nil
	case "svg":
		return string(drawing(shown).SVG()), nil
	case "html":
		page, err := drawing(shown).Page(joined(Graph.Text))
		return string(page), err
	default:
		return "", nil
	}
}

// Short returns the part of the graph that a person wants to see: with a pin, its
// channels with the versions from the pin up; without, the newest versions of every
// channel. Notes list what is left out. The graph itself is not changed.
func (g Graph) Short() Graph {
	out := Graph{Catalog: g.Catalog, Package: g.Package, Channels: []Channel{}}
	var others []string
	for _, ch := range g.Channels {
		if i := slices.IndexFunc(ch.Nodes, func(n Node) bool { return n.Pinned }); i >= 0 {
			pin := ch.Nodes[i]
			short := ch.only(func(_ int, n Node) bool { return n.OnPath || !n.Absent && !older(n, pin) })
			out.add(short, len(ch.Nodes), "below the pin")
		} else {
			others = append(others, ch.Name)
		}
	}
	if len(out.Channels) > 0 {
		if len(others) > 0 {
			out.notes = append(out.notes, fmt.Sprintf("%s without the pin (%s): not shown without --all", diag.Count(len(others), "channel"), some(others)))
		}
		return out
	}
	for _, ch := range g.Channels {
		out.add(ch.only(func(i int, _ Node) bool { return i < newest }), len(ch.Nodes), "more")
	}
	return out
}

// add adds a part of a channel, with a note on the versions that it lacks.
func (g *Graph) add(ch Channel, all int, which string) {
	g.Channels = append(g.Channels, ch)
	if n := all - len(ch.Nodes); n > 0 {
		g.notes = append(g.notes, fmt.Sprintf("%s %s in channel %s: not shown without --all", diag.Count(n, "version"), which, ch.Name))
	}
}

// only returns the channel with some of its nodes and the edges between them.
func (c Channel) only(keep func(int, Node) bool) Channel {
	out := c
	out.Nodes, out.Edges = []Node{}, []Edge{}
	kept := map[string]bool{}
	for i, n := range c.Nodes {
		if keep(i, n) {
			kept[n.Bundle] = true
			out.Nodes = append(out.Nodes, n)
		}
	}
	for _, e := range c.Edges {
		if kept[e.From] && kept[e.To] {
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// older reports whether a has a lower version than b, where both versions are known.
func older(a, b Node) bool {
	v, err := olm.ParseVersion(a.Version)
	w, err2 := olm.ParseVersion(b.Version)
	return err == nil && err2 == nil && v.Compare(w) < 0
}

// some returns names, a few of many.
func some(names []string) string {
	const few = 8
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
