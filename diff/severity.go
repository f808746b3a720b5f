package diff

import (
	"fmt"
	"strings"
)

// Severity is the risk of a finding.
type Severity int

// Severities in ascending order. Off is the zero value. Findings with it are not reported.
const (
	Off      Severity = iota
	Info              // informative; nothing breaks
	Low               // a usual change of behaviour in an upgrade
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

// ParseSeverity parses a result of String. It ignores case.
func ParseSeverity(text string) (Severity, error) {
	for s := Off; s <= Critical; s++ {
		if strings.EqualFold(text, s.String()) {
			return s, nil
		}
	}
	return Off, fmt.Errorf("severity %q: must be one of critical, high, medium, low, info, off", text)
}
