package k8s

import (
	"fmt"
	"slices"
	"strings"
)

// CRD holds the names and versions of a CustomResourceDefinition, v1 or v1beta1.
type CRD struct {
	Name, Group, Kind, Plural string
	Namespaced                bool         // objects of the kind are namespaced
	Versions                  []CRDVersion // in file order
}

// CRDVersion is one version of a CRD. It includes the fields that v1beta1 declares once for all
// versions. Its maps are shared with the CRD and must not be modified.
type CRDVersion struct {
	Name                        string
	Served, Storage, Deprecated bool
	Schema                      map[string]any // openAPIV3Schema; may be nil
	Subresources                map[string]any // may be nil
	Selectable                  []string       // JSON paths of the fields that field selectors can use
}

// ParseCRD decodes a CRD. A field that is missing or of a wrong type becomes the zero value.
// [CRD.Faults] reports invalid names.
func ParseCRD(crd map[string]any) CRD {
	spec := Map(crd, "spec")
	d := CRD{
		Name: Object(crd).Name(), Group: Text(spec, "group"), Namespaced: Text(spec, "scope") != "Cluster",
		Kind: Text(spec, "names", "kind"), Plural: Text(spec, "names", "plural"),
	}
	list := Items(spec, "versions")
	if version := Text(spec, "version"); len(list) == 0 && version != "" { // v1beta1
		list = []map[string]any{{"name": version, "served": true, "storage": true}}
	}
	for _, m := range list {
		v := CRDVersion{
			Name: Text(m, "name"), Served: True(m, "served"), Storage: True(m, "storage"), Deprecated: True(m, "deprecated"),
			Schema: Map(m, "schema", "openAPIV3Schema"), Subresources: Map(m, "subresources"),
		}
		if v.Schema == nil {
			v.Schema = Map(spec, "validation", "openAPIV3Schema")
		}
		if v.Subresources == nil {
			v.Subresources = Map(spec, "subresources")
		}
		for _, s := range Items(m, "selectableFields") {
			v.Selectable = append(v.Selectable, Text(s, "jsonPath"))
		}
		d.Versions = append(d.Versions, v)
	}
	return d
}

// Version returns the version with this name, and whether it exists.
func (d CRD) Version(name string) (CRDVersion, bool) {
	return d.findVersion(func(v CRDVersion) bool { return v.Name == name })
}

// Stored returns the storage version, and whether there is one.
func (d CRD) Stored() (CRDVersion, bool) {
	return d.findVersion(func(v CRDVersion) bool { return v.Storage })
}

// findVersion returns the first version that a predicate accepts, and whether there is one.
func (d CRD) findVersion(is func(CRDVersion) bool) (CRDVersion, bool) {
	for _, v := range d.Versions {
		if is(v) {
			return v, true
		}
	}
	return CRDVersion{}, false
}

// Served returns the names of the served versions, in file order.
func (d CRD) Served() []string {
	var out []string
	for _, v := range d.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// Faults returns the invalid, duplicate and reserved names for which the API server rejects the CRD, sorted
// by field.
func (d CRD) Faults() []string {
	var out []string
	fault := func(field, text string) {
		if text != "" {
			out = append(out, field+": "+text)
		}
	}
	fault("spec.group", GroupFault(d.Group))
	fault("spec.names.plural", LabelFault(d.Plural))
	fault("spec.names.kind", LabelFault(strings.ToLower(d.Kind)))
	for i, v := range d.Versions {
		at := fmt.Sprintf("spec.versions[%d].name", i)
		fault(at, LabelFault(v.Name))
		if slices.ContainsFunc(d.Versions[:i], func(before CRDVersion) bool { return before.Name == v.Name }) {
			fault(at, fmt.Sprintf("version %q appears twice", v.Name))
		}
	}
	if want := d.Plural + "." + d.Group; len(out) == 0 && d.Name != want {
		fault("metadata.name", fmt.Sprintf("%q must be %q (spec.names.plural and spec.group)", d.Name, want))
	}
	return out
}
