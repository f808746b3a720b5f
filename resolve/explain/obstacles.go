package explain

import (
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Obstacles lists the obstacles to a version of a package.
type Obstacles struct {
	Namespace string    `json:"namespace"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Bundle    string    `json:"bundle,omitempty"`
	Pinned    bool      `json:"pinned"`             // already pinned
	Reasons   []string  `json:"against"`            // empty: no obstacles
	Conflict  *Conflict `json:"conflict,omitempty"` // if there is no solution with it
	Changes   []Remedy  `json:"changes"`            // each sufficient by itself, proven; the least invasive first
	Tried     int       `json:"tried"`              // the number of tried changes
}

// Text renders the obstacles, then the changes.
func (o *Obstacles) Text() string {
	var b strings.Builder
	b.WriteString(sanitize.Line(o.Namespace+"/"+o.Package+" "+o.Version) + "\n")
	switch {
	case o.Pinned:
		b.WriteString("\tis pinned\n")
	case len(o.Reasons) == 0:
		b.WriteString("\tnothing prevents its installation\n")
	}
	for _, a := range o.Reasons {
		b.WriteString("\t" + sanitize.Line(a) + "\n")
	}
	if !o.Pinned {
		b.WriteString("\t" + strings.Join(formatAdvice("allows", o.Changes, o.Tried), "\n\t") + "\n")
	}
	return b.String()
}
