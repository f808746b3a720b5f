package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Version is a bundle's version. Comparison ignores build metadata and orders prereleases as in
// semver.
type Version = semver.Version

// ParseVersion parses a strict semantic version.
func ParseVersion(s string) (Version, error) {
	v, err := semver.Parse(s)
	if err != nil {
		return Version{}, fmt.Errorf("version %q: %w", s, err)
	}
	return v, nil
}

// CompareVersions compares two versions as semver. Invalid versions sort first.
func CompareVersions(a, b string) int {
	v, errV := ParseVersion(a)
	w, errW := ParseVersion(b)
	switch {
	case errV == nil && errW == nil:
		return v.Compare(w)
	case errV == nil:
		return 1
	case errW == nil:
		return -1
	default:
		return strings.Compare(a, b)
	}
}

// Range is a version range in the syntax of skipRange and olm.package.required. The zero value
// contains no version.
type Range struct {
	text string
	in   semver.Range
}

// maxRange is the maximum length of a range in bytes. It bounds memory: the parser allocates a
// function for every comparison.
const maxRange = 64 << 10

// ParseRange parses a range in the syntax of blang/semver, such as ">=1.0.0 <1.2.0 || 2.x".
// Prereleases are compared like other versions: "<1.2.0" contains 1.2.0-rc.1.
func ParseRange(s string) (Range, error) {
	if len(s) > maxRange {
		return Range{}, fmt.Errorf("version range of %d bytes exceeds the limit of %d", len(s), maxRange)
	}
	in, err := semver.ParseRange(s)
	if err != nil {
		return Range{}, fmt.Errorf("version range %q: %w", s, err)
	}
	return Range{text: s, in: in}, nil
}

// Contains reports whether v is in r.
func (r Range) Contains(v Version) bool { return r.in != nil && r.in(v) }

// String returns the text that the range was parsed from.
func (r Range) String() string { return r.text }

// GVK identifies an API by group, version and kind.
type GVK struct {
	Group, Version, Kind string
}

// String returns "group/version Kind".
func (g GVK) String() string { return g.Group + "/" + g.Version + " " + g.Kind }

// IsCalled reports whether word names the API: its kind, its group, or both, such as "Kafka",
// "kafka.strimzi.io", "kafka.strimzi.io/Kafka", "kafka.strimzi.io/v1 Kafka" or
// "Kafka.kafka.strimzi.io". Case does not matter.
func (g GVK) IsCalled(word string) bool {
	return slices.ContainsFunc([]string{
		g.Kind, g.Group, g.Group + "/" + g.Kind, g.Kind + "." + g.Group, g.Group + "/" + g.Version, g.Group + "/" + g.Version + "/" + g.Kind, g.String(),
	}, func(name string) bool { return strings.EqualFold(name, word) })
}

// Compare orders GVKs by group, then version, then kind.
func (g GVK) Compare(h GVK) int {
	return cmp.Or(strings.Compare(g.Group, h.Group), strings.Compare(g.Version, h.Version), strings.Compare(g.Kind, h.Kind))
}
