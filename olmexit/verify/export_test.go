package verify

import "github.com/quayside/quayside/olmexit/plan"

// Compare returns the findings of all rules for two captures of a namespace, after the steps of a plan
// up to a number: first those about objects, then those about permissions.
func Compare(p *plan.Plan, step int, before, after *Evidence) []Finding {
	c := &comparison{plan: p, step: step, removed: removedBy(p, step)}
	var out []Finding
	for _, r := range []compareRule{checkSameUID, checkNoOwner, checkConversion, checkAvailable, checkNoRestart} {
		out = append(out, c.compareEach(r, before, after)...)
	}
	return append(out, c.comparePermissions(before, after)...)
}
