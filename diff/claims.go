package diff

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// claims are the fields that findings explain, by object. Other rules do not report them.
type claims map[k8s.Key][]fieldPath

// wholeObject returns the claim of a finding that explains all fields of an object.
func wholeObject() []fieldPath { return []fieldPath{{}} }

// noField returns the claim of a finding that explains no changed field.
func noField() []fieldPath { return []fieldPath{} }

// add records that a finding explains fields of an object.
func (c claims) add(object k8s.Key, fields ...fieldPath) {
	c[object] = append(c[object], fields...)
}

// addFinding records the fields that a finding explains at all of its locations.
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

// cover reports whether a finding explains the field of an object at path. An empty path means the
// whole object.
func (c claims) cover(o *Object, path fieldPath) bool {
	return slices.ContainsFunc(c[o.Key()], path.isIn)
}
