package diff

import (
	"fmt"
	"strings"
)

// locations returns one finding for each location, including the first, if the finding has several locations.
// Otherwise it returns nil.
func (f Finding) locations() []Finding {
	if r, ok := f.detail.(interface{ all() []Finding }); ok {
		return r.all()
	}
	return nil
}

// otherFields returns, in order, the other fields of the object that have the same change.
func (f Finding) otherFields() []string {
	return f.document().Also
}

// repeats is the detail of a finding about the same change at several locations.
type repeats struct {
	locations []Finding // one finding for each location, including the first
	inObject  bool      // all locations are fields of one object; reports list the names of the fields
}

func (r repeats) all() []Finding { return r.locations }

func (r repeats) parts(whole part) []part {
	if len(r.locations) == 0 {
		return []part{whole}
	}
	var out []part
	for _, l := range r.locations {
		out = append(out, part{Object: l.Object, Field: l.Field, Container: l.Container})
	}
	return out
}

func (r repeats) selectParts(f Finding, indexes []int) Finding {
	f, r = r.selectLocations(f, indexes)
	f.detail = r
	return f
}

// selectLocations returns f and r, reduced to the locations with the given indexes.
func (r repeats) selectLocations(f Finding, indexes []int) (Finding, repeats) {
	f.Message = strings.TrimSuffix(f.Message, formatLocationCount(len(r.locations)))
	r.locations = selectItems(r.locations, indexes)
	if first := r.locations[0]; indexes[0] > 0 {
		f.Object, f.Field, f.Container, f.Place, f.Link = first.Object, first.Field, first.Container, first.Place, ""
		f.objects = first.objects
	}
	if len(r.locations) > 1 && !r.inObject {
		f.Message += formatLocationCount(len(r.locations))
	}
	return f, r
}

func (r repeats) addTo(out *findingObject) {
	for i, l := range r.locations {
		switch {
		case i == 0:
		case r.inObject:
			out.Also = append(out.Also, l.Field)
		default:
			out.Others = append(out.Others, otherLocation{Object: l.Object.orNil(), Field: l.Field, Container: l.Container, Place: l.Place.orNil()})
		}
	}
}

// formatLocationCount returns a message suffix with the number of locations.
func formatLocationCount(n int) string {
	return fmt.Sprintf(" (at %s)", pluralize(n, "place", "places"))
}
