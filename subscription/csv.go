package subscription

import (
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// propertiesAnnotation replaces all that could be read from the rest of a
// ClusterServiceVersion (resolution.md section 3.2).
const propertiesAnnotation = "operatorframework.io/properties"

// csv is what is read of a ClusterServiceVersion. It is state, not a wish, so
// the rest is passed over.
type csv struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata" yamlnode:"open"`
	Spec       struct {
		Version  string   `json:"version"`
		Replaces string   `json:"replaces"`
		CRDs     apiLists `json:"customresourcedefinitions"`
		Services apiLists `json:"apiservicedefinitions"`
	} `json:"spec" yamlnode:"open"`
	Status struct {
		Phase  string `json:"phase"`
		Reason string `json:"reason"`
	} `json:"status" yamlnode:"open"`
}

type apiLists struct {
	Owned    []apiRef `json:"owned"`
	Required []apiRef `json:"required"`
}

type apiRef struct {
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func (r *reader) clusterServiceVersion(n *yaml.Node) {
	var o csv
	r.errs.Add(r.at(n), yamlnode.Decode(r.file, n, &o))
	c := r.checker(n, diag.Fields{})
	if _, m := yamlnode.Field(n, "metadata"); m != nil { // the rest is large, and none of it is complained of
		for field, pos := range yamlnode.Positions(r.file, m) {
			c.Fields["metadata."+field] = pos
		}
		c.Fields["metadata"] = r.at(m)
	}
	if _, said := c.Fields["metadata.namespace"]; !said || o.Metadata.Namespace == "placeholder" {
		r.set.Warnings = append(r.set.Warnings, diag.Warning{
			Pos: c.Whole, Code: "no-state", Msg: "ClusterServiceVersion without a namespace of its own is passed over: a bundle's manifest is no state of a cluster",
		})
		return
	}
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	_, copied := o.Metadata.Labels["olm.copiedFrom"]
	v := ClusterServiceVersion{
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Version: o.Spec.Version, Replaces: o.Spec.Replaces,
		Copied: copied || o.Status.Reason == "Copied", Pos: c.Whole,
	}
	if text, ok := o.Metadata.Annotations[propertiesAnnotation]; ok {
		v.Properties, v.Annotated = c.annotated(text), true
	} else {
		v.Properties = derived(o)
	}
	declare(r, &r.set.CSVs, v)
}

// annotated reads the annotation's JSON.
func (c checker) annotated(text string) []catalog.Property {
	var list struct {
		Properties []struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"properties"`
	}
	field := "metadata.annotations." + propertiesAnnotation
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		c.Addf(field, "not a JSON object with properties: %w", err)
		return nil
	}
	var out []catalog.Property
	for i, p := range list.Properties {
		value, err := yamlnode.Canonical(p.Value)
		if p.Type == "" || err != nil {
			c.Addf(field, "property %d has no type or no value", i)
			continue
		}
		out = append(out, catalog.Property{Type: p.Type, Value: value})
	}
	return out
}

// derived returns the properties that the owned and required APIs stand for.
func derived(o csv) []catalog.Property {
	var out []catalog.Property
	crd := func(a apiRef) catalog.GVK {
		group, _ := olm.GroupOf(a.Name)
		return catalog.GVK{Group: group, Version: a.Version, Kind: a.Kind}
	}
	service := func(a apiRef) catalog.GVK { return catalog.GVK{Group: a.Group, Version: a.Version, Kind: a.Kind} }
	for _, a := range o.Spec.CRDs.Owned {
		out = append(out, olm.Provided(crd(a)))
	}
	for _, a := range o.Spec.Services.Owned {
		out = append(out, olm.Provided(service(a)))
	}
	for _, a := range o.Spec.CRDs.Required {
		out = append(out, olm.Required(crd(a)))
	}
	for _, a := range o.Spec.Services.Required {
		out = append(out, olm.Required(service(a)))
	}
	return out
}

// inferPackages adds olm.package to each ClusterServiceVersion without the
// annotation that Subscriptions to exactly one package call installed.
func (s *Set) inferPackages() {
	for i, c := range s.CSVs {
		if c.Annotated || c.Copied || slices.ContainsFunc(c.Properties, func(p catalog.Property) bool { return p.Type == olm.TypePackage }) {
			continue
		}
		var packages []string
		for _, sub := range s.Subscriptions {
			if sub.Namespace == c.Namespace && sub.InstalledCSV == c.Name && sub.Package != "" {
				packages = append(packages, sub.Package)
			}
		}
		slices.Sort(packages)
		if packages = slices.Compact(packages); len(packages) == 1 {
			s.CSVs[i].Properties = append(slices.Clone(c.Properties), olm.Named(packages[0], c.Version))
		}
	}
}
