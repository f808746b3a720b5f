package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Definition is the head of a CustomResourceDefinition of either API version.
type Definition struct {
	Name, Group, Kind, Plural string
	Namespaced                bool      // its objects lie in a namespace
	Versions                  []Version // in file order
}

// Version is one version of a definition, with what v1beta1 says of all
// versions at once. Its mappings are the definition's own: nobody changes them.
type Version struct {
	Name                        string
	Served, Storage, Deprecated bool
	Schema                      map[string]any // openAPIV3Schema; nil where there is none
	Subresources                map[string]any // nil where there are none
	Selectable                  []string       // JSON paths that objects can be selected by
}

// Define reads a definition. What it does not say, or says by another type, is
// empty; [Definition.Faults] judges it.
func Define(crd map[string]any) Definition {
	spec := kobj.Map(crd, "spec")
	d := Definition{
		Name: kobj.Object(crd).Name(), Group: kobj.Text(spec, "group"), Namespaced: kobj.Text(spec, "scope") != "Cluster",
		Kind: kobj.Text(spec, "names", "kind"), Plural: kobj.Text(spec, "names", "plural"),
	}
	list := kobj.Items(spec, "versions")
	if version := kobj.Text(spec, "version"); len(list) == 0 && version != "" { // v1beta1
		list = []map[string]any{{"name": version, "served": true, "storage": true}}
	}
	for _, m := range list {
		v := Version{
			Name: kobj.Text(m, "name"), Served: kobj.True(m, "served"), Storage: kobj.True(m, "storage"), Deprecated: kobj.True(m, "deprecated"),
			Schema: kobj.Map(m, "schema", "openAPIV3Schema"), Subresources: kobj.Map(m, "subresources"),
		}
		if v.Schema == nil {
			v.Schema = kobj.Map(spec, "validation", "openAPIV3Schema")
		}
		if v.Subresources == nil {
			v.Subresources = kobj.Map(spec, "subresources")
		}
		for _, s := range kobj.Items(m, "selectableFields") {
			v.Selectable = append(v.Selectable, kobj.Text(s, "jsonPath"))
		}
		d.Versions = append(d.Versions, v)
	}
	return d
}

// Version returns the version of that name.
func (d Definition) Version(name string) (Version, bool) {
	return d.first(func(v Version) bool { return v.Name == name })
}

// Stored returns the version that objects are stored in.
func (d Definition) Stored() (Version, bool) {
	return d.first(func(v Version) bool { return v.Storage })
}

func (d Definition) first(is func(Version) bool) (Version, bool) {
	for _, v := range d.Versions {
		if is(v) {
			return v, true
		}
	}
	return Version{}, false
}

// Served returns the names of the versions that are served, in file order.
func (d Definition) Served() []string {
	var out []string
	for _, v := range d.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// Faults returns why no API server takes the definition under its names, each
// with its field: names that are not legal, given twice, or the cluster's own.
func (d Definition) Faults() []string {
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
		if slices.ContainsFunc(d.Versions[:i], func(before Version) bool { return before.Name == v.Name }) {
			fault(at, fmt.Sprintf("version %q appears twice", v.Name))
		}
	}
	if want := d.Plural + "." + d.Group; len(out) == 0 && d.Name != want {
		fault("metadata.name", fmt.Sprintf("%q is not %q, as spec.names.plural and spec.group say", d.Name, want))
	}
	return out
}
