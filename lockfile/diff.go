package lockfile

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ChangeKind describes how a block of the lock changed.
type ChangeKind string

// The kinds of changes. Moved: the pin has another bundle or version. Changed: other fields of the
// block differ.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Change is one difference between two locks: a changed block. If Package is empty, the block is a declared
// Namespace. If Leaving or Pruned is set, it is a leaving operator. Otherwise, it is a pin.
type Change struct {
	Kind      ChangeKind
	Namespace string
	Package   string      // package of the pin or leaving operator
	Leaving   string      // successor of a leaving operator, "namespace/package"
	Pruned    bool        // the leaving operator has no successor: it is being uninstalled
	From, To  string      // versions, with their releases; empty if the lock does not have the block
	Fields    []string    // changed fields as named in the file, sorted; nil if the block is added or removed
	Pos       diag.Pos    // position of the block in the old lock; zero if the old lock was not parsed
	At        diag.Fields // positions of the block's fields in that lock
}

// Diff returns the changes from old to new. Declared Namespaces come first, by name. Then come pins, and then
// leaving operators, each by namespace and package. A nil lock counts as empty.
func Diff(old, new *File) []Change {
	a, b := old.sorted(), new.sorted()
	var out []Change
	diffBlocks(&out, a.Namespaces, b.Namespaces, compareNamespaces)
	diffBlocks(&out, a.Pins, b.Pins, comparePins)
	diffBlocks(&out, a.Leaving, b.Leaving, compareLeaving)
	return out
}

// diffable is a block that Diff compares. The method change returns the block as a Change of kind Removed.
type diffable interface {
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

// diffBlocks appends a change to out for each block that only one of the sorted lists a and b contains, or that
// differs between the lists.
func diffBlocks[T diffable](out *[]Change, a, b []T, compare func(x, y T) int) {
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
			c.Kind, c.To, c.Fields = Changed, b[0].change().From, differingFields(a[0], b[0])
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

// differingFields returns the names of the fields in which two blocks of the same kind differ,
// sorted.
func differingFields(a, b block) []string {
	var names []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for _, f := range yamlnode.Fields(x.Type()) {
		var before, after bytes.Buffer
		writeField(&before, x, f, "")
		writeField(&after, y, f, "")
		if !bytes.Equal(before.Bytes(), after.Bytes()) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
