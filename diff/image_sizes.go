package diff

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/imageref"
)

// imageDetail is the detail of a finding about an image. It has the compressed sizes of the images Before and
// After in bytes (0 if unknown), and the locations of the image if there are several.
type imageDetail struct {
	repeats
	bytesBefore, bytesAfter int64
}

func (d imageDetail) selectParts(f Finding, indexes []int) Finding {
	f, d.repeats = d.selectLocations(f, indexes)
	f.detail = d
	return f
}

func (d imageDetail) addTo(out *findingObject) {
	d.repeats.addTo(out)
	out.BytesBefore, out.BytesAfter = d.bytesBefore, d.bytesAfter
}

// isImageRule reports whether the rule is about an added, removed or replaced image.
func isImageRule(rule string) bool {
	return slices.Contains([]string{"images.registry-changed", "images.repository-changed", "images.changed", "images.same-tag", "images.new", "images.removed"}, rule)
}

// Images returns the images by digest in the findings about images, sorted and without duplicates.
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

// Measure adds the compressed sizes of images to the findings about them. sizes maps an image by digest to
// its size in bytes. If an image is missing in sizes, its size is unknown.
func (r *Report) Measure(sizes map[string]int64) {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		if !isImageRule(f.Rule) {
			continue
		}
		d, _ := f.detail.(imageDetail)
		d.bytesBefore, d.bytesAfter = sizes[f.Before], sizes[f.After]
		f.detail = d
		switch {
		case d.bytesBefore > 0 && d.bytesAfter > 0:
			f.Message += fmt.Sprintf(", %s → %s compressed", formatAmount(d.bytesBefore), formatAmount(d.bytesAfter))
		case d.bytesBefore+d.bytesAfter > 0:
			f.Message += fmt.Sprintf(", %s compressed", formatAmount(d.bytesBefore+d.bytesAfter))
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
