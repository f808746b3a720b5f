package diff

import (
	_ "embed" // for the go:embed directive
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// immutableText has a line for each field whose changes the API server refuses. Its columns are the kind, the
// field, a condition on the object before the change, the refused changes, and the stored value if the field
// is missing. The cluster test TestImmutable tries all changes of all fields on an API server, and writes the
// file with -update.
//
//go:embed immutable.txt
var immutableText string

// immutableField is a line of immutableText.
type immutableField struct {
	kind      string
	path      []string
	when      map[string]any // null stands for a missing field; nil means always
	refused   []string       // "added", "removed", "changed"; "changed:a" if only the value a is refused
	absent    any            // stored value if the field is missing; nil: none
	allocated bool           // the API server chooses a value if the field is missing
}

// immutableByKind returns the immutable fields by kind, and the sorted kinds.
var immutableByKind = sync.OnceValues(func() (map[string][]immutableField, []string) { //nolint:gochecknoglobals // parsed once
	out := map[string][]immutableField{}
	for line := range strings.Lines(immutableText) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		f := immutableField{kind: columns[0], path: strings.Split(columns[1], "."), refused: strings.Split(columns[3], ",")}
		if columns[2] != "always" {
			mustDecode(columns[2], &f.when)
		}
		switch columns[4] {
		case "required", "absent":
		case "allocated":
			f.allocated = true
		default:
			mustDecode(columns[4], &f.absent)
		}
		out[f.kind] = append(out[f.kind], f)
	}
	return out, sortedKeys(out)
})

// mustDecode decodes JSON of immutableText, with integers as int64.
func mustDecode(text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		panic(fmt.Sprintf("immutable.txt: %q: %v", text, err))
	}
}

// compareImmutable reports changes of immutable fields.
func compareImmutable(c *comparison) {
	fields, kinds := immutableByKind()
	for _, kind := range kinds {
		c.each(func(p pair) {
			if !p.onBothSides() {
				return
			}
			for _, f := range fields[kind] {
				c.checkImmutable(p, f)
			}
		}, kind)
	}
	for _, p := range c.changed {
		if p.onBothSides() && c.after.recreates(p.after) {
			c.add("immutable.recreated", p.after, Finding{Message: "the GitOps tool deletes the object and creates it again: " + lostMeanwhile(p.after.Key().Kind), explains: noField()})
		}
	}
}

// recreates reports whether the settings of a state select an object to be recreated.
func (v *view) recreates(o *Object) bool {
	pin, _ := v.pin(o.Operator)
	return slices.ContainsFunc(v.Recreate, func(r profile.Recreation) bool {
		return r.IsFor(o.Operator, pin.Version) && r.Selects(o.Key())
	})
}

// lostMeanwhile describes what is lost between the deletion and the recreation of an object of the given kind.
func lostMeanwhile(kind string) string {
	switch kind {
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController":
		return "all its pods stop before new ones start; claims and other objects stay"
	case "Job":
		return "its pods and their logs are deleted, and it runs again"
	case "Service":
		return "it gets a new address, and its clients fail meanwhile; a load balancer is replaced"
	case "Secret", "ConfigMap":
		return "its content is replaced by the content in the tree, and pods that need it cannot start before it exists again"
	case "RoleBinding", "ClusterRoleBinding":
		return "its subjects lack the permissions meanwhile"
	case "StorageClass", "CSIDriver", "VolumeAttributesClass", "RuntimeClass", "PriorityClass", "IngressClass":
		return "existing users keep what they have, new ones fail meanwhile"
	}
	return "what depends on it fails meanwhile"
}

// checkImmutable reports a change of an immutable field. A field is added or removed if only one of the two
// manifests sets it. The compared values include the defaults of the API server.
func (c *comparison) checkImmutable(p pair, field immutableField) {
	change := "changed"
	switch {
	case field.normalize(k8s.At(p.before.applied, field.path...)) == nil:
		change = "added"
	case field.normalize(k8s.At(p.after.applied, field.path...)) == nil:
		change = "removed"
	}
	a, b := k8s.At(p.before.Content, field.path...), k8s.At(p.after.Content, field.path...)
	if c.after.recreates(p.after) || profile.Recreates(k8s.Object(p.after.Content)) || !matches(p.before.applied, field.when) || !field.refuses(change, a, b) {
		return
	}
	name := strings.Join(field.path, ".")
	f := Finding{Field: name, Before: formatValue(a), After: formatValue(b), Message: name + " cannot be changed", path: fieldAt(field.path...)}
	if asMap(a) != nil || asMap(b) != nil {
		f.explains = noField() // its fields have findings of their own
	}
	if field.kind == "Secret" && name != "type" {
		f.Before, f.After = "", "" // never report the content of a Secret
	}
	c.add("immutable.field-changed", p.after, f)
}

// refuses reports whether the API server refuses a change from one value to another. nil is a missing value.
func (f immutableField) refuses(change string, before, after any) bool {
	before, after = f.orAbsent(before), f.orAbsent(after)
	return !k8s.Equal(before, after) && (slices.Contains(f.refused, change) || slices.Contains(f.refused, change+":"+formatValue(after)))
}

// orAbsent returns v or, if v is missing, the value that the API server stores instead.
func (f immutableField) orAbsent(v any) any {
	if v = f.normalize(v); v == nil {
		return f.absent
	}
	return v
}

// normalize returns nil for a value that has the same meaning as a missing one.
func (f immutableField) normalize(v any) any {
	list, isList := v.([]any)
	fields, isMap := v.(map[string]any)
	if isList && len(list) == 0 || isMap && len(fields) == 0 || f.allocated && v == "" {
		return nil
	}
	return v
}

// matches reports whether an object has the values of a pattern. null stands for a missing value.
func matches(object, pattern map[string]any) bool {
	for name, want := range pattern {
		if below := asMap(want); below != nil {
			if !matches(asMap(object[name]), below) {
				return false
			}
		} else if !k8s.Equal(object[name], want) {
			return false
		}
	}
	return true
}
