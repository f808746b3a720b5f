package page

import (
	"fmt"
	"strings"
)

// Color is a color of the palette. The values have the form "#rrggbb".
type Color struct {
	Name        string // name without dashes: "dim" is --dim in CSS
	Light, Dark string
}

// Palette returns the colors, in the order of Colors. ground and soft are backgrounds. line and edge are only
// for lines: edge is for the outlines of controls. All other colors are for text. Their contrast is 4.5 or more
// on both backgrounds, as WCAG 2 requires for text of any size.
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

// Colors returns the palette as CSS custom properties. The colors are light or dark, as the reader's system is
// configured.
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

// cssProperties returns the CSS custom properties. Each begins with a blank.
func cssProperties(value func(Color) string) string {
	var b strings.Builder
	for _, c := range Palette() {
		fmt.Fprintf(&b, " --%s: %s;", c.Name, value(c))
	}
	return b.String()
}
