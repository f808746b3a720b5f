package lockfile

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// ChangeKind says what happened to a pin, a catalog or a declared Namespace.
type ChangeKind string

// A Moved pin has another bundle; a Changed one has the same, and differs
// otherwise.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Change is one difference between two locks: of a pin; of a catalog, where
// Catalog says which; of a declared Namespace, where neither it nor Package is
// set.
type Change struct {
	Kind      ChangeKind
	Namespace string
	Package   string      // of a pin alone
	Catalog   *catalog.ID // of a catalog alone
	From, To  string      // versions of a pin, digests of a catalog; empty where there was none
	Fields    []string    // names, as in the file, of all that differs; sorted; nil when added or removed
	Pos       diag.Pos    // of the block, where the old lock has it and was parsed
	At        diag.Fields // likewise, of the names of its fields
}

// Diff returns what became of old: catalogs first, by namespace and name, then
// declared Namespaces by name, then pins by namespace and package. A nil lock is
// empty.
func Diff(old, new *File) []Change {
	a, b := old.sorted(), new.sorted()
	var out []Change
	each(&out, a.Catalogs, b.Catalogs, compareCatalogs, func(c *Change, x, y *Catalog) {
		id := cmp.Or(x, y).ID
		c.Catalog, c.Namespace = &id, id.Namespace
		if x != nil {
			c.From, c.Pos, c.At = string(x.Digest), x.Pos, x.Fields
		}
		if y != nil {
			c.To = string(y.Digest)
		}
	})
	each(&out, a.Namespaces, b.Namespaces, compareNamespaces, func(c *Change, x, y *Namespace) {
		c.Namespace = cmp.Or(x, y).Name
		if x != nil {
			c.Pos, c.At = x.Pos, x.Fields
		}
	})
	each(&out, a.Pins, b.Pins, comparePins, func(c *Change, x, y *Pin) {
		either := cmp.Or(x, y)
		c.Namespace, c.Package = either.Namespace, either.Package
		if x != nil {
			c.From, c.Pos, c.At = x.Version, x.Pos, x.Fields
		}
		if y != nil {
			c.To = y.Version
		}
		if c.Kind == Changed && (x.Bundle != y.Bundle || x.Version != y.Version) {
			c.Kind = Moved
		}
	})
	return out
}

// each walks two sorted lists together and appends a change for each item that
// is in one of them only, or that is not written the same in both. tell says
// what it is; where there is no partner the other argument is nil.
func each[T block](out *[]Change, a, b []T, compare func(x, y T) int, tell func(c *Change, x, y *T)) {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var c Change
		switch {
		case j == len(b) || i < len(a) && compare(a[i], b[j]) < 0:
			c.Kind = Removed
			tell(&c, &a[i], nil)
			i++
		case i == len(a) || compare(a[i], b[j]) > 0:
			c.Kind = Added
			tell(&c, nil, &b[j])
			j++
		default:
			c = Change{Kind: Changed, Fields: differing(lines(a[i]), lines(b[j]))}
			tell(&c, &a[i], &b[j])
			i++
			j++
		}
		if c.Kind == Added || c.Kind == Removed || len(c.Fields) > 0 {
			*out = append(*out, c)
		}
	}
}

// differing returns the names of the top-level fields in which two blocks
// differ, sorted.
func differing(a, b []byte) []string {
	x, y := fieldTexts(a), fieldTexts(b)
	var names []string
	for name := range x {
		if x[name] != y[name] {
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
