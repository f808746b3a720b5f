package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
)

// checkImages rejects invalid image references. The kubelet cannot pull such an image, so the pod would never
// start.
func checkImages(c *checker) {
	for _, d := range c.csv.Deployments {
		pod := k8s.Map(d.Spec, "template", "spec")
		for _, list := range k8s.ContainerLists() {
			for i, container := range k8s.Items(pod, list) {
				if image := k8s.Text(container, "image"); image != "" && !imageref.Valid(image) {
					c.faultf("%s.image: %q is not an image reference", diag.Item(d.Field+".spec.template.spec."+list, i), image)
				}
			}
		}
	}
}

// Conventions returns sorted warnings for bundle authors. The problems do not prevent installation, but
// Operator Framework's validators and publishing tools reject them or warn about them.
func Conventions(b *Bundle) []diag.Warning {
	c := &checker{b: b, csv: b.CSV}
	for i, r := range c.csv.RelatedImages {
		if !imageref.Valid(r.Image) {
			c.warnf("related-image", "%s.image: %q is not an image reference, so it cannot be mirrored", diag.Item("spec.relatedImages", i), r.Image)
		}
	}
	for _, d := range c.csv.Deployments {
		for _, container := range k8s.Containers(k8s.Map(d.Spec, "template", "spec")) {
			image := k8s.Text(container, "image")
			if why, successor, gone := imageref.FindGone(image); gone {
				if successor != "" {
					why += ": use " + successor
				}
				c.warnf("image-gone", "%s: container %s: image %s is gone: %s", d.Field, k8s.Text(container, "name"), image, why)
			}
		}
	}
	for _, field := range c.csv.unused {
		c.warnf("field-unused", "%s is not used: OLM labels and selects no objects by it", field)
	}
	const maxLabel = 63
	if len(c.csv.Name) > maxLabel {
		c.warnRejectedf(nil, "csv-name", "metadata.name: %q is longer than %d characters, the limit for labels of OLM v0", c.csv.Name, maxLabel)
	}
	c.checkServiceAccounts()
	c.checkUnowned()
	c.checkAnnotations()
	c.checkExamples()
	return diag.SortWarnings(c.warnings)
}

func (c *checker) warnRejectedf(o *ManifestObject, code, format string, args ...any) {
	c.warnf(code, "%s: operator-framework's validators reject it", fmt.Sprintf(format, args...))
	if o != nil {
		c.warnings[len(c.warnings)-1].Pos = o.Pos()
	}
}

// checkServiceAccounts warns about ServiceAccounts in the bundle that OLM also generates from the
// permissions in the CSV.
func (c *checker) checkServiceAccounts() {
	generated := map[string]bool{}
	for _, p := range slices.Concat(c.csv.Permissions, c.csv.ClusterPerms) {
		generated[p.ServiceAccount] = true
	}
	for i := range c.b.Objects {
		if o := &c.b.Objects[i]; o.Is("", "ServiceAccount") && generated[o.Name()] {
			c.warnRejectedf(o, "service-account-twice", "%s is also generated from the CSV's permissions, and both are merged", o)
		}
	}
}

// checkUnowned warns about CRD versions in the bundle that the CSV does not list as owned.
func (c *checker) checkUnowned() {
	owned := map[[2]string]bool{}
	for _, api := range c.csv.OwnedCRDs {
		owned[[2]string{api.Name, api.Version}] = true
	}
	for i := range c.b.Objects {
		o := &c.b.Objects[i]
		if !k8s.IsCRD(o.Object) {
			continue
		}
		for _, v := range k8s.ParseCRD(o.Object).Versions {
			if !owned[[2]string{o.Name(), v.Name}] {
				c.warnings = append(c.warnings, diag.Warning{Pos: o.Pos(), Code: "crd-not-owned", Msg: fmt.Sprintf("%s: the CSV does not own version %s", o, v.Name)})
			}
		}
	}
}

// checkAnnotations warns about misspelt OLM annotations and invalid skip ranges.
func (c *checker) checkAnnotations() {
	for _, name := range []string{"olm.skipRange", "olm.operatorGroup", "olm.operatorNamespace", "olm.properties", "olm.maxOpenShiftVersion"} {
		for key := range c.csv.Annotations {
			if key != name && strings.EqualFold(key, name) {
				c.warnRejectedf(nil, "annotation-name", "metadata.annotations: %q is a misspelling of %q", key, name)
			}
		}
	}
	if c.csv.Annotations["olm.properties"] != "" {
		c.warnRejectedf(nil, "properties", "metadata.annotations: olm.properties should be in metadata/properties.yaml")
	}
	if r := c.csv.Annotations["olm.skipRange"]; r != "" {
		if _, err := catalog.ParseRange(r); err != nil {
			c.warnRejectedf(nil, "bad-skip-range", "metadata.annotations: invalid olm.skipRange: %v", err)
		}
	}
}

// checkExamples checks the annotation alm-examples, which contains the example objects that consoles show.
func (c *checker) checkExamples() {
	examples := c.csv.Annotations["alm-examples"]
	if strings.TrimSpace(examples) == "" {
		return
	}
	var list []struct{ APIVersion, Kind string }
	if err := json.Unmarshal([]byte(examples), &list); err != nil {
		c.warnRejectedf(nil, "examples", "metadata.annotations: alm-examples is not a list of objects: %v", err)
		return
	}
	for _, e := range list {
		group, version, _ := strings.Cut(e.APIVersion, "/")
		provides := func(a API) bool {
			_, of, _ := strings.Cut(a.Name, ".")
			return a.Kind == e.Kind && a.Version == version && (of == group || a.Group == group)
		}
		if !slices.ContainsFunc(c.csv.OwnedCRDs, provides) && !slices.ContainsFunc(c.csv.OwnedAPIs, provides) {
			c.warnRejectedf(nil, "examples", "metadata.annotations: alm-examples has a %s %s, which the CSV does not own", e.APIVersion, e.Kind)
		}
	}
}
