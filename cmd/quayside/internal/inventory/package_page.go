package inventory

import (
	_ "embed" // for package.html
	"html/template"
	"slices"

	"github.com/quayside/quayside/internal/page"
	"github.com/quayside/quayside/internal/sanitize"
)

// Field is a named property of a package, with its values as texts.
type Field struct {
	Name   string
	Values []string
}

//go:embed package.html
var packageBody string

// card is a package on a page.
type card struct {
	Title    string
	Icon     template.URL // empty: none
	Fields   []Field
	Links    []Link // only to http and https
	Channels []ChannelDetails
}

// PackagePage returns an HTML page about packages. fields returns the fields of a package.
func PackagePage(packages []PackageDetails, fields func(*PackageDetails) []Field) ([]byte, error) {
	var cards []card
	for i := range packages {
		v := &packages[i]
		c := card{Title: v.Package.Package, Channels: v.Channels}
		for _, f := range fields(v) {
			last := len(c.Fields) - 1
			switch {
			case f.Name == "link" || f.Name == "package": // shown as links, and in the title
			case last >= 0 && c.Fields[last].Name == f.Name:
				c.Fields[last].Values = slices.Concat(c.Fields[last].Values, f.Values)
			default:
				c.Fields = append(c.Fields, f)
			}
		}
		if v.Content != nil {
			if icon := v.Content.Icon; icon != nil {
				c.Icon = template.URL("data:" + icon.MediaType + ";base64," + icon.Data)
			}
			for _, l := range v.Content.Links {
				if to := sanitize.URL(l.URL); to != "" {
					c.Links = append(c.Links, Link{l.Name, to})
				}
			}
		}
		cards = append(cards, c)
	}
	const style = `
.card header { display: flex; align-items: center; gap: 1rem; margin-bottom: 1rem; }
.card h1 { margin: 0; overflow-wrap: anywhere; }
.card img { flex: none; max-width: 8rem; max-height: 5rem; padding: .25rem; border-radius: .25rem; background: #fff; }
.card dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.5rem; margin: 0; }
.card dt { font-weight: bold; }
.card dd { margin: 0; overflow-wrap: anywhere; }
.card ul { margin: 0; padding-left: 1.2rem; }
.card dd ul { padding-left: 0; list-style: none; }
.card li { overflow-wrap: anywhere; }
.card dd li + li { margin-top: .2rem; }
@media (max-width: 40rem) {
.card dl { display: block; }
.card dd { margin-bottom: .6rem; }
}
`
	title := "package"
	if len(packages) > 0 {
		title = packages[0].Package.Package
	}
	return page.Page{Title: "quayside: " + title, Body: packageBody, Style: style, Images: true, Data: cards}.HTML()
}
