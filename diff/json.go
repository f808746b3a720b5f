package diff

import (
	"bytes"
	"encoding/json"
)

// Document is the JSON form of a report. Versions of quayside with the same SchemaVersion only add fields.
type Document struct {
	SchemaVersion string           `json:"schemaVersion" form:"required const=quayside.dev/diff/v1alpha1"`
	Before        string           `json:"before" form:"required" doc:"name of the state before"`
	After         string           `json:"after" form:"required" doc:"name of the state after"`
	Clusters      []string         `json:"clusters,omitempty" doc:"clusters that were compared, if there are several"`
	Differs       bool             `json:"differs" form:"required"`
	Summary       map[string]int   `json:"summary" form:"required" doc:"number of findings by severity, without waived findings"`
	Operators     []OperatorReport `json:"operators" form:"required" doc:"operators with changes or findings, by name"`
	Resources     ResourceChange   `json:"resources,omitzero" doc:"change of the requests of the pods of all operators, summed over all clusters"`
	Findings      []findingObject  `json:"findings" form:"required" doc:"worst first"`
	Removals      []Removal        `json:"removals,omitempty" doc:"uninstall plans of removed operators"`
	Reading       []Reading        `json:"reading,omitempty" doc:"with --release-notes, release notes and links of upgraded operators, by operator"`
	Notes         []string         `json:"notes,omitempty" doc:"skipped checks, with the reason"`
	Verdict       *PolicyResult    `json:"verdict,omitempty" doc:"result of the policy"`
}

// findingObject is the JSON form of a finding.
type findingObject struct {
	Rule      string          `json:"rule" form:"required" doc:"stable identifier, family.name"`
	Severity  string          `json:"severity" form:"required enum=critical|high|medium|low|info"`
	Operator  string          `json:"operator,omitempty" doc:"namespace/package"`
	Object    *Ref            `json:"object,omitempty"`
	Field     string          `json:"field,omitempty" doc:"part of the object"`
	Container string          `json:"container,omitempty" doc:"container that the finding is about"`
	Also      []string        `json:"otherFields,omitempty" doc:"more fields of the object with the same change"`
	Before    string          `json:"before,omitempty" doc:"empty if absent"`
	After     string          `json:"after,omitempty" doc:"empty if absent"`
	Message   string          `json:"message" form:"required"`
	Why       string          `json:"explanation" form:"required" doc:"why it matters"`
	Place     *Region         `json:"location,omitempty" doc:"location of the change"`
	Others    []otherLocation `json:"otherLocations,omitempty" doc:"more objects and fields with the same change"`
	Waiver    string          `json:"waiver,omitempty" doc:"reason of the waiver, if the finding is waived"`
	Clusters  []string        `json:"clusters,omitempty" doc:"affected clusters; omitted if all"`

	Vulnerabilities []Vulnerability `json:"vulnerabilities,omitempty" doc:"vulnerabilities in the finding, most severe first, at most 1,000"`
	BytesBefore     int64           `json:"bytesBefore,omitempty" doc:"with --image-sizes, of the image before, compressed"`
	BytesAfter      int64           `json:"bytesAfter,omitempty" doc:"with --image-sizes, of the image after, compressed"`
	Counts          map[string]int  `json:"counts,omitempty" doc:"number of all vulnerabilities by scanner severity"`
}

// otherLocation is the JSON form of one of several locations of a finding.
type otherLocation struct {
	Object    *Ref    `json:"object,omitempty"`
	Field     string  `json:"field,omitempty"`
	Container string  `json:"container,omitempty"`
	Place     *Region `json:"location,omitempty"`
}

// document returns the JSON form of a finding.
func (f Finding) document() findingObject {
	out := findingObject{
		Rule: f.Rule, Severity: f.Severity.String(), Operator: f.Operator, Object: f.Object.orNil(), Field: f.Field, Container: f.Container, Before: f.Before, After: f.After,
		Message: f.Message, Why: f.Why, Place: f.Place.orNil(), Waiver: f.Waiver, Clusters: f.Clusters,
	}
	if f.detail != nil {
		f.detail.addTo(&out)
	}
	return out
}

// orNil returns a pointer to r, or nil if r is empty, so that JSON omits it.
func (r Ref) orNil() *Ref {
	if r.IsZero() {
		return nil
	}
	return &r
}

// orNil returns a pointer to p, or nil if p is empty, so that JSON omits it.
func (p Region) orNil() *Region {
	if p == (Region{}) {
		return nil
	}
	return &p
}

// Document returns the report for JSON and YAML output.
func (r *Report) Document() Document {
	d := Document{
		SchemaVersion: schemaVersion, Before: r.Before, After: r.After, Clusters: r.Clusters, Differs: !r.Empty(), Summary: map[string]int{},
		Operators: r.Operators, Findings: []findingObject{}, Removals: r.Removals, Notes: r.Notes, Verdict: r.Verdict,
		Reading: r.Reading, Resources: r.ResourceChange(),
	}
	if len(r.Clusters) < 2 {
		d.Clusters = nil
	}
	for _, s := range severities() {
		d.Summary[s.String()] = r.Count(s)
	}
	for _, f := range r.Findings {
		d.Findings = append(d.Findings, f.document())
	}
	return d
}

// indentJSON returns v as indented JSON with a final line break.
func indentJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
