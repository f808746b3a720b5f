package render

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// checkTypes validates an object against the schema of its API. It removes unknown fields, with a warning: OLM
// also drops them, but strict validation and server-side apply reject the object. Missing fields and values of a
// wrong type are errors.
func (in *install) checkTypes(pos diag.Pos, o Object) (Object, error) {
	shape := in.opt.types.Check(o)
	if len(shape.Unknown) > 0 {
		in.warn(pos, "unknown-field", "%s: removed fields that %s does not have: %s", o.Key(), o.APIVersion(), formatFirst(shape.Unknown))
		o = Object(in.opt.types.Prune(o))
	}
	var errs diag.List
	for _, f := range slices.Concat(shape.Wrong, shape.Missing) {
		errs.Addf(pos, "%s: %s: %s", o.Key(), f.Field, f.Message)
	}
	return o, errs.Err()
}

// checkBuildable adds an error for a character that kustomize cannot parse. A GitOps engine with kustomize could
// not parse it either.
func checkBuildable(pos diag.Pos, o Object, errs *diag.List) {
	if field, char, found := yamlnode.FindUnreadable(map[string]any(o)); found {
		errs.Addf(pos, "%s: %s contains character %U, which kustomize cannot parse", o.Key(), field, char)
	}
}

// checkNames adds an error for each name, label, annotation, value and RBAC rule that the API server rejects,
// for each missing required field, and for each invalid image reference.
func (in *install) checkNames(o Object, errs *diag.List) {
	if k8s.IsCRD(o) {
		return // checked by checkCRD
	}
	faults := slices.Concat(admit.Metadata(o), admit.Rules(o))
	if o.Group() != k8s.RBACGroup { // the rules are checked
		faults = append(faults, in.opt.types.Check(o).Missing...)
	}
	for _, f := range append(faults, admit.Values(o)...) {
		errs.Addf(objectPos(in.b, o), "%s: %s: %s", o.Key(), f.Field, f.Message)
	}
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		if image := k8s.Text(c, "image"); image != "" && !imageref.Valid(image) {
			errs.Addf(objectPos(in.b, o), "%s: container %s: %q is not an image reference", o.Key(), k8s.Text(c, "name"), image)
		}
	}
}

// checkReserved adds an error for an object with a name that is reserved in the cluster, unless
// Options.AllowNames contains it.
func (in *install) checkReserved(o Object, errs *diag.List) {
	if id := o.Kind() + "/" + o.Name(); k8s.IsReserved(o) && !slices.Contains(in.opt.AllowNames, id) {
		errs.Addf(objectPos(in.b, o), "%s: would replace a built-in object of the cluster; "+
			"if intended, add %q to spec.allowNames in quayside.yaml", o.Key(), id)
	}
}

// checkCRD returns an error for a CRD that the API server rejects.
func checkCRD(b *bundle.Bundle, crd Object) error {
	var errs diag.List
	for _, f := range admit.CheckCRD(crd) {
		errs.Addf(objectPos(b, crd), "%s: %s: %s", crd.Key(), f.Field, f.Message)
	}
	return errs.Err()
}

// checkCRDs returns an error if the API server rejects a CRD of an operator. It skips the check if
// Options.AcceptedCRDs contains the digest of the rendered CRDs.
func (t *tree) checkCRDs(crds []provider) error {
	if len(crds) == 0 || t.opt.ObjectsOnly {
		return nil
	}
	var texts [][]byte
	for _, p := range crds {
		text, _ := t.files.Get(p.file)
		texts = append(texts, text)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(bytes.Join(texts, []byte("---\n"))))
	if t.opt.AcceptedCRDs[digest] {
		return nil
	}
	faults := make([]error, len(crds))
	var work sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, p := range crds {
		turns <- struct{}{}
		work.Go(func() {
			faults[i] = checkCRD(p.in.b, p.crd)
			<-turns
		})
	}
	work.Wait()
	var errs diag.List
	for _, err := range faults {
		errs.Add(diag.Pos{}, err)
	}
	if err := errs.Err(); err != nil {
		return crds[0].in.wrapError(err)
	}
	t.acceptedCRDs = append(t.acceptedCRDs, digest)
	return nil
}

// objectPos returns the position of an object in a bundle. For a generated object, it returns the position of
// the CSV.
func objectPos(b *bundle.Bundle, o Object) diag.Pos {
	for _, file := range b.Objects {
		if (file.Group() == o.Group() || file.APIVersion() == "") && file.Kind() == o.Kind() && file.Name() == o.Name() {
			return file.Pos()
		}
	}
	return diag.Pos{File: b.CSV.File}
}

// Validate renders b in every install mode that b supports. It returns the warnings of all modes, sorted. The
// error is a diag.List of all faults that prevent objects from being applied, each with file and field.
func Validate(b *bundle.Bundle) ([]diag.Warning, error) {
	var errs diag.List
	var warnings []diag.Warning
	var crds []Object
	for _, mode := range b.CSV.Modes {
		objects, found, err := Manifests(b, modePin(b, mode), Options{})
		errs.Add(diag.Pos{File: b.CSV.File}, err)
		warnings = append(warnings, found...)
		crds = slices.DeleteFunc(objects, func(o Object) bool { return !k8s.IsCRD(o) })
	}
	for _, o := range crds { // CRDs are equal in all modes
		errs.Add(diag.Pos{File: b.CSV.File}, checkCRD(b, o))
	}
	return diag.SortWarnings(warnings), errs.Err()
}

// modePin returns a pin for installing b in a mode.
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
