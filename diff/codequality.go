package diff

// qualityIssue is one entry of a Code Quality report of GitLab.
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

// CodeQuality returns the findings without a waiver in the Code Quality format of GitLab, for merge
// requests. Each is located at its line in the committed files. A finding without a file, or in a
// removed file, is located at fallback, the path of the lock. Fingerprints are unique and the same
// as in [SARIF], so that GitLab recognizes findings of earlier runs.
func CodeQuality(r *Report, fallback string) ([]byte, error) {
	issues, seen := []qualityIssue{}, map[string]bool{}
	for _, f := range r.Findings {
		fingerprint := findingFingerprint(f)
		if f.Waiver != "" || seen[fingerprint] {
			continue
		}
		seen[fingerprint] = true
		location := qualityLocation{f.Place.Path, map[string]int{"begin": max(f.Place.Line, 1)}}
		if f.Place.Path == "" || f.Place.Removed {
			location = qualityLocation{fallback, map[string]int{"begin": 1}}
		}
		issues = append(issues, qualityIssue{findingSentence(f), f.Rule, fingerprint, qualitySeverity(f.Severity), location})
	}
	return indentJSON(issues)
}

// qualitySeverity returns the name of a severity in GitLab's format.
func qualitySeverity(s Severity) string {
	return map[Severity]string{Critical: "blocker", High: "critical", Medium: "major", Low: "minor", Info: "info"}[s]
}
