package page_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/quayside/quayside/internal/page"
)

// TestContrast checks that every color of text is readable on every background, light and dark.
func TestContrast(t *testing.T) {
	stands := map[string]bool{"ground": true, "soft": true}
	for _, text := range page.Palette() {
		for _, ground := range page.Palette() {
			if !stands[ground.Name] || stands[text.Name] || text.Name == "line" || text.Name == "edge" {
				continue
			}
			for scheme, pair := range map[string][2]string{"light": {text.Light, ground.Light}, "dark": {text.Dark, ground.Dark}} {
				if c := contrast(t, pair[0], pair[1]); c < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", scheme, text.Name, ground.Name, c)
				}
			}
		}
	}
	if c := contrast(t, "#767676", "#ffffff"); math.Abs(c-4.54) > 0.01 {
		t.Errorf("the contrast of #767676 on white is %.2f, want 4.54, as WCAG has it", c)
	}
}

// contrast is WCAG 2's contrast ratio.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(color string) float64 {
		var c [3]uint8
		if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &c[0], &c[1], &c[2]); err != nil {
			t.Fatalf("%q: %v", color, err)
		}
		var sum float64
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(c[i]) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := luminance(a)+0.05, luminance(b)+0.05
	return max(x, y) / min(x, y)
}
