package graph

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/picture"
)

// drawing returns graphs of one package, one for each catalog that has it, as one picture.
func drawing(graphs []Graph) picture.Picture {
	p := picture.Picture{Legend: []string{picture.Solid: "replaces", picture.Dashed: "skips", picture.Dotted: "skipRange"}}
	var desc []string
	for _, g := range graphs {
		p.Title = g.Package + ": what can be upgraded to what"
		for _, ch := range g.Channels {
			ch.draw(&p, g.Catalog)
		}
		p.Notes = append(p.Notes, g.notes...)
		desc = append(desc, fmt.Sprintf("%s of package %s in catalog %s.", diag.Count(len(g.Channels), "channel"), g.Package, g.Catalog))
	}
	p.Desc = strings.Join(desc, " ")
	return p
}

// draw adds the channel to a picture.
func (c Channel) draw(p *picture.Picture, catalogName string) {
	p.Rows = append(p.Rows, picture.Row{Look: picture.Heading, Text: c.title() + ", catalog " + catalogName})
	at := map[string]int{}
	for _, n := range c.Nodes {
		at[n.Bundle] = len(p.Rows)
		p.Rows = append(p.Rows, n.row())
	}
	for _, e := range c.drawn() {
		stroke := map[catalog.Edge]picture.Stroke{catalog.EdgeSkips: picture.Dashed, catalog.EdgeSkipRange: picture.Dotted}[e.Kind]
		p.Links = append(p.Links, picture.Link{From: at[e.From], To: at[e.To], Stroke: stroke, Way: e.OnPath})
	}
}

// row returns the node as a row, with all that there is to say of it.
func (n Node) row() picture.Row {
	r := picture.Row{Text: n.Bundle, Warn: n.Deprecated}
	switch {
	case n.Pinned:
		r.Look = picture.Strong
	case n.OnPath:
		r.Look = picture.Way
	case n.Skipped || n.Absent:
		r.Look = picture.Faint
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
