package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Measures in pixels.
const (
	maxNoteWidth = 468 // longer notes are wrapped, so that a phone shows the whole picture
	margin       = 12
	lineHeight   = 20 // height of a line of text
	rowGap       = 6  // between rows
	dotRadius    = 5
	nameOffset   = 16 // distance from the left edge of a dot to the name
	columnWidth  = 7  // distance between two columns
	indent       = 20
)

const pictureStyle = `.picture { background: var(--ground); }
.picture text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--text); white-space: pre; }
.picture .b { font-weight: 600; } .picture .d, .picture .w { font-weight: normal; } .picture .d { fill: var(--dim); } .picture .w { fill: var(--medium); }
.picture .ground { fill: var(--ground); }
.picture circle { fill: var(--ground); stroke: var(--dim); stroke-width: 1.5; } .picture .strong { fill: var(--way); stroke: var(--way); stroke-width: 4; } .picture .way { stroke: var(--way); stroke-width: 2.5; } .picture .faint { stroke-dasharray: 2 2; }
.picture path { fill: none; stroke: var(--dim); stroke-width: 1.5; stroke-linejoin: round; } .picture .on { stroke: var(--way); stroke-width: 2.5; }
.picture .dashed { stroke-dasharray: 7 4; } .picture .dotted { stroke-dasharray: 2 3; }
.picture .head { fill: var(--dim); stroke: none; } .picture .on.head { fill: var(--way); }
`

// SVG returns the picture as an SVG file, which is light or dark like the reader's system. The file contains
// fixed color values, because many image viewers do not support CSS custom properties.
func (p Picture) SVG() []byte {
	light, dark := pictureStyle, pictureStyle
	for _, c := range Palette() {
		light = strings.ReplaceAll(light, "var(--"+c.Name+")", c.Light)
		dark = strings.ReplaceAll(dark, "var(--"+c.Name+")", c.Dark)
	}
	return []byte(sanitize.Lines(p.draw("<style>\n"+light+"@media (prefers-color-scheme: dark) {\n"+dark+"}\n</style>\n") + "\n"))
}

// Page returns an HTML page with the picture and, collapsed, its content as text.
func (p Picture) Page(text string) ([]byte, error) {
	return Page{
		Title: p.Title, Body: pictureBody,
		Style: pictureStyle + ".picture { display: block; } .wide { overflow-x: auto; } summary { cursor: pointer; min-height: 24px; } details { margin-top: 1rem; }\n",
		Data: struct {
			Title, Text string
			Picture     template.HTML
		}{p.Title, text, template.HTML(p.draw(""))}, //nolint:gosec // draw escapes all text
	}.HTML()
}

const pictureBody = `<main>
<h1 class="unseen">{{.Title}}</h1>
<div class="wide" tabindex="0" role="region" aria-label="{{.Title}}">{{.Picture}}</div>
<details><summary>The same as text</summary>
<pre>{{.Text}}</pre></details>
</main>
`

// canvas is a picture that is being drawn.
type canvas struct {
	strings.Builder
	right, bottom int
}

// writeText writes a name and, after it, a note. If necessary, it wraps the note into several lines, but never
// the name.
func (c *canvas) writeText(x int, class, name, noteClass, note string) {
	name = sanitize.Truncate(sanitize.Line(name), maxText)
	fmt.Fprintf(c, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s", class, x, c.bottom+lineHeight-6, html.EscapeString(name))
	at := x + textWidth(name, class)
	first, rest := wrap(sanitize.Line(note), maxNoteWidth-margin-at-8, maxNoteWidth-margin-x)
	if first != "" {
		fmt.Fprintf(c, "<tspan class=\"%s\" dx=\"8\">%s</tspan>", noteClass, html.EscapeString(first))
		at += 8 + textWidth(first, noteClass)
	}
	c.WriteString("</text>\n")
	c.right, c.bottom = max(c.right, at), c.bottom+lineHeight
	for _, s := range rest {
		c.writeText(x, noteClass, s, "", "")
	}
}

func (c *canvas) endRow() { c.bottom += rowGap }

// wrap splits text into lines of at most width. It does not split words. The first result continues a line
// on which only the width first is left, and may be empty. The second result contains the other lines.
func wrap(text string, first, width int) (string, []string) {
	lines, room := []string{""}, first
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch longer := strings.TrimPrefix(*last+" "+word, " "); {
		case textWidth(longer, "") <= room, *last == "" && len(lines) > 1:
			*last = longer
		default:
			lines, room = append(lines, word), width
		}
	}
	return lines[0], lines[1:]
}

// point is the center of a dot.
type point struct{ x, y int }

// draw returns the picture as an svg element with the CSS style. If style is empty, the page's CSS applies.
func (p Picture) draw(style string) string {
	p = p.truncateRows()
	rails, columns, undrawn := p.rails()
	left := margin + columns*columnWidth
	if columns > 0 {
		left += 2 * columnWidth // space for arrows
	}
	c := canvas{bottom: margin}
	c.writeText(margin, "b", p.Title, "", "")
	c.endRow()
	points := make([]point, len(p.Rows))
	var above [maxDepth + 1]point // last dot of each depth
	for i, r := range p.Rows {
		depth := min(r.Depth, maxDepth)
		at := point{left + depth*indent + dotRadius, c.bottom + lineHeight/2}
		points[i], above[depth] = at, at
		if r.Style == Heading {
			first, rest := wrap(r.Text, maxNoteWidth-margin-left, maxNoteWidth-margin-left)
			for _, s := range append([]string{first}, rest...) {
				c.writeText(left, "b", s, "", "")
			}
			c.endRow()
			continue
		}
		if up := above[max(depth-1, 0)]; depth > 0 && r.Depth <= maxDepth {
			fmt.Fprintf(&c, "<path d=\"M%d %dV%dH%d\"/>\n", up.x, up.y+dotRadius, at.y, at.x-dotRadius)
		}
		fmt.Fprintf(&c, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"%d\"/>\n", [...]string{"plain", "", "strong", "way", "faint"}[r.Style], at.x, at.y, dotRadius)
		c.writeText(at.x-dotRadius+nameOffset, map[RowStyle]string{Strong: "b", Faint: "d"}[r.Style], r.Text, map[bool]string{false: "d", true: "w"}[r.Warn], r.Note)
		c.endRow()
	}
	for _, r := range rails {
		c.WriteString(r.svg(points, left))
	}
	for _, s := range p.legend(rails) {
		y := c.bottom + lineHeight/2
		c.WriteString(rail{Link: Link{Stroke: s}}.path(fmt.Sprintf("M%d %dh24", margin, y), margin+32, y))
		c.writeText(margin+40, "d", p.Legend[s], "", "")
	}
	for _, note := range p.notes(undrawn) {
		c.writeText(margin, "d", "", "d", note)
	}
	w, h := c.right+margin, c.bottom+margin
	head := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>%s</title>\n<desc>%s</desc>\n%s",
		w, h, w, h, html.EscapeString(sanitize.Line(p.Title)), html.EscapeString(sanitize.Line(p.Desc)), style)
	if style != "" { // a separate file has no page that paints its background
		head += fmt.Sprintf("<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", w, h)
	}
	return head + c.String() + "</svg>"
}

// svg returns the line as SVG paths. points are the centers of the dots, and left is the left edge
// of the rows.
func (r rail) svg(points []point, left int) string {
	x := left - 2*columnWidth - r.column*columnWidth
	leave, enter := -3, 3 // upwards: from the top of the source dots to the bottom of the target dot
	if !r.leadsUp() {
		leave, enter = enter, leave
	}
	var d strings.Builder
	for _, from := range r.from {
		fmt.Fprintf(&d, "M%d %dH%d", points[from].x-dotRadius+1, points[from].y+leave, x)
	}
	to := points[r.To]
	fmt.Fprintf(&d, "V%dH%d", to.y+enter, to.x-dotRadius-8)
	return r.path(d.String(), to.x-dotRadius, to.y+enter)
}

// path returns SVG paths: the line with the path data d, and an arrowhead to the right, with its tip at (x, y).
func (r rail) path(d string, x, y int) string {
	class := [...]string{"solid", "dashed", "dotted"}[r.Stroke]
	on := ""
	if r.OnPath {
		on = " on"
	}
	return fmt.Sprintf("<path class=\"%s%s\" d=\"%s\"/><path class=\"head%s\" d=\"M%d %dl-8 -4v8z\"/>\n", class, on, d, on, x, y)
}
