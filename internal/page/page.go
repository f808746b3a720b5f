// Package page is the frame of every HTML page that quayside makes: the head with
// its policy, the colours of light, dark and paper, and the way by which text
// reaches a page. A page is one file: it loads nothing, and a browser runs no script
// and applies no style in it but those that are named here by their hash, whatever
// else its text may hold.
//
// It knows nothing of what a page says. Start from [Page.HTML]; pictures, which have
// no frame, take their colours from [Colors].
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style stands in a file of its own
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/quayside/quayside/internal/inert"
)

// Page is what a page holds. All but Title and Data are written by the program: no
// text of anybody else may stand in them.
type Page struct {
	Title  string // as a text, not as HTML
	Body   string // template of html/template for what stands in the body
	Style  string // CSS that follows that of every page
	Script string // JavaScript that is run once the body is read; "" for none
	Data   any    // what Body is executed with
}

//go:embed page.css
var style string

// HTML returns the page. Whatever Data holds is escaped for the place where it
// stands, and shows nothing that is not seen ([inert.Lines]). An error is a fault of
// the template or of Data, not of any text in it.
func (p Page) HTML() ([]byte, error) {
	body, err := template.New("body").Parse(p.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the template of a page: %w", err)
	}
	var b bytes.Buffer
	p.head(&b)
	if err := body.Execute(&b, p.Data); err != nil {
		return nil, fmt.Errorf("writing a page: %w", err)
	}
	if p.Script != "" {
		fmt.Fprintf(&b, "<script>%s</script>\n", p.Script)
	}
	b.WriteString("</body>\n</html>\n")
	return []byte(inert.Lines(b.String())), nil
}

// head writes all that stands before the body.
func (p Page) head(b *bytes.Buffer) {
	css := "\n" + Colors() + paper() + style + p.Style
	policy := "default-src 'none'; style-src " + hash(css) + "; base-uri 'none'; form-action 'none'"
	if p.Script != "" {
		policy += "; script-src " + hash(p.Script)
	}
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(b, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n", policy)
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n", template.HTMLEscapeString(strings.TrimSpace(inert.Line(p.Title))), css)
}

// hash returns how a policy names what stands in an element.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
