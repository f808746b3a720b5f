package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// compareVersions compares the versions of the CRD and its storage version.
func (d crdDiff) compareVersions() {
	old, now := k8s.ParseCRD(d.old.Content), k8s.ParseCRD(d.now.Content)
	seen, observed := d.c.opt.Stored[old.Name]
	stored := slices.Concat(k8s.Texts(d.old.Content, "status", "storedVersions"), seen)
	for _, a := range old.Versions {
		if b, ok := now.Version(a.Name); ok {
			d.compareVersion(a, b)
			continue
		}
		d.reportRemovedVersion(a, a.Storage || slices.Contains(stored, a.Name), observed)
	}
	for _, name := range seen {
		_, had := old.Version(name)
		if _, has := now.Version(name); !had && !has {
			d.reportRemovedVersion(k8s.CRDVersion{Name: name}, true, true)
		}
	}
	for _, b := range now.Versions {
		if _, ok := old.Version(b.Name); !ok {
			d.reportAddedVersion(b, old)
		}
	}
	a, hadOne := old.Stored()
	b, hasOne := now.Stored()
	if hadOne && hasOne && a.Name != b.Name {
		d.add("crd.storage-version-changed", Finding{
			Field: "spec.versions", Before: a.Name, After: b.Name, path: crdVersionAt(b.Name).field("storage"), explains: []fieldPath{crdVersionAt(a.Name).field("storage"), crdVersionAt(b.Name).field("storage")},
			Message: fmt.Sprintf("storage version is %s, was %s", b.Name, a.Name),
		})
	}
}

// reportRemovedVersion reports a removed version. stored is true if clusters may store objects in this
// version. observed is true if the status.storedVersions of the clusters are known.
func (d crdDiff) reportRemovedVersion(v k8s.CRDVersion, stored, observed bool) {
	f := Finding{Field: v.Name, Before: "served", path: fieldAt("spec", "versions"), explains: []fieldPath{crdVersionAt(v.Name)}}
	switch {
	case stored:
		f.Before = "storage version"
		f.Message = fmt.Sprintf("storage version %s is removed", v.Name)
		if observed {
			f.Message += "; the clusters' status.storedVersions contain this version, so the clusters will refuse the CRD"
		}
		d.add("crd.stored-version-removed", f)
	case v.Served:
		f.Message = fmt.Sprintf("version %s is removed", v.Name)
		if observed {
			f.Message += "; no object is stored in this version"
		}
		d.add("crd.served-version-removed", f)
	default:
		f.Before, f.Message = "not served", fmt.Sprintf("version %s, which was not served, is removed", v.Name)
		d.add("crd.served-version-removed", f, Low)
	}
}

// reportAddedVersion reports an added version. Without a conversion webhook, it also reports fields
// of the stored version that the schema of the added version lacks.
func (d crdDiff) reportAddedVersion(v k8s.CRDVersion, old k8s.CRD) {
	d.add("crd.version-added", Finding{
		Field: v.Name, After: servedState(v), Message: fmt.Sprintf("version %s is added", v.Name), path: crdVersionAt(v.Name),
	})
	from, ok := old.Stored()
	if !ok || conversionStrategy(d.now.Content) != "None" || !v.Served && !v.Storage {
		return
	}
	var lost []string
	w := schemaWalk{report: func(rule, at string, _ fieldPath, _ Finding, _ ...Severity) {
		if rule == "crd.field-removed" || rule == "crd.type-changed" || rule == "crd.map-removed" || rule == "crd.unknown-fields-pruned" {
			lost = append(lost, at)
		}
	}}
	w.compareSchemas(from.Schema, v.Schema)
	if len(lost) > 0 {
		d.add("crd.version-differs", Finding{
			Field: v.Name, Before: from.Name, After: v.Name, path: crdVersionAt(v.Name).field("schema"), explains: noField(),
			Message: fmt.Sprintf("%s lacks %s of %s, and there is no conversion webhook: %s",
				v.Name, pluralize(len(lost), "field", "fields"), from.Name, diag.Some(lost, 5)),
		})
	}
}

func servedState(v k8s.CRDVersion) string {
	switch {
	case v.Storage:
		return "storage version"
	case v.Served:
		return "served"
	}
	return "not served"
}

// compareVersion compares one version of the CRD before and after the change.
func (d crdDiff) compareVersion(a, b k8s.CRDVersion) {
	if a.Served && !b.Served {
		d.add("crd.version-unserved", Finding{
			Field: a.Name, Before: "served", After: "not served", path: crdVersionAt(a.Name).field("served"),
			Message: fmt.Sprintf("version %s is no longer served", a.Name),
		})
	}
	if !a.Deprecated && b.Deprecated {
		d.add("crd.version-deprecated", Finding{
			Field: a.Name, After: "deprecated", path: crdVersionAt(a.Name).field("deprecated"),
			Message: fmt.Sprintf("version %s is deprecated", a.Name),
		})
	}
	d.compareSubresources(a, b)
	for _, s := range a.Selectable {
		if !slices.Contains(b.Selectable, s) {
			d.add("crd.selectable-field-removed", Finding{
				Field: b.Name + " " + s, Before: s, path: crdVersionAt(b.Name).field("selectableFields"), explains: []fieldPath{crdVersionAt(b.Name).field("selectableFields").with(step{key: s, by: "jsonPath"})},
				Message: fmt.Sprintf("field selectors can no longer use %s", s),
			})
		}
	}
	// If clients cannot use the version in either state, its schema matters only for the fields that are
	// preserved in storage.
	limit := Critical
	if !a.Served && !b.Served {
		if !a.Storage && !b.Storage {
			return
		}
		limit = Low
	}
	var added []string
	var explains []fieldPath
	schema := crdSchemaAt(b.Name)
	w := schemaWalk{
		report: func(rule, at string, path fieldPath, f Finding, capped ...Severity) {
			f.Field, f.path = b.Name+" "+at, schema.join(path)
			for i := range f.explains {
				f.explains[i] = schema.join(f.explains[i])
			}
			d.add(rule, f, append(capped, limit)...)
		},
		added: func(at string, path fieldPath) {
			added, explains = append(added, at), append(explains, schema.join(path))
		},
	}
	w.compareSchemas(a.Schema, b.Schema)
	if len(added) > 0 {
		d.add("crd.fields-added", Finding{
			Field: b.Name, After: strings.Join(added, ", "), path: crdVersionAt(b.Name).field("schema"), explains: explains,
			Message: fmt.Sprintf("%s added: %s", pluralize(len(added), "field", "fields"), diag.Some(added, 5)),
		})
	}
}

// compareSubresources compares the subresources status and scale of one version.
func (d crdDiff) compareSubresources(a, b k8s.CRDVersion) {
	_, hadStatus := a.Subresources["status"]
	_, hasStatus := b.Subresources["status"]
	f := Finding{Field: b.Name + " status", path: crdVersionAt(b.Name), explains: []fieldPath{crdVersionAt(b.Name).field("subresources", "status")}}
	switch {
	case hadStatus && !hasStatus:
		f.Before, f.Message = "subresource", "the status subresource is removed"
		d.add("crd.status-subresource-removed", f)
	case !hadStatus && hasStatus:
		f.After, f.Message = "subresource", "the status subresource is added"
		d.add("crd.status-subresource-added", f)
	}
	was, is := k8s.Map(a.Subresources, "scale"), k8s.Map(b.Subresources, "scale")
	f = Finding{Field: b.Name + " scale", Before: formatValue(k8s.At(a.Subresources, "scale")), After: formatValue(k8s.At(b.Subresources, "scale")), path: crdVersionAt(b.Name).field("subresources"), explains: []fieldPath{crdVersionAt(b.Name).field("subresources", "scale")}}
	switch {
	case was != nil && is == nil:
		f.Message = "the scale subresource is removed"
		d.add("crd.scale-subresource-removed", f)
	case was != nil && !reflect.DeepEqual(was, is):
		f.Message = "the scale subresource reads different fields"
		d.add("crd.scale-subresource-changed", f)
	}
}
