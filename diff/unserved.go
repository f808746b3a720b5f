package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/kobj"
)

// Unserved returns what of a state a Kubernetes of that version, "1.37", does not
// take, worst first: objects at an API that it no longer serves (api.removed, from
// the table of Kubernetes' deprecated APIs), custom resources of the user's that
// the definitions of the state refuse (resources.rejected) or do not serve
// (resources.version-not-served), and definitions that are the user's own or that an
// overlay changes, and that an API server does not take when they are created
// (resources.schema-invalid): those of bundles went through that when they were
// rendered. Then, milder, objects at an API that a later
// version removes (api.deprecated). Without a version, APIs are not looked at. An
// error names what is broken of the state.
func Unserved(s State, version string) ([]Finding, error) {
	s.KubernetesVersion = version
	now, err := newView(s)
	if err != nil {
		return nil, err
	}
	none := &view{byKey: map[kobj.Key]*Object{}, crds: map[kobj.Key]*Object{}}
	c := &comparison{before: none, after: now, rules: rulesByID(), changed: pairs(none, now)}
	compareAPIs(c)
	compareResources(c)
	c.definitions()
	counts := []string{"api.removed", "api.deprecated", "resources.rejected", "resources.schema-invalid", "resources.version-not-served"}
	c.found = slices.DeleteFunc(c.found, func(f Finding) bool { return !slices.Contains(counts, f.Rule) })
	locate(c.found)
	slices.SortStableFunc(c.found, compareFindings)
	return c.found, nil
}

// definitions looks at the definitions that no rendering has looked at. What an API
// server says of them is that of this program, whatever the version asked about: it
// lets pass what a definition in the cluster has already, and that cannot be known.
func (c *comparison) definitions() {
	for i := range c.after.Objects {
		o := &c.after.Objects[i]
		if o.Operator != "" && o.sources == nil || kobj.Text(o.Content, "apiVersion") != "apiextensions.k8s.io/v1" || !kobj.IsCRD(o.Content) {
			continue
		}
		if slices.ContainsFunc(c.found, func(f Finding) bool { return f.Rule == "resources.schema-invalid" && f.where == o }) {
			continue // a custom resource was in its way already
		}
		for _, f := range admit.Define(o.Content) {
			c.add("resources.schema-invalid", o, Finding{Message: strings.TrimPrefix(f.Field+": ", ": ") + f.Message, steps: fieldSteps(f.Field)})
		}
	}
}
