package picture

import (
	"html/template"

	"github.com/quayside/quayside/internal/page"
)

// Words say what a picture shows to those who would rather read.
type Words struct {
	Title string // what opens them: "The same as tables"
	Body  string // a template of html/template that defines "same", and nothing outside of definitions
	Style string // CSS
	Data  any    // what "same" is executed with
}

// Page returns a page with the picture, as wide as the reader's window allows, and
// below it, folded, the words.
func (p Picture) Page(w Words) ([]byte, error) {
	return page.Page{
		Title: p.Title, Body: shown + w.Body,
		Style: Style() + InlineStyle() + w.Style + "summary { cursor: pointer; min-height: 24px; } main > details { margin-top: 1rem; }\n",
		Data: struct {
			Title, Desc string
			Picture     template.HTML
			Opens       string
			Same        any
		}{p.Title, p.Desc, template.HTML(p.Inline()), w.Title, w.Data}, //nolint:gosec // the picture escapes what it shows
	}.HTML()
}

const shown = `<main>
<h1 class="unseen">{{.Title}}</h1>
<p class="unseen">{{.Desc}}</p>
{{.Picture}}
<details><summary>{{.Opens}}</summary>
{{template "same" .Same}}</details>
</main>
`
