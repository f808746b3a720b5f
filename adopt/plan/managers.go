package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/internal/kobj"
)

// ByOLM reports whether an entry of an object's managedFields is of OLM's
// controllers. What they wrote to the status stays their own.
func ByOLM(entry map[string]any) bool {
	return slices.Contains([]string{"olm", "catalog", "olm.install"}, kobj.Text(entry, "manager")) && kobj.Text(entry, "subresource") == ""
}

// writers says which fields of an object some wrote, in the words of adopt.Field.
type writers struct {
	mine   map[string]bool // what OLM wrote, and what the plan's manager applied
	others map[string]bool
}

// writersOf returns who wrote what of an object, where manager is the plan's.
func writersOf(o kobj.Object, manager string) writers {
	w := writers{map[string]bool{}, map[string]bool{}}
	for _, e := range kobj.Items(o, "metadata", "managedFields") {
		into := w.others
		if ByOLM(e) || kobj.Text(e, "manager") == manager && kobj.Text(e, "operation") == "Apply" {
			into = w.mine
		}
		written(into, "", kobj.Map(e, "fieldsV1"))
	}
	return w
}

// written adds the paths of a set of fields in the form of managedFields. An item of
// a list that has no name is left out, with all below it.
func written(into map[string]bool, at string, fields map[string]any) {
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
		written(into, here, below)
	}
}

// itemName returns the name by which managedFields tell an item of a list; "" where
// they tell it otherwise.
func itemName(key string) string {
	text, ok := strings.CutPrefix(key, "k:")
	var by map[string]any
	if !ok || json.Unmarshal([]byte(text), &by) != nil || len(by) != 1 {
		return ""
	}
	return kobj.Text(by, "name")
}

// drops reports whether a field goes that only the cluster has, once OLM's fields
// are the manager's and that applies the tree: not if somebody else wrote it too, or
// nobody did. Of an item that cannot be told it is taken to go.
func (w writers) drops(f adopt.Field) bool {
	switch {
	case w.others[f.Path]:
		return false
	case w.mine[f.Path]:
		return true
	}
	return len(w.mine)+len(w.others) == 0 || strings.Contains(f.Path, "[")
}
