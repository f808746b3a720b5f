package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
)

// ValidateBundle validates a bundle. text names a directory, relative to here, or an image. The waivers of
// workspace p apply.
func ValidateBundle(ctx context.Context, p, here *workspace.Project, text string) (*Validation, error) {
	arg, err := here.ParseArgument(text)
	if err != nil {
		return nil, err
	}
	fsys, prefix, done, err := here.BundleFiles(ctx, arg)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, ok := charts.ReadOne(fsys, prefix); ok && !bundle.IsDir(fsys, ".") {
		return nil, diag.Hintf(diag.Pos{File: text}, fmt.Sprintf("declare it with 'quayside add --bundle %s': 'quayside render' checks it", text), "not a bundle of OLM, but a chart or a release")
	}
	v := &Validation{Subject: text}
	b, warnings, err := Check(fsys, prefix)
	if b == nil {
		warnings = nil
	} else {
		v.Package, v.Bundle, v.Version = b.Package, b.CSV.Name, b.CSV.Version
	}
	v.setResult(err, p.Waive(warnings))
	return v, nil
}

// ValidateCatalog validates a catalog. text and here are as in [workspace.CheckCatalog].
// The waivers of workspace p apply.
func ValidateCatalog(ctx context.Context, p, here *workspace.Project, text string) (*Validation, error) {
	got, err := workspace.CheckCatalog(ctx, p, here, text)
	var faults diag.List
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	v := &Validation{Subject: text, Packages: len(got.Content.Packages)}
	for _, pkg := range got.Content.Packages {
		v.Bundles += len(pkg.Bundles)
	}
	warnings := got.Warnings
	if got.Catalog != nil {
		warnings = append(warnings, unusableWarnings(got.Catalog)...)
	}
	v.setResult(err, p.Waive(diag.SortWarnings(warnings)))
	return v, nil
}

// unusableWarnings returns a warning for each bundle that the resolver never chooses.
func unusableWarnings(cat *catalog.Catalog) []diag.Warning {
	var ws []diag.Warning
	for _, p := range cat.Packages() {
		for _, b := range p.Bundles() {
			if why := b.Unusable(); why != "" {
				ws = append(ws, diag.Warning{Code: "bundle-unusable", Subject: p.Name(), Msg: "bundle " + b.Name() + " of package " + p.Name() + " can never be chosen: " + why})
			}
		}
	}
	return ws
}

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

// setResult stores the warnings, and the faults that err contains, in v.
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
