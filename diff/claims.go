package diff

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// claims records the changed fields that findings already cover, by object. compareObjects, which
// runs last, does not report these fields again. A finding "explains" the fields that it covers.
type claims map[k8s.Key][]fieldPath

// wholeObject returns the value of Finding.explains for a finding that covers all fields of its
// object.
func wholeObject() []fieldPath { return []fieldPath{{}} }

// noField returns the value of Finding.explains for a finding that covers none of the changed
// fields.
func noField() []fieldPath { return []fieldPath{} }

// add records fields of an object as covered.
func (c claims) add(object k8s.Key, fields ...fieldPath) {
	c[object] = append(c[object], fields...)
}

// addFinding records the fields that a finding covers, at all of its locations.
func (c claims) addFinding(f Finding) {
	for _, l := range append([]Finding{f}, f.locations()...) {
		switch {
		case l.where == nil:
		case l.explains == nil && len(l.path) > 0:
			c.add(l.where.Key(), l.path)
		default:
			c.add(l.where.Key(), l.explains...)
		}
	}
}

// cover reports whether a finding already covers the field at path in an object. An empty path
// means the whole object.
func (c claims) cover(o *Object, path fieldPath) bool {
	return slices.ContainsFunc(c[o.Key()], path.isIn)
}
