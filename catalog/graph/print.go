package graph

import "strings"

// Print returns graphs of one package in a format: "text", "dot", "mermaid", "svg" or
// "html"; "" for any other, which is none of a person's. They are made shorter
// by [Graph.Short] but where all is wanted.
func Print(format string, graphs []Graph, all bool) (string, error) {
	shown := make([]Graph, len(graphs))
	for i, g := range graphs {
		if shown[i] = g; !all {
			shown[i] = g.Short()
		}
	}
	switch format {
	case "html":
		page, err := HTML(shown)
		return string(page), err
	case "svg":
		return string(SVG(shown)), nil
	}
	printer := map[string]func(Graph) string{
		"text": Graph.Text, "dot": Graph.DOT, "mermaid": Graph.Mermaid,
	}[format]
	if printer == nil {
		return "", nil
	}
	var b strings.Builder
	for _, g := range shown {
		b.WriteString(printer(g))
	}
	return b.String(), nil
}
