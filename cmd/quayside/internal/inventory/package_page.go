package inventory

import (
	_ "embed" // for package.html
	"html/template"

	"github.com/quayside/quayside/internal/page"
	"github.com/quayside/quayside/internal/sanitize"
)

// Field is a named property of a package, as text.
type Field struct{ Name, Value string }

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
			if f.Name != "link" {
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
.card img { float: right; max-width: 8rem; max-height: 6rem; margin: 0 0 1rem 1rem; background: #fff; }
.card th { text-align: left; vertical-align: top; white-space: nowrap; padding-right: 1rem; }
.card td { overflow-wrap: anywhere; }
`
	title := "package"
	if len(packages) > 0 {
		title = packages[0].Package.Package
	}
	return page.Page{Title: "quayside: " + title, Body: packageBody, Style: style, Images: true, Data: cards}.HTML()
}
