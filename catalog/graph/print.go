package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// newestShown is the number of versions that Short keeps in each channel if there is no pin.
const newestShown = 30

// Print renders graphs of one package in a format: "text", "dot", "mermaid", "svg" or "html". For
// other formats, such as "json", it returns "" and no error. Unless all is true, it shortens the
// graphs with [Graph.Short].
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
		return string(newPicture(shown).SVG()), nil
	case "html":
		page, err := newPicture(shown).Page(joined(Graph.Text))
		return string(page), err
	default:
		return "", nil
	}
}

// Short returns a copy of the graph with its most relevant part. If there is a pin, it keeps the
// pinned and newer versions of the channels that contain the pin. Otherwise it keeps the newest
// versions of every channel. Notes describe the omitted parts.
func (g Graph) Short() Graph {
	out := Graph{Catalog: g.Catalog, Package: g.Package, Channels: []Channel{}}
	var others []string
	for _, ch := range g.Channels {
		if i := slices.IndexFunc(ch.Nodes, func(n Node) bool { return n.Pinned }); i >= 0 {
			pin := ch.Nodes[i]
			short := ch.filterNodes(func(_ int, n Node) bool { return n.OnPath || !n.Absent && !isOlder(n, pin) })
			out.add(short, len(ch.Nodes), "below the pin")
		} else {
			others = append(others, ch.Name)
		}
	}
	if len(out.Channels) > 0 {
		if len(others) > 0 {
			out.notes = append(out.notes, fmt.Sprintf("%s without the pin (%s): not shown without --all", diag.Count(len(others), "channel"), diag.Some(others, 8)))
		}
		return out
	}
	for _, ch := range g.Channels {
		out.add(ch.filterNodes(func(i int, _ Node) bool { return i < newestShown }), len(ch.Nodes), "more")
	}
	return out
}

// add adds ch, a shortened channel, to g. If versions were omitted, it adds a note with the number of omitted
// versions. total is the number of versions before shortening. description describes the omitted versions,
// such as "below the pin".
func (g *Graph) add(ch Channel, total int, description string) {
	g.Channels = append(g.Channels, ch)
	if n := total - len(ch.Nodes); n > 0 {
		g.notes = append(g.notes, fmt.Sprintf("%s %s in channel %s: not shown without --all", diag.Count(n, "version"), description, ch.Name))
	}
}

// filterNodes returns a copy of the channel with the nodes for which keep returns true, and with
// the edges between them.
func (c Channel) filterNodes(keep func(int, Node) bool) Channel {
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

// isOlder reports whether the version of a is lower than the version of b. It returns false if either version
// is unknown.
func isOlder(a, b Node) bool {
	v, err := catalog.ParseVersion(a.Version)
	w, err2 := catalog.ParseVersion(b.Version)
	return err == nil && err2 == nil && v.Compare(w) < 0
}
