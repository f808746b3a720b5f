package diff

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/imageref"
)

// resized reports whether a finding of a rule is about an image that comes, goes or
// takes the place of another.
func resized(rule string) bool {
	return slices.Contains([]string{"images.registry-changed", "images.repository-changed", "images.changed", "images.same-tag", "images.new", "images.removed"}, rule)
}

// Images returns the images by digest that come or go by what was found, sorted.
func (r *Report) Images() []string {
	var out []string
	for _, f := range r.Findings {
		for _, image := range []string{f.Before, f.After} {
			if resized(f.Rule) && imageref.DigestIn(image) != "" {
				out = append(out, image)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Measure tells how large images are, in bytes as registries keep them, where
// findings are about them. What is not among sizes is not known.
func (r *Report) Measure(sizes map[string]int64) {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		if !resized(f.Rule) {
			continue
		}
		f.BytesBefore, f.BytesAfter = sizes[f.Before], sizes[f.After]
		switch {
		case f.BytesBefore > 0 && f.BytesAfter > 0:
			f.Message += fmt.Sprintf(", %s → %s compressed", amount(f.BytesBefore), amount(f.BytesAfter))
		case f.BytesBefore+f.BytesAfter > 0:
			f.Message += fmt.Sprintf(", %s compressed", amount(f.BytesBefore+f.BytesAfter))
		}
	}
}

// amount returns a number of bytes as registries show it: "45.2 MB".
func amount(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
