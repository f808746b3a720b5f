package diff

import "github.com/quayside/quayside/internal/k8s"

func teamRules() []RuleInfo {
	return []RuleInfo{{"team.missing", High, "new program of no team", "nobody is called when it fails"}}
}

func compareTeams(c *comparison) {
	c.each(func(p pair) {
		if p.before == nil && k8s.Text(p.after.Content, "metadata", "labels", "team") == "" {
			c.add("team.missing", p.after, Finding{Field: "metadata.labels.team", Message: "it has no label team", path: fieldAt("metadata")})
		}
	}, "Deployment.apps")
}
