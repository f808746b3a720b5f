package page

import (
	"fmt"
	"strings"
)

// Color is one color of the palette, as "#rrggbb".
type Color struct {
	Name        string // "dim": --dim in CSS
	Light, Dark string
}

// Palette returns the colors in the order of Colors: ground and soft are backgrounds of text,
// line and edge are only for lines (edge for the outlines of controls), all others are for
// text. Each color of text has a contrast of 4.5 or more on both backgrounds: WCAG 2 requires
// it for text of any size.
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

// Colors returns the palette as custom properties of CSS, light or dark according to the
// reader's system.
func Colors() string {
	return ":root { color-scheme: light dark;" + cssProperties(Color.light) + " }\n" +
		"@media (prefers-color-scheme: dark) { :root {" + cssProperties(Color.dark) + " } }\n"
}

// printColors returns the palette for printing, which is always light.
func printColors() string {
	return "@media print { :root { color-scheme: light;" + cssProperties(Color.light) + " } }\n"
}

func (c Color) light() string { return c.Light }
func (c Color) dark() string  { return c.Dark }

// cssProperties returns the custom properties, each after a blank.
func cssProperties(value func(Color) string) string {
	var b strings.Builder
	for _, c := range Palette() {
		fmt.Fprintf(&b, " --%s: %s;", c.Name, value(c))
	}
	return b.String()
}
