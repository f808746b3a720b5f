package graph

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/page"
)

// newPicture returns one picture of the upgrade graphs of a package, one graph for each catalog.
func newPicture(graphs []Graph) page.Picture {
	p := page.Picture{Legend: []string{page.Solid: "replaces", page.Dashed: "skips", page.Dotted: "skipRange"}}
	var desc []string
	for _, g := range graphs {
		p.Title = g.Package + ": upgrade graph"
		for _, ch := range g.Channels {
			ch.draw(&p, g.Catalog)
		}
		p.Notes = append(p.Notes, g.notes...)
		desc = append(desc, fmt.Sprintf("%s of package %s in catalog %s.", diag.Count(len(g.Channels), "channel"), g.Package, g.Catalog))
	}
	p.Desc = strings.Join(desc, " ")
	return p
}

// draw adds the graph of a channel to p.
func (c Channel) draw(p *page.Picture, catalogName string) {
	p.Rows = append(p.Rows, page.Row{Style: page.Heading, Text: c.title() + ", catalog " + catalogName})
	at := map[string]int{}
	for _, n := range c.Nodes {
		at[n.Bundle] = len(p.Rows)
		p.Rows = append(p.Rows, n.row())
	}
	for _, e := range c.printedEdges() {
		stroke := map[catalog.Edge]page.Stroke{catalog.EdgeSkips: page.Dashed, catalog.EdgeSkipRange: page.Dotted}[e.Kind]
		p.Links = append(p.Links, page.Link{From: at[e.From], To: at[e.To], Stroke: stroke, OnPath: e.OnPath})
	}
}

// row returns a node as a table row with all its attributes.
func (n Node) row() page.Row {
	r := page.Row{Text: n.Bundle, Warn: n.Deprecated}
	switch {
	case n.Pinned:
		r.Style = page.Strong
	case n.OnPath:
		r.Style = page.OnPath
	case n.Skipped || n.Absent:
		r.Style = page.Faint
	}
	states := n.states()
	if n.Pinned {
		states = append([]string{"pinned"}, states...)
	}
	if n.SkipRange != "" {
		states = append(states, "skipRange "+n.SkipRange)
	}
	if n.MinKubeVersion != "" {
		states = append(states, "Kubernetes "+n.MinKubeVersion+"+")
	}
	r.Note = strings.Join(states, ", ")
	return r
}
