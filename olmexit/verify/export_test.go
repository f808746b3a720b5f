package verify

import "github.com/quayside/quayside/olmexit/plan"

// Compare returns the findings of every rule about two captures of a namespace, after the steps
// of a plan up to a number: first those about objects, then those about permissions.
func Compare(p *plan.Plan, step int, before, after *Evidence) []Finding {
	c := &comparison{plan: p, step: step, gone: removedBy(p, step)}
	var out []Finding
	for _, r := range []rule{sameUID, noOwner, checkConversion, checkAvailable, noRestart} {
		out = append(out, c.each(r, before, after)...)
	}
	return append(out, c.compareRights(before, after)...)
}
