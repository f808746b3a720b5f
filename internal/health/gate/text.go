package gate

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// maxNamed is the maximum number of clusters in a message.
const maxNamed = 5

// String returns the reason with the names of up to maxNamed clusters.
func (r Reason) String() string {
	words := map[Cause]string{
		NotUpgradeable: "upgrade blocked by the operator", NotObserved: "not observed", Unidentified: "unidentified observation", Duplicate: "observation of another cluster", Unsigned: "unsigned observation", TooOld: "observation too old", OtherBundle: "not at the pinned version",
		Unhealthy: "unhealthy", NotSoaked: "healthy for too short a time", TooFew: "too few clusters",
		NoLongerInstalled: "observed with the operator, but no longer gets it",
	}
	var names []string
	for _, c := range r.Clusters[:min(len(r.Clusters), maxNamed)] {
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

// Text formats a verdict: the number of healthy clusters, the requirements that are not met, and the reasons.
// environment is the name of the environment of the clusters, and may be empty.
func (v Verdict) Text(rule Criteria, environment string) string {
	cluster := strings.TrimSpace(environment + " cluster")
	if v.Clusters == 0 {
		return "not installed in any " + cluster
	}
	text := fmt.Sprintf("healthy in %d of %s", v.Healthy, diag.Count(v.Clusters, cluster))
	if !v.Pass {
		text += fmt.Sprintf("; %s required, at least %d", rule.Healthy, rule.Clusters)
		if rule.Soak > 0 {
			text += fmt.Sprintf(", for %s", rule.Soak)
		}
	}
	for _, r := range v.Reasons {
		text += "; " + r.String()
	}
	return text
}
