package gate

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// mostNamed is how many clusters a sentence names.
const mostNamed = 5

// String says what a reason is, with the first of its clusters.
func (r Reason) String() string {
	words := map[Cause]string{
		NotUpgradeable: "must not be upgraded", NotObserved: "not observed", TooOld: "observed too long ago", OtherBundle: "not at the pin",
		Unhealthy: "not healthy", NotSoaked: "healthy for too short a time", TooFew: "too few clusters",
	}
	var names []string
	for _, c := range r.Clusters[:min(len(r.Clusters), mostNamed)] {
		name := c.Name
		if c.Note != "" {
			name += " (" + c.Note + ")"
		}
		names = append(names, name)
	}
	if more := len(r.Clusters) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return words[r.Cause]
	}
	return words[r.Cause] + ": " + strings.Join(names, ", ")
}

// Text says what was seen, what was asked for where that is not enough, and what
// is not good.
func (v Verdict) Text(rule Rule) string {
	if v.Clusters == 0 {
		return "no cluster gets it"
	}
	text := fmt.Sprintf("good in %d of %s", v.Good, diag.Count(v.Clusters, "cluster"))
	if !v.Pass {
		text += fmt.Sprintf(" (asked for: %s, at least %d", rule.Healthy, rule.Clusters)
		if rule.Soak > 0 {
			text += fmt.Sprintf(", for %s", rule.Soak)
		}
		text += ")"
	}
	for _, r := range v.Reasons {
		text += "; " + r.String()
	}
	return text
}
