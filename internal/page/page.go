// Package page creates the HTML pages and SVG pictures of quayside. A page is a single file that loads nothing.
// Its content security policy permits only the script and style of the page, by their hashes.
//
// A picture is a list of rows, with lines between rows on the left side, like the graph of 'git log'. Rows are
// drawn in their order, and each line is in the first free column. The same rows result in the same bytes.
//
// Start from [Page.HTML] and [Picture.SVG]; both take their colors from [Colors].
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for page.css
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Page is the content of an HTML page. Only Title and Data may contain untrusted text.
type Page struct {
	Title  string // plain text
	Body   string // html/template for the content of the body
	Style  string // CSS, in addition to the CSS of every page
	Script string // JavaScript at the end of the body; empty: none
	Data   any    // data for the template
	Images bool   // the body has images with data: addresses
}

//go:embed page.css
var pageStyle string

// HTML returns the page. It escapes the text in Data, including invisible characters ([sanitize.Lines]). Only
// the template or the type of Data can cause an error, but not the text in Data.
func (p Page) HTML() ([]byte, error) {
	body, err := template.New("body").Parse(p.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the template of a page: %w", err)
	}
	var b bytes.Buffer
	p.writeHead(&b)
	if err := body.Execute(&b, p.Data); err != nil {
		return nil, fmt.Errorf("writing a page: %w", err)
	}
	if p.Script != "" {
		fmt.Fprintf(&b, "<script>%s</script>\n", p.Script)
	}
	b.WriteString("</body>\n</html>\n")
	return []byte(sanitize.Lines(b.String())), nil
}

// writeHead writes the document up to the start of the body.
func (p Page) writeHead(b *bytes.Buffer) {
	css := "\n" + Colors() + printColors() + pageStyle + p.Style
	policy := "default-src 'none'; style-src " + cspHash(css) + "; base-uri 'none'; form-action 'none'"
	if p.Images {
		policy += "; img-src data:"
	}
	if p.Script != "" {
		policy += "; script-src " + cspHash(p.Script)
	}
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(b, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n", policy)
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n", template.HTMLEscapeString(strings.TrimSpace(sanitize.Line(p.Title))), css)
}

// cspHash returns the source expression of a content security policy for an inline element.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
