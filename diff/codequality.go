package diff

// qualityIssue is a finding in the Code Quality format of GitLab.
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

// CodeQuality returns the report in the Code Quality format of GitLab, for merge requests:
// a list of the findings without a waiver, each at its line in the committed files. A
// finding without a file, or in a removed file, is at fallback, the path of the lock. The
// fingerprints, by which GitLab recognizes a finding, are those of [SARIF], and are
// unique.
func CodeQuality(r *Report, fallback string) ([]byte, error) {
	issues, seen := []qualityIssue{}, map[string]bool{}
	for _, f := range r.Findings {
		print := findingFingerprint(f)
		if f.Waiver != "" || seen[print] {
			continue
		}
		seen[print] = true
		at := qualityLocation{f.Place.Path, map[string]int{"begin": max(f.Place.Line, 1)}}
		if f.Place.Path == "" || f.Place.Removed {
			at = qualityLocation{fallback, map[string]int{"begin": 1}}
		}
		issues = append(issues, qualityIssue{findingSentence(f), f.Rule, print, qualitySeverity(f.Severity), at})
	}
	return indentJSON(issues)
}

// qualitySeverity returns the severity in the terms of GitLab.
func qualitySeverity(s Severity) string {
	return map[Severity]string{Critical: "blocker", High: "critical", Medium: "major", Low: "minor", Info: "info"}[s]
}
