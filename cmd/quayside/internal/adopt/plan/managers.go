package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
)

// IsWrittenByOLM reports whether an entry of managedFields belongs to one of OLM's controllers. It ignores
// entries for the status subresource.
func IsWrittenByOLM(entry map[string]any) bool {
	return slices.Contains([]string{"olm", "catalog", "olm.install"}, k8s.Text(entry, "manager")) && k8s.Text(entry, "subresource") == ""
}

// AppliedBy reports whether a field manager has applied an object server-side.
func AppliedBy(o k8s.Object, manager string) bool {
	return slices.ContainsFunc(k8s.Items(o, "metadata", "managedFields"), func(entry map[string]any) bool {
		return isApply(entry, manager)
	})
}

// isApply reports whether an entry of managedFields records that manager applied the object server-side.
func isApply(entry map[string]any, manager string) bool {
	return k8s.Text(entry, "manager") == manager && k8s.Text(entry, "operation") == "Apply"
}

// writers contains the paths of an object's fields, by writer. Paths have the form of adopt.Field.Path.
type writers struct {
	mine   map[string]bool // fields that OLM or the plan's manager wrote
	others map[string]bool
}

// writersOf returns the paths of an object's fields by writer. manager is the plan's field manager.
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

// collectPaths adds to the map into the paths of a set in the fieldsV1 format. It omits list items without a
// name, and all fields in them.
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

// itemName returns the name of a list item, given the item's key in the fieldsV1 format. It returns "" if the
// key contains other fields.
func itemName(key string) string {
	text, ok := strings.CutPrefix(key, "k:")
	var by map[string]any
	if !ok || json.Unmarshal([]byte(text), &by) != nil || len(by) != 1 {
		return ""
	}
	return k8s.Text(by, "name")
}

// drops reports whether applying the tree removes field f, which the tree lacks, from the cluster. It assumes
// that the plan's manager owns OLM's fields. A field that another manager also wrote is kept. A field without a
// known writer counts as removed if it is in a list item, or if the object has no managedFields.
func (w writers) drops(f adopt.Field) bool {
	switch {
	case w.others[f.Path]:
		return false
	case w.mine[f.Path]:
		return true
	}
	return len(w.mine)+len(w.others) == 0 || strings.Contains(f.Path, "[")
}

// transferFields returns entries with one entry of manager in place of the entries of the previous managers.
func (a Action) transferFields(entries []any, manager, apiVersion string) []any {
	var out []any
	fields := map[string]any{}
	newest := ""
	for _, v := range entries {
		e, _ := v.(map[string]any)
		if own := isApply(e, manager) && k8s.Text(e, "subresource") == ""; !own && !a.takesFrom(e) {
			out = append(out, v)
			continue
		}
		fields = mergeFieldSets(fields, k8s.Map(e, "fieldsV1"))
		newest = max(newest, k8s.Text(e, "time"))
	}
	entry := map[string]any{"manager": manager, "operation": "Apply", "apiVersion": apiVersion, "fieldsType": "FieldsV1", "fieldsV1": fields}
	if newest != "" {
		entry["time"] = newest
	}
	return append(out, entry)
}

// mergeFieldSets merges two sets in the fieldsV1 format. This format maps each field to the set of the fields
// below it.
func mergeFieldSets(a, b map[string]any) map[string]any {
	out := k8s.Copy(a)
	for k, v := range b {
		below, _ := v.(map[string]any)
		have, _ := out[k].(map[string]any)
		out[k] = mergeFieldSets(have, below)
	}
	return out
}
