package workspace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Change is a difference between the locks before and after resolving.
type Change struct {
	Change        lockfile.ChangeKind `json:"change"`
	Operator      string              `json:"operator,omitempty"`
	Namespace     string              `json:"namespace,omitempty"` // name of a declared Namespace; then Operator is empty
	From          string              `json:"from,omitempty"`
	To            string              `json:"to,omitempty"`
	Fields        []string            `json:"fields,omitempty"`
	Why           string              `json:"reason,omitempty"`
	RemainingHops []string            `json:"remainingHops,omitempty"`
	Storage       *lockfile.Storage   `json:"storage,omitempty" doc:"migration step before an upgrade that drops versions in which objects may be stored"`
}

// Changes returns the differences between two locks. moves are the reasons for changed pins. before
// may be nil.
func Changes(before, after *lockfile.File, moves []resolve.PinChange) []Change {
	why := map[string]resolve.PinChange{}
	for _, m := range moves {
		why[m.Namespace+"/"+m.Package] = m
	}
	var out []Change
	for _, c := range lockfile.Diff(before, after) {
		v := Change{Change: c.Kind, From: c.From, To: c.To, Fields: c.Fields}
		if c.Package == "" {
			v.Namespace = c.Namespace
			out = append(out, v)
			continue
		}
		v.Operator = c.Namespace + "/" + c.Package
		if c.Leaving != "" || c.Pruned {
			if v.Why = describeLeftover(c, after); v.Why != "" {
				out = append(out, v)
			}
			continue
		}
		if c.Kind == lockfile.Moved {
			v.Fields = nil // do not list the fields of an upgraded pin: nearly all differ
		}
		if c.Kind != lockfile.Changed {
			v.Why, v.RemainingHops = why[v.Operator].Why, why[v.Operator].Remaining
		}
		if pin, ok := after.Pin(c.Namespace, c.Package); ok {
			v.Storage = pin.Storage
		}
		out = append(out, v)
	}
	return out
}

// Removals returns a line that lists the operators that changes remove, or "" if they remove none.
func Removals(changes []Change) string {
	var names []string
	for _, c := range changes {
		isLeftover := c.Why == nothingLeft || strings.HasPrefix(c.Why, leftoverObjects)
		if c.Change == lockfile.Removed && c.Operator != "" && !isLeftover {
			names = append(names, c.Operator)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("removes %s: %s", diag.Count(len(names), "operator"), strings.Join(names, ", "))
}

// Reasons for changes to the leftover objects of an operator that is not pinned.
const (
	nothingLeft     = "no objects left"
	leftoverObjects = "leftover objects"
)

// describeLeftover describes a change to the leftover objects of a replaced or uninstalled
// operator. It returns "" if a change of the operator's pin already describes it.
func describeLeftover(c lockfile.Change, after *lockfile.File) string {
	_, pinned := after.Pin(c.Namespace, c.Package)
	switch {
	case c.Kind == lockfile.Added, pinned:
		return ""
	case c.Pruned && c.Kind == lockfile.Removed:
		return nothingLeft
	case c.Kind == lockfile.Removed:
		return leftoverObjects + "; " + c.Leaving + " replaces it"
	default:
		return leftoverObjects
	}
}

// Sign returns "+" for an addition, "-" for a removal, or "~".
func (c Change) Sign() string {
	switch c.Change {
	case lockfile.Added:
		return "+"
	case lockfile.Removed:
		return "-"
	default:
		return "~"
	}
}

// String describes the change, such as "my-etcd/etcd 0.9.2 → 0.9.4".
func (c Change) String() string {
	var b strings.Builder
	switch {
	case c.Namespace != "":
		b.WriteString("Namespace " + c.Namespace)
	default:
		b.WriteString(c.Operator)
	}
	switch {
	case c.From != "" && c.To != "" && c.From != c.To:
		b.WriteString(" " + c.From + " → " + c.To)
	case c.To != "":
		b.WriteString(" " + c.To)
	case c.From != "":
		b.WriteString(" " + c.From)
	}
	fields := slices.DeleteFunc(resolve.FieldTitles(c.Fields), func(title string) bool { return c.Storage != nil && title == "storage" })
	if len(fields) > 0 {
		b.WriteString(" (changed: " + strings.Join(fields, ", ") + ")")
	}
	if c.Why != "" && c.Why != "subscription "+c.Operator {
		b.WriteString(", " + c.Why)
	}
	if n := len(c.RemainingHops); n > 0 {
		fmt.Fprintf(&b, "; %s to go: %s", diag.Count(n, "hop"), strings.Join(c.RemainingHops, ", "))
	}
	if c.Storage != nil {
		fmt.Fprintf(&b, "; storage: %s", c.Storage)
	}
	return b.String()
}
