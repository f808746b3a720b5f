package render

import (
	"bytes"
	"runtime"
	"slices"
	"sync"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
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

// free refuses a name that belongs to the cluster, unless the workspace allows
// it.
func (in *install) free(o Object, errs *diag.List) {
	if id := o.Kind() + "/" + o.Name(); kinds.Reserved(o) && !slices.Contains(in.opt.AllowNames, id) {
		errs.Addf(place(in.b, o), "%s: the name belongs to the cluster, whose own object this would take the place of; "+
			"if that is meant, list %q under spec.allowNames in quayside.yaml", o.Key(), id)
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

// taken refuses the CRDs of one install that the API server does, unless it is
// known to take them as they lie in the tree.
func (t *tree) taken(crds []provider) error {
	if len(crds) == 0 || t.opt.ObjectsOnly {
		return nil
	}
	var texts [][]byte
	for _, p := range crds {
		text, _ := t.files.Get(p.file)
		texts = append(texts, text)
	}
	text := bytes.Join(texts, []byte("---\n"))
	if t.opt.Taken != nil && t.opt.Taken.Known(text) {
		return nil
	}
	faults := make([]error, len(crds))
	var work sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, p := range crds {
		turns <- struct{}{}
		work.Go(func() {
			faults[i] = definable(p.in.b, p.crd)
			<-turns
		})
	}
	work.Wait()
	var errs diag.List
	for _, err := range faults {
		errs.Add(diag.Pos{}, err)
	}
	if err := errs.Err(); err != nil {
		return crds[0].in.failed(err)
	}
	if t.opt.Taken != nil {
		t.opt.Taken.Note(text)
	}
	return nil
}

// place returns the file of a bundle that holds an object; the CSV for one that
// is made of it.
func place(b *bundle.Bundle, o Object) diag.Pos {
	for _, file := range b.Objects {
		if (file.Group() == o.Group() || file.APIVersion() == "") && file.Kind() == o.Kind() && file.Name() == o.Name() {
			return file.Pos()
		}
	}
	return diag.Pos{File: b.CSV.File}
}

// Validate renders b in every install mode that it supports. The error is a
// diag.List of what keeps the objects from being applied, each with file and
// field; the warnings, sorted, are those of all modes.
func Validate(b *bundle.Bundle) ([]diag.Warning, error) {
	var errs diag.List
	var warnings []diag.Warning
	var crds []Object
	for _, mode := range b.CSV.Modes {
		objects, said, err := Manifests(b, modePin(b, mode), Options{})
		errs.Add(diag.Pos{File: b.CSV.File}, err)
		warnings = append(warnings, said...)
		crds = slices.DeleteFunc(objects, func(o Object) bool { return !kobj.IsCRD(o) })
	}
	for _, o := range crds { // which no mode changes
		errs.Add(diag.Pos{File: b.CSV.File}, definable(b, o))
	}
	return diag.SortWarnings(warnings), errs.Err()
}

// modePin returns a pin that installs b in a mode.
func modePin(b *bundle.Bundle, mode catalog.InstallMode) lockfile.Pin {
	const home = "operators"
	watch := map[catalog.InstallMode][]string{
		catalog.OwnNamespace: {home}, catalog.SingleNamespace: {"watched"}, catalog.MultiNamespace: {"watched", "watched-too"},
	}
	return lockfile.Pin{
		Namespace: home, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name,
		OperatorGroup: home, InstallMode: mode, WatchNamespaces: watch[mode],
	}
}
