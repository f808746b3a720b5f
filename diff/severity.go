package diff

import (
	"fmt"
	"strings"
)

// Severity is the risk of a finding.
type Severity int

// The severities, in ascending order. Findings of severity Off are not reported.
const (
	Off      Severity = iota
	Info              // for information: nothing breaks
	Low               // a change of behaviour that is usual in an upgrade
	Medium            // a reviewer should look at it
	High              // breaks something, or grants dangerous permissions
	Critical          // loses data, is refused by the API server, or grants control of the cluster
)

// severities returns the severities of findings, highest first.
func severities() []Severity { return []Severity{Critical, High, Medium, Low, Info} }

// String returns "critical", "high", "medium", "low", "info" or "off".
func (s Severity) String() string {
	names := [...]string{"off", "info", "low", "medium", "high", "critical"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("severity(%d)", int(s))
	}
	return names[s]
}

// ParseSeverity parses the name of a severity, in upper or lower case.
func ParseSeverity(text string) (Severity, error) {
	for s := Off; s <= Critical; s++ {
		if strings.EqualFold(text, s.String()) {
			return s, nil
		}
	}
	return Off, fmt.Errorf("severity %q: must be one of critical, high, medium, low, info, off", text)
}
