package picture

import (
	"fmt"
	"html"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/page"
)

// Style returns the CSS of pictures, whose colours are those of page.Colors.
func Style() string {
	return `.picture { background: var(--ground); }
.picture text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--text); white-space: pre; }
.picture .t { font-size: 16px; font-weight: 600; } .picture .b { font-weight: 600; } .picture .d { fill: var(--dim); } .picture .w { fill: var(--medium); }
.picture rect { fill: var(--ground); stroke: var(--dim); }
.picture .ground { stroke: none; } .picture .frame { fill: var(--soft); stroke: var(--line); }
.picture .strong { stroke: var(--way); stroke-width: 3; } .picture .way { stroke: var(--way); stroke-width: 2; } .picture .faint { fill: var(--soft); stroke-dasharray: 4 3; }
.picture path { fill: none; stroke: var(--dim); stroke-width: 1.5; stroke-linejoin: round; } .picture .on { stroke: var(--way); stroke-width: 2.5; }
.picture .dashed { stroke-dasharray: 7 4; } .picture .dotted { stroke-dasharray: 2 3; }
.picture .head { fill: var(--dim); stroke: none; } .picture .on.head { fill: var(--way); }
`
}

// SVG returns the picture as a file of its own, at most width pixels wide, which
// should not be less than 312. It is light or dark as the reader's system is.
func (p Picture) SVG(width int) []byte {
	return []byte(inert.Lines(p.layout(width-2*margin).svg(p, margin, "<style>\n"+alone()+"</style>\n") + "\n"))
}

// alone returns the style of a picture that stands alone, without custom
// properties: what shows pictures often knows no more of CSS than colours.
func alone() string {
	light, dark := Style(), Style()
	for _, c := range page.Palette() {
		light = strings.ReplaceAll(light, "var(--"+c.Name+")", c.Light)
		dark = strings.ReplaceAll(dark, "var(--"+c.Name+")", c.Dark)
	}
	return light + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n"
}

// Inline returns the picture for a page that has page.Colors and Style, once for
// each of Widths; the page shows the one that fits, by the classes of InlineStyle.
func (p Picture) Inline() string {
	var b strings.Builder
	for _, w := range Widths() {
		fmt.Fprintf(&b, "<div class=\"at%d\">%s</div>\n", w, p.layout(w).svg(p, 0, ""))
	}
	return b.String()
}

// InlineStyle returns the CSS by which a page shows one of the pictures of Inline.
func InlineStyle() string {
	return `.picture { display: block; max-width: 100%; height: auto; }
.at312, .at700 { display: none; }
@media (max-width: 1199.98px) { .at1140 { display: none; } .at700 { display: block; } }
@media (max-width: 739.98px) { .at700 { display: none; } .at312 { display: block; } }
`
}

// svg returns the picture with an empty margin around it.
func (s scene) svg(p Picture, margin int, style string) string {
	var b strings.Builder
	w, h := s.w+2*margin, s.h+2*margin
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"%d %d %d %d\">\n", w, h, -margin, -margin, w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n%s", escape(p.Title), escape(p.Desc), style)
	if style != "" { // alone, where nothing else paints what it stands on
		fmt.Fprintf(&b, "<rect class=\"ground\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", -margin, -margin, w, h)
	}
	for _, l := range s.lanes {
		fmt.Fprintf(&b, "<g><rect class=\"frame\"%s rx=\"6\"/>\n", l.within())
		for i, line := range l.title {
			fmt.Fprintf(&b, "%s\n", textAt(point{l.x + frame, l.y + frame - 4 + (i+1)*leading - 4}, "b", line))
		}
		b.WriteString("</g>\n")
		for _, k := range l.strokes {
			b.WriteString(k.svg())
		}
		for _, box := range l.boxes {
			b.WriteString(box.svg())
		}
	}
	for _, k := range s.keys {
		b.WriteString(k.svg())
	}
	b.WriteString("<g>\n")
	for _, l := range s.labels {
		fmt.Fprintf(&b, "%s\n", textAt(l.point, l.kind, l.s))
	}
	b.WriteString("</g>\n</svg>")
	return b.String()
}

// escape returns text of strangers for an element.
func escape(s string) string { return html.EscapeString(inert.Line(s)) }

// textAt returns a line of text that begins at a point.
func textAt(at point, class, s string) string {
	if class != "" {
		class = ` class="` + class + `"`
	}
	return fmt.Sprintf("<text%s x=\"%d\" y=\"%d\">%s</text>", class, at.x, at.y, escape(s))
}

// within returns the attributes of a rectangle whose lines, a pixel wide, are sharp.
func (r rect) within() string {
	return fmt.Sprintf(" x=\"%d.5\" y=\"%d.5\" width=\"%d\" height=\"%d\"", r.x, r.y, r.w-1, r.h-1)
}

func (l Look) class() string { return [...]string{"", "strong", "way", "faint"}[l] }

func (k Stroke) class() string { return [...]string{"", "dashed", "dotted"}[k] }

// class returns an attribute with those names that are not empty, or nothing.
func class(names ...string) string {
	var some []string
	for _, n := range names {
		if n != "" {
			some = append(some, n)
		}
	}
	if some == nil {
		return ""
	}
	return ` class="` + strings.Join(some, " ") + `"`
}

func (p placed) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<g><title>%s</title><rect%s%s rx=\"4\"/>", escape(inert.Cut(p.box.Name, 2000)), class(p.box.Look.class()), p.within())
	top := p.y + (p.h-len(p.lines)*leading)/2
	for i, t := range p.lines {
		kind := "d"
		switch {
		case i == 0:
			kind = "b"
		case t.Warn:
			kind = "w"
		}
		b.WriteString(textAt(point{p.x + padX, top + (i+1)*leading - 5}, kind, t.S))
	}
	b.WriteString("</g>\n")
	return b.String()
}

func (k stroke) svg() string {
	on := ""
	if k.link.Way {
		on = "on"
	}
	var d strings.Builder
	for _, piece := range k.pieces {
		for i, at := range piece {
			switch {
			case i == 0:
				fmt.Fprintf(&d, "M%d %d", at.x, at.y)
			case at.x == piece[i-1].x:
				fmt.Fprintf(&d, "V%d", at.y)
			default:
				fmt.Fprintf(&d, "H%d", at.x)
			}
		}
	}
	x, y := k.head.x, k.head.y
	head := fmt.Sprintf("M%d %dl-8 -4v8z", x, y)
	if k.down {
		head = fmt.Sprintf("M%d %dl-4 -8h8z", x, y)
	}
	return fmt.Sprintf("<path%s d=\"%s\"/><path%s d=\"%s\"/>\n", class(k.link.Stroke.class(), on), d.String(), class("head", on), head)
}

func (k placedKey) svg() string {
	if !k.key.Line {
		return fmt.Sprintf("<rect%s%s rx=\"3\"/>\n", class(k.key.Look.class()), k.within())
	}
	y := k.y + k.h/2
	s := stroke{link: Link{Stroke: k.key.Stroke}, pieces: [][]point{{{k.x, y}, {k.x + k.w, y}}}, head: point{k.x + k.w, y}}
	return s.svg()
}
