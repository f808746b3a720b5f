// Package page makes the HTML pages and SVG pictures of quayside. A page is one file: it
// loads nothing, and its content security policy allows only its own script and style, by
// their hashes.
//
// A picture is a list of rows with lines on their left side from row to row, as in the log of a
// repository. The index of a row is its position, and each line uses the first free column, so
// no layout is computed. The same rows give the same bytes.
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

// Page is the content of an HTML page. All fields except Title and Data must come from the
// program and contain no untrusted text.
type Page struct {
	Title  string // text, not HTML
	Body   string // content of the body, as a template of html/template
	Style  string // CSS in addition to that of every page
	Script string // JavaScript at the end of the body; "" for none
	Data   any    // data of the template
}

//go:embed page.css
var pageStyle string

// HTML returns the page. Text in Data is escaped for its context, and so are invisible
// characters ([sanitize.Lines]). Only the template or the type of Data can cause an error, not
// the text in Data.
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
