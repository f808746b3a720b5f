package treeview

import (
	"strings"

	"github.com/quayside/quayside/internal/picture"
)

// Print returns the trees as "svg" or "html"; "" in any other format, which is none of
// this package's.
func (f Forest) Print(format string) ([]byte, error) {
	switch format {
	case "svg":
		return f.SVG(), nil
	case "html":
		return f.HTML()
	}
	return nil, nil
}

// HTML returns a page with the picture, as wide as the reader's window allows, and
// below it the same as lists.
func (f Forest) HTML() ([]byte, error) {
	var groups []htmlGroup
	for _, g := range f.groups {
		groups = append(groups, htmlGroup{g.title(), list(g.roots)})
	}
	return f.picture().Page(picture.Words{Title: "The same as lists", Body: lists, Style: "ul { padding-left: 1.3rem; } ", Data: groups})
}

// The lists as the template sees them.
type htmlGroup struct {
	Title string
	Roots []htmlNode
}

type htmlNode struct {
	Name, What string
	Children   []htmlNode
}

func list(nodes []*node) []htmlNode {
	var out []htmlNode
	for _, n := range nodes {
		var words []string
		for _, t := range n.told() {
			words = append(words, t.S)
		}
		out = append(out, htmlNode{n.key() + " " + n.Version, strings.Join(words, "; "), list(n.children)})
	}
	return out
}

const lists = `{{define "list"}}<ul>{{range .}}
<li><b>{{.Name}}</b>{{if .What}} <span class="dim">{{.What}}</span>{{end}}{{if .Children}}{{template "list" .Children}}{{end}}</li>{{end}}
</ul>{{end}}{{define "same"}}{{range .}}{{if .Title}}<h2>{{.Title}}</h2>
{{end}}{{template "list" .Roots}}
{{end}}{{end}}`
