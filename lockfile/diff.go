package lockfile

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ChangeKind tells what happened to a pin or a declared Namespace.
type ChangeKind string

// A Moved pin has another bundle; a Changed one has the same, and differs
// otherwise.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Change is one difference between two locks: of a pin; of an operator that is leaving,
// where Leaving is set; of a declared Namespace, where Package is empty.
type Change struct {
	Kind      ChangeKind
	Namespace string
	Package   string      // of a pin, or of an operator that is leaving
	Leaving   string      // "namespace/package" of the successor of an operator that is leaving
	Pruned    bool        // the operator is leaving, and has no successor
	From, To  string      // versions of a pin, with their releases; empty where there was none
	Fields    []string    // names, as in the file, of all that differs; sorted; nil when added or removed
	Pos       diag.Pos    // of the block, where the old lock has it and was parsed
	At        diag.Fields // likewise, of the names of its fields
}

// Diff returns the changes from old to new: declared Namespaces by name, then pins, then
// operators that are leaving, by namespace and package. A nil lock is empty.
func Diff(old, new *File) []Change {
	a, b := old.sorted(), new.sorted()
	var out []Change
	each(&out, a.Namespaces, b.Namespaces, compareNamespaces)
	each(&out, a.Pins, b.Pins, comparePins)
	each(&out, a.Leaving, b.Leaving, compareLeaving)
	return out
}

// changing is a block that changes are told of. Its change is its removal.
type changing interface {
	block
	change() Change
}

func (n Namespace) change() Change {
	return Change{Kind: Removed, Namespace: n.Name, Pos: n.Pos, At: n.Fields}
}

func (p Pin) change() Change {
	return Change{Kind: Removed, Namespace: p.Namespace, Package: p.Package, From: p.VersionText(), Pos: p.Pos, At: p.Fields}
}

func (l Leaving) change() Change {
	c := l.Pin.change()
	c.Leaving, c.Pruned = l.ReplacedBy, l.ReplacedBy == ""
	return c
}

// each walks two sorted lists together and appends a change for each item that
// is in one of them only, or that is not written the same in both.
func each[T changing](out *[]Change, a, b []T, compare func(x, y T) int) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && compare(a[0], b[0]) < 0:
			*out = append(*out, a[0].change())
			a = a[1:]
		case len(a) == 0 || compare(a[0], b[0]) > 0:
			c := b[0].change()
			*out = append(*out, Change{Kind: Added, Namespace: c.Namespace, Package: c.Package, Leaving: c.Leaving, Pruned: c.Pruned, To: c.From})
			b = b[1:]
		default:
			c := a[0].change()
			c.Kind, c.To, c.Fields = Changed, b[0].change().From, differing(a[0], b[0])
			if c.Package != "" && (slices.Contains(c.Fields, "bundle") || slices.Contains(c.Fields, "version")) {
				c.Kind = Moved
			}
			if len(c.Fields) > 0 {
				*out = append(*out, c)
			}
			a, b = a[1:], b[1:]
		}
	}
}

// differing returns the names of the fields that are not written the same in two
// blocks of one kind, sorted.
func differing(a, b block) []string {
	var names []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for _, f := range yamlnode.Fields(x.Type()) {
		var before, after bytes.Buffer
		field(&before, x, f, "")
		field(&after, y, f, "")
		if !bytes.Equal(before.Bytes(), after.Bytes()) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
