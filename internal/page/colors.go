package page

import (
	"fmt"
	"strings"
)

// Color is one colour of the palette, as "#rrggbb".
type Color struct {
	Name        string // "dim": --dim in CSS
	Light, Dark string
}

// Palette returns the colours, in the order in which Colors writes them: ground
// and soft, on which text stands, line and edge, which draw lines alone, edge where
// one has to be seen to know what may be pressed, and those of text. Each of text can
// be read on both: the contrast is 4.5 or more, as WCAG 2 asks of text of any size.
func Palette() []Color {
	return []Color{
		{"ground", "#ffffff", "#0d1117"},
		{"soft", "#f6f8fa", "#161b22"},
		{"line", "#d0d7de", "#3d444d"},
		{"edge", "#818b98", "#656c76"},
		{"text", "#1f2328", "#e6edf3"},
		{"dim", "#57606a", "#9198a1"},
		{"way", "#0757ba", "#6cb6ff"},
		{"critical", "#a40e26", "#ff7b72"},
		{"high", "#bc1c29", "#ff7b72"},
		{"medium", "#835600", "#d29922"},
		{"low", "#0757ba", "#6cb6ff"},
		{"info", "#57606a", "#9198a1"},
		{"good", "#116329", "#3fb950"},
	}
}

// Colors returns the palette as custom properties of CSS, light or dark as the
// reader's system has it.
func Colors() string {
	return ":root { color-scheme: light dark;" + properties(Color.light) + " }\n" +
		"@media (prefers-color-scheme: dark) { :root {" + properties(Color.dark) + " } }\n"
}

// paper returns the palette for what is printed, which is light whatever the
// reader's system has.
func paper() string {
	return "@media print { :root { color-scheme: light;" + properties(Color.light) + " } }\n"
}

func (c Color) light() string { return c.Light }
func (c Color) dark() string  { return c.Dark }

// properties returns the custom properties, each with a blank before it.
func properties(of func(Color) string) string {
	var b strings.Builder
	for _, c := range Palette() {
		fmt.Fprintf(&b, " --%s: %s;", c.Name, of(c))
	}
	return b.String()
}
