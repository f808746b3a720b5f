package diff

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

func (d crdDiff) versions() {
	old, now := kinds.Define(d.old.Content), kinds.Define(d.now.Content)
	seen, observed := d.c.opt.Stored[old.Name]
	stored := slices.Concat(kobj.Texts(d.old.Content, "status", "storedVersions"), seen)
	for _, a := range old.Versions {
		if b, ok := now.Version(a.Name); ok {
			d.version(a, b)
			continue
		}
		d.versionGone(a, a.Storage || slices.Contains(stored, a.Name), observed)
	}
	for _, name := range seen {
		_, had := old.Version(name)
		if _, has := now.Version(name); !had && !has {
			d.versionGone(kinds.Version{Name: name}, true, true)
		}
	}
	for _, b := range now.Versions {
		if _, ok := old.Version(b.Name); !ok {
			d.versionNew(b, old)
		}
	}
	a, hadOne := old.Stored()
	b, hasOne := now.Stored()
	if hadOne && hasOne && a.Name != b.Name {
		d.add("crd.storage-version-changed", Finding{
			Field: "spec.versions", Before: a.Name, After: b.Name, steps: versionSteps(b.Name, "storage"),
			Message: fmt.Sprintf("objects are stored as %s from now on, as %s so far", b.Name, a.Name),
		})
	}
}

func versionSteps(name string, more ...string) []step {
	return append([]step{{key: "spec"}, {key: "versions"}, {by: "name", key: name}}, path(more...)...)
}

// versionGone says that a version goes, in which objects may be stored or not.
// observed is whether clusters say so.
func (d crdDiff) versionGone(v kinds.Version, stored, observed bool) {
	f := Finding{Field: v.Name, Before: "served", steps: path("spec", "versions")}
	switch {
	case stored:
		f.Before = "storage version"
		f.Message = fmt.Sprintf("version %s, in which objects are stored, is removed", v.Name)
		if observed {
			f.Message += "; clusters say so, and will refuse the definition"
		}
		d.add("crd.stored-version-removed", f)
	case v.Served:
		f.Message = fmt.Sprintf("version %s is removed", v.Name)
		if observed {
			f.Message += "; no object is stored in it"
		}
		d.add("crd.served-version-removed", f)
	default:
		f.Before, f.Message = "not served", fmt.Sprintf("version %s, which was not served, is removed", v.Name)
		d.add("crd.served-version-removed", f, Low)
	}
}

// versionNew looks at a version that was not there: without conversion it must
// be able to hold what is stored.
func (d crdDiff) versionNew(v kinds.Version, old kinds.Definition) {
	d.add("crd.version-added", Finding{
		Field: v.Name, After: served(v), Message: fmt.Sprintf("version %s is new", v.Name), steps: versionSteps(v.Name),
	})
	from, ok := old.Stored()
	if !ok || strategy(d.now.Content) != "None" || !v.Served && !v.Storage {
		return
	}
	var lost []string
	w := schemaWalk{say: func(rule, at string, _ []step, _ Finding, _ ...Severity) {
		if rule == "crd.field-removed" || rule == "crd.type-changed" || rule == "crd.map-removed" || rule == "crd.unknown-fields-pruned" {
			lost = append(lost, at)
		}
	}}
	w.root(from.Schema, v.Schema)
	if len(lost) > 0 {
		d.add("crd.version-differs", Finding{
			Field: v.Name, Before: from.Name, After: v.Name, steps: versionSteps(v.Name, "schema"),
			Message: fmt.Sprintf("%s does not hold %s of %s, and nothing converts: %s",
				v.Name, plural(len(lost), "field", "fields"), from.Name, some(lost, 5)),
		})
	}
}

func served(v kinds.Version) string {
	switch {
	case v.Storage:
		return "storage version"
	case v.Served:
		return "served"
	}
	return "not served"
}

// version compares one version with itself.
func (d crdDiff) version(a, b kinds.Version) {
	if a.Served && !b.Served {
		d.add("crd.version-unserved", Finding{
			Field: a.Name, Before: "served", After: "not served", steps: versionSteps(a.Name, "served"),
			Message: fmt.Sprintf("version %s is no longer served", a.Name),
		})
	}
	if !a.Deprecated && b.Deprecated {
		d.add("crd.version-deprecated", Finding{
			Field: a.Name, After: "deprecated", steps: versionSteps(a.Name, "deprecated"),
			Message: fmt.Sprintf("version %s is deprecated", a.Name),
		})
	}
	d.subresources(a, b)
	for _, s := range a.Selectable {
		if !slices.Contains(b.Selectable, s) {
			d.add("crd.selectable-field-removed", Finding{
				Field: b.Name + " " + s, Before: s, steps: versionSteps(b.Name, "selectableFields"),
				Message: fmt.Sprintf("%s can no longer be selected by", s),
			})
		}
	}
	// Nobody writes a version that neither side serves; one that is only
	// stored still decides what is kept.
	worst := Critical
	if !a.Served && !b.Served {
		if !a.Storage && !b.Storage {
			return
		}
		worst = Low
	}
	var added []string
	w := schemaWalk{
		say: func(rule, at string, steps []step, f Finding, capped ...Severity) {
			f.Field, f.steps = b.Name+" "+at, append(versionSteps(b.Name, "schema", "openAPIV3Schema"), steps...)
			d.add(rule, f, append(capped, worst)...)
		},
		added: func(at string) { added = append(added, at) },
	}
	w.root(a.Schema, b.Schema)
	if len(added) > 0 {
		d.add("crd.fields-added", Finding{
			Field: b.Name, After: some(added, 40), steps: versionSteps(b.Name, "schema"),
			Message: fmt.Sprintf("%s added: %s", plural(len(added), "field", "fields"), some(added, 5)),
		})
	}
}

func (d crdDiff) subresources(a, b kinds.Version) {
	_, hadStatus := a.Subresources["status"]
	_, hasStatus := b.Subresources["status"]
	f := Finding{Field: b.Name + " status", steps: versionSteps(b.Name)}
	switch {
	case hadStatus && !hasStatus:
		f.Before, f.Message = "subresource", "status is no longer a subresource"
		d.add("crd.status-subresource-removed", f)
	case !hadStatus && hasStatus:
		f.After, f.Message = "subresource", "status becomes a subresource"
		d.add("crd.status-subresource-added", f)
	}
	was, is := kobj.Map(a.Subresources, "scale"), kobj.Map(b.Subresources, "scale")
	f = Finding{Field: b.Name + " scale", Before: show(kobj.At(a.Subresources, "scale")), After: show(kobj.At(b.Subresources, "scale")), steps: versionSteps(b.Name, "subresources")}
	switch {
	case was != nil && is == nil:
		f.Message = "the scale subresource is removed"
		d.add("crd.scale-subresource-removed", f)
	case was != nil && !reflect.DeepEqual(was, is):
		f.Message = "the scale subresource reads other fields"
		d.add("crd.scale-subresource-changed", f)
	}
}
