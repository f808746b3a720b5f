package project

import (
	"context"
	"errors"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/build"
	"github.com/quayside/quayside/internal/diag"
)

// ValidateBundle says what is wrong with what somebody calls a bundle: a directory
// or an image, as they are seen from here; p is the workspace.
func ValidateBundle(ctx context.Context, p, here *Project, text string) (*build.Verdict, error) {
	arg, err := here.Argument(text)
	if err != nil {
		return nil, err
	}
	fsys, prefix, done, err := here.BundleFiles(ctx, arg)
	if err != nil {
		return nil, err
	}
	defer done()
	v := &build.Verdict{Subject: text}
	b, warnings, err := build.Check(fsys, prefix)
	if b == nil {
		warnings = nil
	} else {
		v.Package, v.Bundle, v.Version = b.Package, b.CSV.Name, b.CSV.Version
	}
	v.Judge(err, p.Waive(warnings))
	return v, nil
}

// ValidateCatalog says what is wrong with a catalog, as CheckCatalog reads it.
func ValidateCatalog(ctx context.Context, p, here *Project, text string) (*build.Verdict, error) {
	got, err := p.CheckCatalog(ctx, here, text)
	var faults diag.List
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	v := &build.Verdict{Subject: text, Packages: len(got.Content.Packages)}
	for _, pkg := range got.Content.Packages {
		v.Bundles += len(pkg.Bundles)
	}
	warnings := got.Warnings
	if got.Catalog != nil {
		warnings = append(warnings, unusable(got.Catalog)...)
	}
	v.Judge(err, p.Waive(diag.SortWarnings(warnings)))
	return v, nil
}

// unusable warns of the bundles that no resolution can choose.
func unusable(cat *catalog.Catalog) []diag.Warning {
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
