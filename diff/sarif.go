package diff

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// SARIF returns the report in the Static Analysis Results Interchange Format 2.1.0, for code
// scanning. Each finding is located at its line in the committed files. A finding without a file,
// or in a removed file, is located at fallback, the path of the lock.
func SARIF(r *Report, fallback string) ([]byte, error) {
	rules, index := sarifRules(r.Findings)
	run := sarifRun{
		Tool:       map[string]sarifDriver{"driver": {Name: "quayside", InformationURI: "https://quayside.dev", Rules: rules}},
		Results:    []sarifResult{},
		ColumnKind: "utf16CodeUnits",
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, sarifOf(f, index[f.Rule], fallback))
	}
	return indentJSON(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       map[string]sarifDriver `json:"tool"`
	Results    []sarifResult          `json:"results"`
	ColumnKind string                 `json:"columnKind"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string            `json:"id"`
	ShortDescription map[string]string `json:"shortDescription"`
	FullDescription  map[string]string `json:"fullDescription"`
	Default          map[string]string `json:"defaultConfiguration"`
	Properties       map[string]string `json:"properties"`
}

type sarifResult struct {
	RuleID       string                     `json:"ruleId"`
	RuleIndex    int                        `json:"ruleIndex"`
	Level        string                     `json:"level"`
	Message      map[string]string          `json:"message"`
	Locations    []map[string]sarifPhysical `json:"locations"`
	Fingerprints map[string]string          `json:"partialFingerprints"`
	Suppressions []sarifSuppression         `json:"suppressions,omitempty"`
	Properties   map[string]string          `json:"properties"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type sarifPhysical struct {
	Artifact map[string]string `json:"artifactLocation"`
	Region   *sarifRegion      `json:"region,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

// sarifRules returns the rules that findings refer to, sorted by ID, and the index of each rule by
// ID.
func sarifRules(findings []Finding) ([]sarifRule, map[string]int) {
	used := map[string]bool{}
	for _, f := range findings {
		used[f.Rule] = true
	}
	out, index := []sarifRule{}, map[string]int{}
	for _, r := range Rules() {
		if !used[r.ID] {
			continue
		}
		index[r.ID] = len(out)
		out = append(out, sarifRule{
			ID: r.ID, ShortDescription: map[string]string{"text": r.Title}, FullDescription: map[string]string{"text": r.Why},
			Default: map[string]string{"level": sarifLevel(r.Severity)}, Properties: map[string]string{"security-severity": severityScore(r.Severity)},
		})
	}
	return out, index
}

func sarifLevel(s Severity) string {
	switch {
	case s >= High:
		return "error"
	case s == Medium:
		return "warning"
	}
	return "note"
}

// severityScore returns the security-severity score of a severity. Code scanning sorts results by
// it.
func severityScore(s Severity) string {
	return map[Severity]string{Critical: "9.5", High: "8.0", Medium: "5.5", Low: "3.0", Info: "0.5"}[s]
}

// sarifOf returns a finding as a SARIF result. index is the index of its rule.
func sarifOf(f Finding, index int, fallback string) sarifResult {
	out := sarifResult{
		RuleID: f.Rule, RuleIndex: index, Level: sarifLevel(f.Severity), Message: map[string]string{"text": findingSentence(f)},
		Fingerprints: map[string]string{"quayside/v1": findingFingerprint(f)},
		Properties:   map[string]string{"severity": f.Severity.String(), "operator": f.Operator},
	}
	p := sarifPhysical{Artifact: map[string]string{"uri": fileURI(f.Place.Path)}}
	switch {
	case f.Place.Path == "" || f.Place.Removed:
		// The new commit does not contain the removed file.
		p.Artifact["uri"], p.Region = fileURI(fallback), &sarifRegion{StartLine: 1}
	case f.Place.Line > 0:
		p.Region = &sarifRegion{f.Place.Line, f.Place.Column, f.Place.EndLine, f.Place.EndCol}
	default:
		p.Region = &sarifRegion{StartLine: 1}
	}
	out.Locations = []map[string]sarifPhysical{{"physicalLocation": p}}
	if f.Waiver != "" {
		out.Suppressions = []sarifSuppression{{"external", f.Waiver}}
	}
	return out
}

// findingSentence returns the text of a finding in one line.
func findingSentence(f Finding) string {
	s := sanitize.Line(f.fullMessage())
	if subject := sanitize.Line(f.subject()); subject != "" {
		s = subject + ": " + s
	}
	if f.Operator != "" {
		s = sanitize.Line(f.Operator) + ": " + s
	}
	s = sanitize.Line(clusterPrefix(f.Clusters)) + s
	s = strings.ReplaceAll(s, "](", "] (") // prevents Markdown links
	return s + ". " + strings.ToUpper(f.Why[:1]) + f.Why[1:] + "."
}

// findingFingerprint returns a hash that identifies the same finding in later runs. It does not
// depend on the line.
func findingFingerprint(f Finding) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		f.Rule, f.Operator, f.Object.Group, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Field, f.Before, f.After,
	}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// fileURI returns a path as a relative URI reference.
func fileURI(path string) string { return (&url.URL{Path: path}).String() }
