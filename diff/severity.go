package diff

import (
	"fmt"
	"strings"
)

// Severity says how much a finding should worry a reviewer.
type Severity int

// Severities, least first. Off is the zero value: no finding at all.
const (
	Off      Severity = iota
	Info              // worth knowing; nothing breaks
	Low               // a change of behaviour that is usual in an upgrade
	Medium            // a reviewer should look
	High              // breaks something, or gives power away
	Critical          // loses data, is refused by the API server, or gives the cluster away
)

// Severities returns the five severities a finding can have, worst first.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, Info} }

// String returns "critical", "high", "medium", "low", "info" or "off".
func (s Severity) String() string {
	names := [...]string{"off", "info", "low", "medium", "high", "critical"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("severity(%d)", int(s))
	}
	return names[s]
}

// ParseSeverity reads what String writes.
func ParseSeverity(text string) (Severity, error) {
	for s := Off; s <= Critical; s++ {
		if strings.EqualFold(text, s.String()) {
			return s, nil
		}
	}
	return Off, fmt.Errorf("severity %q: want one of critical, high, medium, low, info, off", text)
}
