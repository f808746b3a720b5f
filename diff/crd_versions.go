package diff

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/kobj"
)

// crdVersion is one entry of spec.versions.
type crdVersion struct {
	name                        string
	served, storage, deprecated bool
	schema                      map[string]any // openAPIV3Schema; nil where there is none
	subresources                map[string]any
	selectable                  []string
}

// crdVersions returns the versions of a definition of either API version, in file order.
func crdVersions(crd map[string]any) []crdVersion {
	shared := kobj.Map(crd, "spec", "validation", "openAPIV3Schema") // v1beta1
	list := kobj.Items(crd, "spec", "versions")
	if len(list) == 0 && kobj.Text(crd, "spec", "version") != "" {
		list = []map[string]any{{"name": kobj.Text(crd, "spec", "version"), "served": true, "storage": true}}
	}
	var out []crdVersion
	for _, m := range list {
		v := crdVersion{
			name: kobj.Text(m, "name"), served: kobj.True(m, "served"), storage: kobj.True(m, "storage"), deprecated: kobj.True(m, "deprecated"),
			schema: kobj.Map(m, "schema", "openAPIV3Schema"), subresources: kobj.Map(m, "subresources"),
		}
		if v.schema == nil {
			v.schema = shared
		}
		if v.subresources == nil {
			v.subresources = kobj.Map(crd, "spec", "subresources")
		}
		for _, s := range kobj.Items(m, "selectableFields") {
			v.selectable = append(v.selectable, kobj.Text(s, "jsonPath"))
		}
		out = append(out, v)
	}
	return out
}

// versionOf finds a version by name.
func versionOf(list []crdVersion, name string) (crdVersion, bool) {
	i := slices.IndexFunc(list, func(v crdVersion) bool { return v.name == name })
	if i < 0 {
		return crdVersion{}, false
	}
	return list[i], true
}

// storageOf finds the version that objects are stored in.
func storageOf(list []crdVersion) (crdVersion, bool) {
	i := slices.IndexFunc(list, func(v crdVersion) bool { return v.storage })
	if i < 0 {
		return crdVersion{}, false
	}
	return list[i], true
}

func (d crdDiff) versions() {
	old, now := crdVersions(d.old.Content), crdVersions(d.now.Content)
	stored := kobj.Texts(d.old.Content, "status", "storedVersions")
	for _, a := range old {
		if b, ok := versionOf(now, a.name); ok {
			d.version(a, b)
			continue
		}
		d.versionGone(a, a.storage || slices.Contains(stored, a.name))
	}
	for _, b := range now {
		if _, ok := versionOf(old, b.name); !ok {
			d.versionNew(b, old)
		}
	}
	a, hadOne := storageOf(old)
	b, hasOne := storageOf(now)
	if hadOne && hasOne && a.name != b.name {
		d.add("crd.storage-version-changed", Finding{
			Field: "spec.versions", Before: a.name, After: b.name, steps: versionSteps(b.name, "storage"),
			Message: fmt.Sprintf("objects are stored as %s from now on, as %s so far", b.name, a.name),
		})
	}
}

func versionSteps(name string, more ...string) []step {
	return append([]step{{key: "spec"}, {key: "versions"}, {by: "name", key: name}}, path(more...)...)
}

func (d crdDiff) versionGone(v crdVersion, stored bool) {
	f := Finding{Field: v.name, Before: "served", steps: path("spec", "versions")}
	switch {
	case stored:
		f.Before = "storage version"
		f.Message = fmt.Sprintf("version %s, in which objects are stored, is removed", v.name)
		d.add("crd.stored-version-removed", f)
	case v.served:
		f.Message = fmt.Sprintf("version %s is removed", v.name)
		d.add("crd.served-version-removed", f)
	default:
		f.Before, f.Message = "not served", fmt.Sprintf("version %s, which was not served, is removed", v.name)
		d.add("crd.served-version-removed", f, Low)
	}
}

// versionNew looks at a version that was not there: without conversion it must
// be able to hold what is stored.
func (d crdDiff) versionNew(v crdVersion, old []crdVersion) {
	d.add("crd.version-added", Finding{
		Field: v.name, After: served(v), Message: fmt.Sprintf("version %s is new", v.name), steps: versionSteps(v.name),
	})
	from, ok := storageOf(old)
	if !ok || strategy(d.now.Content) != "None" || !v.served && !v.storage {
		return
	}
	var lost []string
	w := schemaWalk{say: func(rule, at string, _ []step, _ Finding, _ ...Severity) {
		if rule == "crd.field-removed" || rule == "crd.type-changed" || rule == "crd.map-removed" || rule == "crd.unknown-fields-pruned" {
			lost = append(lost, at)
		}
	}}
	w.root(from.schema, v.schema)
	if len(lost) > 0 {
		d.add("crd.version-differs", Finding{
			Field: v.name, Before: from.name, After: v.name, steps: versionSteps(v.name, "schema"),
			Message: fmt.Sprintf("%s does not hold %s of %s, and nothing converts: %s",
				v.name, plural(len(lost), "field", "fields"), from.name, some(lost, 5)),
		})
	}
}

func served(v crdVersion) string {
	switch {
	case v.storage:
		return "storage version"
	case v.served:
		return "served"
	}
	return "not served"
}

// version compares one version with itself.
func (d crdDiff) version(a, b crdVersion) {
	if a.served && !b.served {
		d.add("crd.version-unserved", Finding{
			Field: a.name, Before: "served", After: "not served", steps: versionSteps(a.name, "served"),
			Message: fmt.Sprintf("version %s is no longer served", a.name),
		})
	}
	if !a.deprecated && b.deprecated {
		d.add("crd.version-deprecated", Finding{
			Field: a.name, After: "deprecated", steps: versionSteps(a.name, "deprecated"),
			Message: fmt.Sprintf("version %s is deprecated", a.name),
		})
	}
	d.subresources(a, b)
	for _, s := range a.selectable {
		if !slices.Contains(b.selectable, s) {
			d.add("crd.selectable-field-removed", Finding{
				Field: b.name + " " + s, Before: s, steps: versionSteps(b.name, "selectableFields"),
				Message: fmt.Sprintf("%s can no longer be selected by", s),
			})
		}
	}
	// Nobody writes a version that neither side serves; one that is only
	// stored still decides what is kept.
	worst := Critical
	if !a.served && !b.served {
		if !a.storage && !b.storage {
			return
		}
		worst = Low
	}
	var added []string
	w := schemaWalk{
		say: func(rule, at string, steps []step, f Finding, capped ...Severity) {
			f.Field, f.steps = b.name+" "+at, append(versionSteps(b.name, "schema", "openAPIV3Schema"), steps...)
			d.add(rule, f, append(capped, worst)...)
		},
		added: func(at string) { added = append(added, at) },
	}
	w.root(a.schema, b.schema)
	if len(added) > 0 {
		d.add("crd.fields-added", Finding{
			Field: b.name, After: some(added, 40), steps: versionSteps(b.name, "schema"),
			Message: fmt.Sprintf("%s added: %s", plural(len(added), "field", "fields"), some(added, 5)),
		})
	}
}

func (d crdDiff) subresources(a, b crdVersion) {
	_, hadStatus := a.subresources["status"]
	_, hasStatus := b.subresources["status"]
	f := Finding{Field: b.name + " status", steps: versionSteps(b.name)}
	switch {
	case hadStatus && !hasStatus:
		f.Before, f.Message = "subresource", "status is no longer a subresource"
		d.add("crd.status-subresource-removed", f)
	case !hadStatus && hasStatus:
		f.After, f.Message = "subresource", "status becomes a subresource"
		d.add("crd.status-subresource-added", f)
	}
	was, is := kobj.Map(a.subresources, "scale"), kobj.Map(b.subresources, "scale")
	f = Finding{Field: b.name + " scale", Before: show(kobj.At(a.subresources, "scale")), After: show(kobj.At(b.subresources, "scale")), steps: versionSteps(b.name, "subresources")}
	switch {
	case was != nil && is == nil:
		f.Message = "the scale subresource is removed"
		d.add("crd.scale-subresource-removed", f)
	case was != nil && !reflect.DeepEqual(was, is):
		f.Message = "the scale subresource reads other fields"
		d.add("crd.scale-subresource-changed", f)
	}
}
