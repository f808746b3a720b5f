package explain

import (
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Obstacles lists the reasons why a version of a package cannot be installed.
type Obstacles struct {
	Namespace string    `json:"namespace"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Bundle    string    `json:"bundle,omitempty"`
	Pinned    bool      `json:"pinned"`             // the version is already pinned
	Reasons   []string  `json:"against"`            // reasons; empty if there are no obstacles
	Conflict  *Conflict `json:"conflict,omitempty"` // set if there is no solution with the version
	Changes   []Remedy  `json:"changes"`            // changes that remove the obstacles, each on its own and proven by trying; least invasive first
	Tried     int       `json:"tried"`              // number of changes that were tried
}

// Text returns the obstacles and the changes as text.
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
