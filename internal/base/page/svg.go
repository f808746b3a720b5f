package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/quayside/quayside/internal/base/inert"
)

// The measures, in pixels.
const (
	widest = 1200 // picture
	margin = 16
	cell   = 8  // width of a letter of 13 pixels: 0.6 of that in fixed-width fonts
	row    = 26 // from row to row
	box    = 20
	pad    = 8 // at the sides of the text in a box
	track  = 7 // from column to column
	indent = 22
)

const pictureStyle = `.picture { background: var(--ground); }
.picture text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--text); white-space: pre; }
.picture .b { font-weight: 600; } .picture .d { fill: var(--dim); } .picture .w { fill: var(--medium); }
.picture rect { fill: var(--ground); stroke: var(--dim); } .picture .ground { stroke: none; }
.picture .strong { stroke: var(--way); stroke-width: 3; } .picture .way { stroke: var(--way); stroke-width: 2; } .picture .faint { fill: var(--soft); stroke-dasharray: 4 3; }
.picture path { fill: none; stroke: var(--dim); stroke-width: 1.5; stroke-linejoin: round; } .picture .on { stroke: var(--way); stroke-width: 2.5; }
.picture .dashed { stroke-dasharray: 7 4; } .picture .dotted { stroke-dasharray: 2 3; }
.picture .head { fill: var(--dim); stroke: none; } .picture .on.head { fill: var(--way); }
`

// SVG returns the picture as a separate file, light or dark according to the reader's system.
// Many image viewers support colors in CSS, but not custom properties.
func (p Picture) SVG() []byte {
	light, dark := pictureStyle, pictureStyle
	for _, c := range Palette() {
		light = strings.ReplaceAll(light, "var(--"+c.Name+")", c.Light)
		dark = strings.ReplaceAll(dark, "var(--"+c.Name+")", c.Dark)
	}
	return []byte(inert.Lines(p.draw("<style>\n"+light+"@media (prefers-color-scheme: dark) {\n"+dark+"}\n</style>\n") + "\n"))
}

// Page returns a page with the picture and, collapsed, its text version.
func (p Picture) Page(text string) ([]byte, error) {
	return Page{
		Title: p.Title, Body: body,
		Style: pictureStyle + ".picture { display: block; } .wide { overflow-x: auto; } summary { cursor: pointer; min-height: 24px; } details { margin-top: 1rem; }\n",
		Data: struct {
			Title, Text string
			Picture     template.HTML
		}{p.Title, text, template.HTML(p.draw(""))}, //nolint:gosec // draw escapes all text
	}.HTML()
}

const body = `<main>
<h1 class="unseen">{{.Title}}</h1>
<div class="wide" tabindex="0" role="region" aria-label="{{.Title}}">{{.Picture}}</div>
<details><summary>The same as text</summary>
<pre>{{.Text}}</pre></details>
</main>
`

// draw returns the picture as an svg element.
func (p Picture) draw(style string) string {
	p = p.bounded()
	rails, columns, undrawn := p.rails()
	left := margin + columns*track
	if columns > 0 {
		left += 2 * track // for arrows
	}
	var b strings.Builder
	right, bottom := left, margin
	text := func(x int, class, all string) {
		s := cutText(all, (widest-margin-x)/cell)
		fmt.Fprintf(&b, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, bottom+box-6, html.EscapeString(string(s)))
		right = max(right, x+textWidth(s)*cell)
	}
	text(margin, "b", p.Title)
	bottom += row
	first := bottom
	for _, r := range rails {
		b.WriteString(r.svg(first, left))
	}
	var lasts [maxDepth + 1]int // by depth, the y of the bottom of the last box
	for _, r := range p.Rows {
		depth := min(r.Depth, maxDepth)
		x, s := left+depth*indent, cutText(r.Text, maxText)
		w := textWidth(s)*cell + 2*pad
		if r.Look == Heading {
			text(x, "b", string(s))
			w = textWidth(s) * cell
		} else {
			if up := lasts[max(depth-1, 0)]; depth > 0 && r.Depth <= maxDepth {
				fmt.Fprintf(&b, "<path d=\"M%d %dV%dH%d\"/>\n", x-indent/2, up, bottom+box/2, x)
			}
			fmt.Fprintf(&b, "<g><title>%s</title><rect class=\"%s\" x=\"%d.5\" y=\"%d.5\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
				html.EscapeString(inert.Line(inert.Cut(r.Text+" "+r.Note, 2000))), [...]string{"plain", "", "strong", "way", "faint"}[r.Look], x, bottom, w-1, box-1)
			text(x+pad, "b", string(s))
			b.WriteString("</g>\n")
		}
		if r.Note != "" {
			text(x+w+cell, map[bool]string{false: "d", true: "w"}[r.Warn], r.Note)
		}
		lasts[depth] = bottom + box
		bottom += row
	}
	for _, s := range p.legend(rails) {
		b.WriteString(rail{Link: Link{Stroke: s}}.path(fmt.Sprintf("M%d %dh24", margin, bottom+box/2), margin+32, bottom+box/2))
		text(margin+40, "d", p.Legend[s])
		bottom += row
	}
	for _, note := range p.notes(undrawn) {
		text(margin, "d", note)
		bottom += row
	}
	w, h := right+margin, bottom+margin
	head := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>%s</title>\n<desc>%s</desc>\n%s",
		w, h, w, h, html.EscapeString(inert.Line(p.Title)), html.EscapeString(inert.Line(p.Desc)), style)
	if style != "" { // separate file: no page paints the ground
		head += fmt.Sprintf("<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", w, h)
	}
	return head + b.String() + "</svg>"
}

// svg returns the line, with the first row at a height and the boxes at a left edge.
func (r rail) svg(first, left int) string {
	x := left - 2*track - r.column*track
	leave, enter := -4, 4 // upwards: sources at the top of their boxes, the target at its bottom
	if !r.up() {
		leave, enter = enter, leave
	}
	middle := func(i int) int { return first + i*row + box/2 }
	var d strings.Builder
	for _, from := range r.from {
		fmt.Fprintf(&d, "M%d %dH%d", left, middle(from)+leave, x)
	}
	y := middle(r.To) + enter
	fmt.Fprintf(&d, "V%dH%d", y, left-8)
	return r.path(d.String(), left, y)
}

// path returns a line with an arrow to the right, ending at (x, y).
func (r rail) path(d string, x, y int) string {
	class := [...]string{"solid", "dashed", "dotted"}[r.Stroke]
	on := ""
	if r.Way {
		on = " on"
	}
	return fmt.Sprintf("<path class=\"%s%s\" d=\"%s\"/><path class=\"head%s\" d=\"M%d %dl-8 -4v8z\"/>\n", class, on, d, on, x, y)
}
