package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// checkImages refuses references that no container runtime can read: a pod with
// one never starts.
func checkImages(c *checker) {
	for _, d := range c.csv.Deployments {
		pod := kobj.Map(d.Spec, "template", "spec")
		for _, list := range kobj.ContainerLists() {
			for i, container := range kobj.Items(pod, list) {
				if image := kobj.Text(container, "image"); image != "" && !imageref.Valid(image) {
					c.faultf("%s.image: %q is not a reference to an image", index(d.Field+".spec.template.spec."+list, i), image)
				}
			}
		}
	}
}

// Conventions returns, sorted, what the operator framework's own validators
// refuse or warn of, and its tools for publishing with them, although both OLMs
// install it: what an author should know, and nobody else needs to.
func Conventions(b *Bundle) []diag.Warning {
	c := &checker{b: b, csv: b.CSV}
	for i, r := range c.csv.RelatedImages {
		if !imageref.Valid(r.Image) {
			c.warnf("related-image", "%s.image: %q is not a reference to an image, and nothing can mirror it", index("spec.relatedImages", i), r.Image)
		}
	}
	const maxLabel = 63
	if len(c.csv.Name) > maxLabel {
		c.refusedf(nil, "csv-name", "metadata.name: %q is longer than %d characters, as OLM v0's labels are", c.csv.Name, maxLabel)
	}
	c.checkServiceAccounts()
	c.checkUnowned()
	c.checkAnnotations()
	c.checkExamples()
	return diag.SortWarnings(c.warnings)
}

func (c *checker) refusedf(o *Object, code, format string, args ...any) {
	c.warnf(code, "%s, which operator-framework's validators refuse", fmt.Sprintf(format, args...))
	if o != nil {
		c.warnings[len(c.warnings)-1].Pos = o.Pos()
	}
}

// checkServiceAccounts finds those that the CSV makes too.
func (c *checker) checkServiceAccounts() {
	made := map[string]bool{}
	for _, p := range slices.Concat(c.csv.Permissions, c.csv.ClusterPerms) {
		made[p.ServiceAccount] = true
	}
	for i := range c.b.Objects {
		if o := &c.b.Objects[i]; o.Is("", "ServiceAccount") && made[o.Name()] {
			c.refusedf(o, "service-account-twice", "%s is made for the permissions in the CSV too; the two are joined", o)
		}
	}
}

// checkUnowned finds versions of CRDs that the CSV does not own.
func (c *checker) checkUnowned() {
	owned := map[[2]string]bool{}
	for _, api := range c.csv.OwnedCRDs {
		owned[[2]string{api.Name, api.Version}] = true
	}
	for i := range c.b.Objects {
		o := &c.b.Objects[i]
		if !kobj.IsCRD(o.Object) {
			continue
		}
		for _, v := range kinds.Define(o.Object).Versions {
			if !owned[[2]string{o.Name(), v.Name}] {
				c.warnings = append(c.warnings, diag.Warning{Pos: o.Pos(), Code: "crd-not-owned", Msg: fmt.Sprintf("%s: version %s is not among those that the CSV owns", o, v.Name)})
			}
		}
	}
}

// checkAnnotations finds what OLM looks for by another spelling, and a range that
// it cannot read.
func (c *checker) checkAnnotations() {
	for _, name := range []string{"olm.skipRange", "olm.operatorGroup", "olm.operatorNamespace", "olm.properties", "olm.maxOpenShiftVersion"} {
		for key := range c.csv.Annotations {
			if key != name && strings.EqualFold(key, name) {
				c.refusedf(nil, "annotation-name", "metadata.annotations: %q is spelled %q", key, name)
			}
		}
	}
	if c.csv.Annotations["olm.properties"] != "" {
		c.refusedf(nil, "properties", "metadata.annotations: olm.properties belongs into metadata/properties.yaml")
	}
	if r := c.csv.Annotations["olm.skipRange"]; r != "" {
		if _, err := olm.ParseRange(r); err != nil {
			c.refusedf(nil, "bad-skip-range", "metadata.annotations: olm.skipRange cannot be read: %v", err)
		}
	}
}

// checkExamples reads the examples that consoles show.
func (c *checker) checkExamples() {
	examples := c.csv.Annotations["alm-examples"]
	if strings.TrimSpace(examples) == "" {
		return
	}
	var list []struct{ APIVersion, Kind string }
	if err := json.Unmarshal([]byte(examples), &list); err != nil {
		c.refusedf(nil, "examples", "metadata.annotations: alm-examples is no list of objects: %v", err)
		return
	}
	for _, e := range list {
		group, version, _ := strings.Cut(e.APIVersion, "/")
		provides := func(a API) bool {
			_, of, _ := strings.Cut(a.Name, ".")
			return a.Kind == e.Kind && a.Version == version && (of == group || a.Group == group)
		}
		if !slices.ContainsFunc(c.csv.OwnedCRDs, provides) && !slices.ContainsFunc(c.csv.OwnedAPIs, provides) {
			c.refusedf(nil, "examples", "metadata.annotations: alm-examples has a %s %s, which the CSV does not own", e.APIVersion, e.Kind)
		}
	}
}
