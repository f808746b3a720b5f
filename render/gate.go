package render

import (
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

// typed compares an object with the API's own types. Fields that they do not
// have stay, with a warning; values of another type are the error.
func (in *install) typed(pos diag.Pos, o Object) error {
	shape := in.opt.types.Check(o)
	for _, field := range shape.Unknown {
		in.warn(pos, "unknown-field", "%s: %s: %s has no such field, so that a strict or a server-side apply refuses the object, and others drop the field", o.Key(), field, o.APIVersion())
	}
	var errs diag.List
	for _, f := range shape.Wrong {
		errs.Addf(pos, "%s: %s: %s", o.Key(), f.Field, f.Message)
	}
	return errs.Err()
}

// legal refuses names, labels and annotations that the API server does.
func (in *install) legal(o Object, errs *diag.List) {
	if kobj.IsCRD(o) {
		return // definable does
	}
	for _, f := range admit.Metadata(o) {
		errs.Addf(place(in.b, o), "%s: %s: %s", o.Key(), f.Field, f.Message)
	}
}

// definable refuses a CRD that the API server does.
func definable(b *bundle.Bundle, crd Object) error {
	var errs diag.List
	for _, f := range admit.Define(crd) {
		errs.Addf(place(b, crd), "%s: %s: %s", crd.Key(), f.Field, f.Message)
	}
	return errs.Err()
}

// definable is likewise for a CRD that goes into the tree.
func (o opened) definable(crd Object) error {
	if err := definable(o.b, crd); err != nil {
		return o.failed(err)
	}
	return nil
}

// place returns the file of a bundle that holds an object; the CSV for one that
// is made of it.
func place(b *bundle.Bundle, o Object) diag.Pos {
	for _, file := range b.Objects {
		if file.Group() == o.Group() && file.Kind() == o.Kind() && file.Name() == o.Name() {
			return file.Pos()
		}
	}
	return diag.Pos{File: b.CSV.File}
}

// Validate renders b in every install mode that it supports. The error is a
// diag.List of what keeps the objects from being applied, each with file and
// field; the warnings, sorted, are those of all modes.
func Validate(b *bundle.Bundle) ([]diag.Warning, error) {
	const home = "operators"
	var errs diag.List
	var warnings []diag.Warning
	var crds []Object
	for _, mode := range b.CSV.Modes {
		pin := lockfile.Pin{Namespace: home, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: home, InstallMode: mode}
		pin.WatchNamespaces = map[catalog.InstallMode][]string{
			catalog.OwnNamespace: {home}, catalog.SingleNamespace: {"watched"}, catalog.MultiNamespace: {"watched", "watched-too"},
		}[mode]
		objects, said, err := Manifests(b, pin, Options{})
		errs.Add(diag.Pos{File: b.CSV.File}, err)
		warnings = append(warnings, said...)
		crds = slices.DeleteFunc(objects, func(o Object) bool { return !kobj.IsCRD(o) })
	}
	for _, o := range crds { // which no mode changes
		errs.Add(diag.Pos{File: b.CSV.File}, definable(b, o))
	}
	return diag.SortWarnings(warnings), errs.Err()
}
