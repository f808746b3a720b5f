package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
)

// IsWrittenByOLM reports whether an entry of an object's managedFields belongs to OLM's controllers.
// Entries for the status do not count.
func IsWrittenByOLM(entry map[string]any) bool {
	return slices.Contains([]string{"olm", "catalog", "olm.install"}, k8s.Text(entry, "manager")) && k8s.Text(entry, "subresource") == ""
}

// AppliedBy reports whether a field manager has applied an object server-side.
func AppliedBy(o k8s.Object, manager string) bool {
	return slices.ContainsFunc(k8s.Items(o, "metadata", "managedFields"), func(entry map[string]any) bool {
		return isApply(entry, manager)
	})
}

// isApply reports whether an entry of managedFields is of a manager's server-side apply.
func isApply(entry map[string]any, manager string) bool {
	return k8s.Text(entry, "manager") == manager && k8s.Text(entry, "operation") == "Apply"
}

// writers holds the paths of an object's fields by field manager. The paths have the form of
// adopt.Field.Path.
type writers struct {
	mine   map[string]bool // fields that OLM wrote, or that the plan's manager applied
	others map[string]bool
}

// writersOf returns the paths of an object's fields by field manager. The argument manager is the
// field manager of the plan.
func writersOf(o k8s.Object, manager string) writers {
	w := writers{map[string]bool{}, map[string]bool{}}
	for _, e := range k8s.Items(o, "metadata", "managedFields") {
		into := w.others
		if IsWrittenByOLM(e) || isApply(e, manager) {
			into = w.mine
		}
		collectPaths(into, "", k8s.Map(e, "fieldsV1"))
	}
	return w
}

// collectPaths adds the paths in a fieldsV1 set. It omits list items that are not identified by
// name, with all fields below them.
func collectPaths(into map[string]bool, at string, fields map[string]any) {
	for key, v := range fields {
		below, _ := v.(map[string]any)
		here := ""
		if name, ok := strings.CutPrefix(key, "f:"); ok {
			here = strings.TrimPrefix(at+"."+name, ".")
		} else if name := itemName(key); name != "" {
			here = at + "[" + name + "]"
		}
		if here == "" {
			continue
		}
		into[here] = true
		collectPaths(into, here, below)
	}
}

// itemName returns the name that identifies a list item in managedFields, or "" if it is
// identified by another field.
func itemName(key string) string {
	text, ok := strings.CutPrefix(key, "k:")
	var by map[string]any
	if !ok || json.Unmarshal([]byte(text), &by) != nil || len(by) != 1 {
		return ""
	}
	return k8s.Text(by, "name")
}

// drops reports whether applying the tree removes a field that only the cluster has, after OLM's
// fields were transferred to the manager. A field that another manager also wrote stays. A field
// without a known writer counts as removed if it is in a list item, or if the object has no
// managedFields.
func (w writers) drops(f adopt.Field) bool {
	switch {
	case w.others[f.Path]:
		return false
	case w.mine[f.Path]:
		return true
	}
	return len(w.mine)+len(w.others) == 0 || strings.Contains(f.Path, "[")
}
