package diff

// qualityIssue is a finding as GitLab's Code Quality reads it.
type qualityIssue struct {
	Description string          `json:"description"`
	CheckName   string          `json:"check_name"`
	Fingerprint string          `json:"fingerprint"`
	Severity    string          `json:"severity"`
	Location    qualityLocation `json:"location"`
}

type qualityLocation struct {
	Path  string         `json:"path"`
	Lines map[string]int `json:"lines"`
}

// CodeQuality returns the report as GitLab shows it in a merge request: a list of the
// findings that no waiver covers, each at its line in the committed files. What has no
// file of its own, or one that is gone, is at fallback, the path of the lock. The
// fingerprints, by which GitLab knows a finding again, are those of [SARIF], and no
// two are equal.
func CodeQuality(r *Report, fallback string) ([]byte, error) {
	issues, seen := []qualityIssue{}, map[string]bool{}
	for _, f := range r.Findings {
		print := fingerprint(f)
		if f.Waiver != "" || seen[print] {
			continue
		}
		seen[print] = true
		at := qualityLocation{f.Place.Path, map[string]int{"begin": max(f.Place.Line, 1)}}
		if f.Place.Path == "" || f.Place.Removed {
			at = qualityLocation{fallback, map[string]int{"begin": 1}}
		}
		issues = append(issues, qualityIssue{sentence(f), f.Rule, print, qualitySeverity(f.Severity), at})
	}
	return indented(issues)
}

// qualitySeverity returns GitLab's word.
func qualitySeverity(s Severity) string {
	return map[Severity]string{Critical: "blocker", High: "critical", Medium: "major", Low: "minor", Info: "info"}[s]
}
