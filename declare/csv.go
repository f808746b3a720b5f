package declare

import (
	"encoding/json"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// propertiesAnnotation is an annotation with all properties of a ClusterServiceVersion. If it is
// set, OLM derives no properties from the spec (pkg/controller/registry/resolver/projection in
// OLM).
const propertiesAnnotation = "operatorframework.io/properties"

// csv contains the decoded fields of a ClusterServiceVersion. The object is exported from a
// cluster, so other fields are ignored and not reported as unknown.
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

func (r *reader) readClusterServiceVersion(n *yamlnode.Node) {
	var o csv
	r.errs.Add(r.at(n), yamlnode.Decode(r.file, n, &o))
	c := r.newMetadataChecker(n)
	if _, hasNamespace := c.Fields["metadata.namespace"]; !hasNamespace || o.Metadata.Namespace == "placeholder" {
		r.set.Warnings = append(r.set.Warnings, diag.Warning{
			Pos: c.Whole, Code: "no-state", Msg: "ClusterServiceVersion without a namespace is ignored: it is a bundle manifest, not exported from a cluster",
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
		v.Properties, v.Annotated = c.parseProperties(text), true
	} else {
		v.Properties = derivedProperties(o)
	}
	declare(r, &r.set.CSVs, v)
}

// newMetadataChecker returns a checker for the metadata of n only: the rest of the object is large,
// and its faults are not reported.
func (r *reader) newMetadataChecker(n *yamlnode.Node) checker {
	c := r.newChecker(n, diag.Fields{})
	if _, m := yamlnode.Field(n, "metadata"); m != nil {
		for field, pos := range yamlnode.Positions(r.file, m) {
			c.Fields["metadata."+field] = pos
		}
		c.Fields["metadata"] = r.at(m)
	}
	return c
}

// parseProperties decodes the JSON of the properties annotation.
func (c checker) parseProperties(text string) []catalog.Property {
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

// derivedProperties returns the properties for the owned and required APIs in the spec.
func derivedProperties(o csv) []catalog.Property {
	var out []catalog.Property
	crd := func(a apiRef) catalog.GVK {
		group, _ := catalog.GroupOf(a.Name)
		return catalog.GVK{Group: group, Version: a.Version, Kind: a.Kind}
	}
	service := func(a apiRef) catalog.GVK { return catalog.GVK{Group: a.Group, Version: a.Version, Kind: a.Kind} }
	for _, a := range o.Spec.CRDs.Owned {
		out = append(out, catalog.GVKProperty(crd(a)))
	}
	for _, a := range o.Spec.Services.Owned {
		out = append(out, catalog.GVKProperty(service(a)))
	}
	for _, a := range o.Spec.CRDs.Required {
		out = append(out, catalog.RequiredGVKProperty(crd(a)))
	}
	for _, a := range o.Spec.Services.Required {
		out = append(out, catalog.RequiredGVKProperty(service(a)))
	}
	return out
}

// inferPackages sets the package of each ClusterServiceVersion without propertiesAnnotation. It uses the
// package of the Subscriptions whose status.installedCSV names the ClusterServiceVersion, if all of them have
// the same package.
func (s *Set) inferPackages() {
	for i, c := range s.CSVs {
		if c.Annotated || c.Copied || slices.ContainsFunc(c.Properties, func(p catalog.Property) bool { return p.Type == catalog.TypePackage }) {
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
			s.CSVs[i].Properties = append(slices.Clone(c.Properties), catalog.PackageProperty(packages[0], c.Version))
		}
	}
}

// installPlan contains the decoded fields of an InstallPlan. The object is exported from a cluster,
// so other fields are ignored.
type installPlan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata" yamlnode:"open"`
	Spec       struct{} `json:"spec" yamlnode:"open"`
	Status     struct {
		Lookups []struct {
			CSV   string `json:"identifier"`
			Image string `json:"path"`
		} `json:"bundleLookups"`
	} `json:"status" yamlnode:"open"`
}

func (r *reader) readInstallPlan(n *yamlnode.Node) {
	var o installPlan
	r.errs.Add(r.at(n), yamlnode.Decode(r.file, n, &o))
	c := r.newMetadataChecker(n)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	for _, l := range o.Status.Lookups {
		r.set.Images = append(r.set.Images, BundleImage{o.Metadata.Namespace, l.CSV, l.Image})
	}
}

// addImages sets the bundle images of ClusterServiceVersions, from InstallPlans. If InstallPlans name several
// images for a ClusterServiceVersion, it uses the last image with a digest, or else the last image.
func (s *Set) addImages() {
	images := map[[2]string]string{}
	for _, im := range s.Images {
		id := [2]string{im.Namespace, im.CSV}
		if imageref.Valid(im.Image) && (imageref.DigestIn(im.Image) != "" || imageref.DigestIn(images[id]) == "") {
			images[id] = im.Image
		}
	}
	for i, c := range s.CSVs {
		s.CSVs[i].Image = images[[2]string{c.Namespace, c.Name}]
	}
}
