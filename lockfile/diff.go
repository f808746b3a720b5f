package lockfile

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// ChangeKind says what happened to a pin or a catalog.
type ChangeKind string

// A Moved pin has another bundle; a Changed one has the same, and differs
// otherwise.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Change is one difference between two locks: of a pin, or of a catalog where
// Package is empty.
type Change struct {
	Kind      ChangeKind
	Namespace string
	Package   string      // empty for a catalog
	Catalog   *catalog.ID // nil for a pin
	From, To  string      // versions of a pin, digests of a catalog; empty where there was none
	Fields    []string    // names, as in the file, of all that differs; sorted; nil when added or removed
}

// Diff returns what became of old: catalogs first, by namespace and name, then
// pins by namespace and package. A nil lock is empty.
func Diff(old, new *File) []Change {
	a, b := orEmpty(old), orEmpty(new)
	var out []Change
	each(a.Catalogs, b.Catalogs, func(x, y Catalog) int { return compareID(x.ID, y.ID) }, func(x, y *Catalog) {
		c := Change{Kind: kindOf(x == nil, y == nil)}
		if x != nil {
			c.Catalog, c.Namespace, c.From = &x.ID, x.ID.Namespace, string(x.Digest)
		}
		if y != nil {
			c.Catalog, c.Namespace, c.To = &y.ID, y.ID.Namespace, string(y.Digest)
		}
		if x != nil && y != nil {
			c.Fields = differing(catalogBlock(*x), catalogBlock(*y))
		}
		out = keep(out, c)
	})
	each(a.Pins, b.Pins, comparePins, func(x, y *Pin) {
		c := Change{Kind: kindOf(x == nil, y == nil)}
		if x != nil {
			c.Namespace, c.Package, c.From = x.Namespace, x.Package, x.Version
		}
		if y != nil {
			c.Namespace, c.Package, c.To = y.Namespace, y.Package, y.Version
		}
		if x != nil && y != nil {
			c.Fields = differing(pinBlock(*x), pinBlock(*y))
			if x.Bundle != y.Bundle || x.Version != y.Version {
				c.Kind = Moved
			}
		}
		out = keep(out, c)
	})
	return out
}

func orEmpty(f *File) *File {
	if f == nil {
		return &File{}
	}
	return New(f.Catalogs, f.Pins)
}

func keep(out []Change, c Change) []Change {
	if c.Kind == Changed && len(c.Fields) == 0 {
		return out
	}
	return append(out, c)
}

func kindOf(noOld, noNew bool) ChangeKind {
	switch {
	case noOld:
		return Added
	case noNew:
		return Removed
	}
	return Changed
}

// each walks two sorted lists together; where one has no partner the other
// argument is nil.
func each[T any](a, b []T, compare func(x, y T) int, visit func(x, y *T)) {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case j == len(b) || i < len(a) && compare(a[i], b[j]) < 0:
			visit(&a[i], nil)
			i++
		case i == len(a) || compare(a[i], b[j]) > 0:
			visit(nil, &b[j])
			j++
		default:
			visit(&a[i], &b[j])
			i++
			j++
		}
	}
}

// differing returns the names of the top-level fields in which two blocks
// differ, sorted.
func differing(a, b []byte) []string {
	x, y := fieldTexts(a), fieldTexts(b)
	var names []string
	for name := range x {
		if !reflect.DeepEqual(x[name], y[name]) {
			names = append(names, name)
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fieldTexts splits a block as Format writes it into its fields.
func fieldTexts(b []byte) map[string]string {
	out := map[string]string{}
	name := ""
	for line := range bytes.Lines(b) {
		s := string(line)
		if len(s) > 2 && s[2] != ' ' && s[2] != '-' {
			name, _, _ = strings.Cut(s[2:], ":")
		}
		out[name] += s
	}
	return out
}

func quoted(s string) string { return strconv.Quote(s) }
