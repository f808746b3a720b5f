package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// Unserved returns the findings about objects of a state that a Kubernetes version,
// "1.37", does not accept, worst first:
//
//   - objects at an API that it does not serve (api.removed, from the table of
//     Kubernetes' deprecated APIs)
//   - custom resources of the user that the CRDs of the state refuse
//     (resources.rejected) or do not serve (resources.version-not-served)
//   - CRDs that are the user's own or changed by an overlay, and that an API server
//     refuses to create (resources.schema-invalid); CRDs of bundles were checked when
//     they were rendered
//   - milder, objects at an API that it deprecates (api.deprecated)
//
// Without a version, APIs are not checked. An error names the invalid objects of the
// state.
func Unserved(s State, version string) ([]Finding, error) {
	s.KubernetesVersion = version
	now, err := newView(s)
	if err != nil {
		return nil, err
	}
	none := &view{byKey: map[k8s.Key]*Object{}, crds: map[k8s.Key]*Object{}}
	c := &comparison{before: none, after: now, rules: rulesByID(), changed: pairObjects(none, now), claimed: map[k8s.Key][][]step{}}
	compareAPIs(c)
	compareResources(c)
	c.definitions()
	counts := []string{"api.removed", "api.deprecated", "resources.rejected", "resources.schema-invalid", "resources.version-not-served"}
	c.found = slices.DeleteFunc(c.found, func(f Finding) bool { return !slices.Contains(counts, f.Rule) })
	locateFindings(c.found)
	slices.SortStableFunc(c.found, compareFindings)
	return c.found, nil
}

// definitions checks the CRDs that were not checked by rendering. The validation is that
// of this program's Kubernetes libraries, for any requested version. An API server accepts
// some faults that the CRD in the cluster already has, but the state does not contain that
// CRD.
func (c *comparison) definitions() {
	for i := range c.after.Objects {
		o := &c.after.Objects[i]
		if o.Operator != "" && o.sources == nil || k8s.Text(o.Content, "apiVersion") != "apiextensions.k8s.io/v1" || !k8s.IsCRD(o.Content) {
			continue
		}
		if slices.ContainsFunc(c.found, func(f Finding) bool { return f.Rule == "resources.schema-invalid" && f.where == o }) {
			continue // already reported for a custom resource
		}
		for _, f := range admit.CheckCRD(o.Content) {
			c.add("resources.schema-invalid", o, Finding{Message: strings.TrimPrefix(f.Field+": ", ": ") + f.Message, steps: fieldSteps(f.Field), covers: nothing()})
		}
	}
}
