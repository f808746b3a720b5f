package build

import (
	"errors"
	"fmt"

	"github.com/quayside/quayside/internal/diag"
)

// Validation is the result of validating a bundle or a catalog.
type Validation struct {
	Subject  string         `json:"subject"`
	Package  string         `json:"package,omitempty"`
	Bundle   string         `json:"bundle,omitempty"`
	Version  string         `json:"version,omitempty"`
	Packages int            `json:"packages,omitempty"` // number in a catalog; 0 for a bundle
	Bundles  int            `json:"bundles,omitempty"`  // number in a catalog; 0 for a bundle
	Valid    bool           `json:"valid"`
	Faults   []diag.Fault   `json:"faults"`
	Warnings []diag.Warning `json:"warnings"`
}

// setResult stores the faults in err, and the warnings.
func (v *Validation) setResult(err error, warnings []diag.Warning) {
	var faults diag.List
	if !errors.As(err, &faults) {
		faults.Add(diag.Pos{}, err)
	}
	v.Valid, v.Faults, v.Warnings = len(faults) == 0, []diag.Fault{}, append([]diag.Warning{}, warnings...)
	for _, f := range faults {
		v.Faults = append(v.Faults, diag.FaultOf(f))
	}
}

// String returns the result in one line.
func (v *Validation) String() string {
	warnings := diag.Count(len(v.Warnings), "warning")
	switch {
	case !v.Valid:
		return fmt.Sprintf("%s is not valid (%s, %s)", v.Subject, diag.Count(len(v.Faults), "fault"), warnings)
	case v.Bundle != "":
		return fmt.Sprintf("%s is valid (%s %s, %s)", v.Subject, v.Package, v.Version, warnings)
	default:
		return fmt.Sprintf("%s is valid (%s, %s, %s)", v.Subject, diag.Count(v.Packages, "package"), diag.Count(v.Bundles, "bundle"), warnings)
	}
}
