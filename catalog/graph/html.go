package graph

import (
	"strings"

	"github.com/quayside/quayside/internal/picture"
)

// HTML returns graphs of one package, one for each catalog that has it, as a page:
// a picture, as wide as the reader's window allows, and below it the same as tables.
func HTML(graphs []Graph) ([]byte, error) {
	var all []htmlGraph
	for _, g := range graphs {
		g = g.drawn()
		of := htmlGraph{Catalog: g.Catalog}
		for _, ch := range g.Channels {
			of.Channels = append(of.Channels, ch.table())
		}
		all = append(all, of)
	}
	return pictureOf(graphs).Page(picture.Words{Title: "The same as tables", Body: tables, Style: tableStyle, Data: all})
}

const tableStyle = `table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td:first-child { min-width: 7rem; } `

// The tables as the template sees them.
type htmlGraph struct {
	Catalog  string
	Channels []htmlChannel
}

type htmlChannel struct {
	Title string
	Rows  []htmlRow
}

type htmlRow struct {
	Version, What string
	Names         []string // of the bundles that it stands for, where it is no single one
	From          []string
}

// table returns the channel as rows, head first.
func (c Channel) table() htmlChannel {
	out := htmlChannel{Title: c.title()}
	names := map[string]string{}
	for _, n := range c.Nodes {
		names[n.Bundle] = n.name()
	}
	from := map[string]map[string][]string{} // by node and kind
	for _, e := range c.Edges {
		if from[e.To] == nil {
			from[e.To] = map[string][]string{}
		}
		kind := string(e.Kind)
		from[e.To][kind] = append(from[e.To][kind], names[e.From])
	}
	for _, n := range c.ordered() {
		row := htmlRow{Version: n.name()}
		words := n.states()
		if n.members != nil {
			words = nil
			for _, m := range n.members {
				row.Names = append(row.Names, m.Bundle)
			}
			if w := n.what(); w != "versions" {
				words = []string{strings.TrimPrefix(w, "versions ")}
			}
		}
		if n.Deprecated {
			words = append(words, "deprecated")
		}
		if n.MinKubeVersion != "" {
			words = append(words, "Kubernetes "+n.MinKubeVersion+" or newer")
		}
		if n.OnPath && !n.Pinned && n.members == nil {
			words = append(words, "on the way")
		}
		row.What = strings.Join(words, ", ")
		for _, kind := range []string{"replaces", "skips", "skipRange"} {
			if all := from[n.Bundle][kind]; len(all) > 0 {
				row.From = append(row.From, kind+" "+some(all, 20))
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

const tables = `{{define "same"}}{{range .}}<h2>Catalog {{.Catalog}}</h2>
{{range .Channels}}<h3>Channel {{.Title}}</h3>
<table>
<thead><tr><th scope="col">Version</th><th scope="col">What it is</th><th scope="col">What it can be upgraded from</th></tr></thead>
<tbody>
{{range .Rows}}<tr><td>{{if .Names}}<details><summary>{{.Version}}</summary><span class="code">{{range .Names}}{{.}}
{{end}}</span></details>{{else}}{{.Version}}{{end}}</td><td>{{.What}}</td><td>{{range .From}}<p>{{.}}</p>{{end}}</td></tr>
{{end}}</tbody>
</table>
{{end}}{{end}}{{end}}`
