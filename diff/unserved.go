package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// Unserved returns the findings about objects of a state that the given Kubernetes version, such as
// "1.37", does not accept, most severe first:
//
//   - objects with an API version that this Kubernetes version does not serve (api.removed, according to
//     apiTable)
//   - the user's custom resources that the CRDs of the state reject (resources.rejected) or do
//     not serve (resources.version-not-served)
//   - invalid CRDs (resources.schema-invalid). Only CRDs of the user and CRDs that an overlay changes are
//     checked, because render has checked the CRDs of bundles.
//   - with lower severity, objects with a deprecated API version (api.deprecated)
//
// If version is empty, API versions are not checked. The error lists the invalid objects of the
// state.
func Unserved(s State, version string) ([]Finding, error) {
	s.KubernetesVersion = version
	now, err := newView(s)
	if err != nil {
		return nil, err
	}
	none := &view{byKey: map[k8s.Key]*Object{}, crds: map[k8s.Key]*Object{}}
	c := &comparison{before: none, after: now, rules: rulesByID(), changed: pairObjects(none, now), claimed: claims{}}
	compareAPIs(c)
	compareResources(c)
	c.checkOwnCRDs()
	counts := []string{"api.removed", "api.deprecated", "resources.rejected", "resources.schema-invalid", "resources.version-not-served"}
	c.found = slices.DeleteFunc(c.found, func(f Finding) bool { return !slices.Contains(counts, f.Rule) })
	locateFindings(c.found)
	slices.SortStableFunc(c.found, compareFindings)
	return c.found, nil
}

// checkOwnCRDs checks the CRDs that render did not check, always by the rules of the Kubernetes
// libraries in this program. The check is stricter than an update in a cluster: there, the API
// server accepts some faults that the existing CRD already has.
func (c *comparison) checkOwnCRDs() {
	for i := range c.after.Objects {
		o := &c.after.Objects[i]
		if o.Operator != "" && o.sources == nil || k8s.Text(o.Content, "apiVersion") != "apiextensions.k8s.io/v1" || !k8s.IsCRD(o.Content) {
			continue
		}
		if slices.ContainsFunc(c.found, func(f Finding) bool { return f.Rule == "resources.schema-invalid" && f.where == o }) {
			continue // already reported with a custom resource
		}
		for _, f := range admit.CheckCRD(o.Content) {
			c.add("resources.schema-invalid", o, Finding{Message: strings.TrimPrefix(f.Field+": ", ": ") + f.Message, path: parseFieldPath(f.Field), explains: noField()})
		}
	}
}
