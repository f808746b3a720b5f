package diff

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/imageref"
)

// isImageRule reports whether the findings of a rule are about an added, removed or replaced image.
func isImageRule(rule string) bool {
	return slices.Contains([]string{"images.registry-changed", "images.repository-changed", "images.changed", "images.same-tag", "images.new", "images.removed"}, rule)
}

// Images returns the images with a digest in findings of image rules, sorted and without
// duplicates.
func (r *Report) Images() []string {
	var out []string
	for _, f := range r.Findings {
		for _, image := range []string{f.Before, f.After} {
			if isImageRule(f.Rule) && imageref.DigestIn(image) != "" {
				out = append(out, image)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Measure adds compressed image sizes to the findings of image rules. sizes are bytes by image;
// missing images have an unknown size.
func (r *Report) Measure(sizes map[string]int64) {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		if !isImageRule(f.Rule) {
			continue
		}
		f.BytesBefore, f.BytesAfter = sizes[f.Before], sizes[f.After]
		switch {
		case f.BytesBefore > 0 && f.BytesAfter > 0:
			f.Message += fmt.Sprintf(", %s → %s compressed", formatAmount(f.BytesBefore), formatAmount(f.BytesAfter))
		case f.BytesBefore+f.BytesAfter > 0:
			f.Message += fmt.Sprintf(", %s compressed", formatAmount(f.BytesBefore+f.BytesAfter))
		}
	}
}

// formatAmount formats a number of bytes in decimal units, such as "45.2 MB".
func formatAmount(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
