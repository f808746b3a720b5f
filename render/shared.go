package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// writeCRDs writes each CRD once. If several operators provide a CRD, newestProvider chooses the operator whose
// CRD is written.
func (t *tree) writeCRDs() error {
	providers := map[string][]provider{}
	for i := range t.installs {
		for _, o := range t.installs[i].crds {
			providers[o.Name()] = append(providers[o.Name()], provider{in: &t.installs[i], crd: o})
		}
	}
	var errs []error
	chosen := map[*operator][]provider{}
	needs := requiredVersions(t.installs)
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p, err := newestProvider(providers[name])
		errs = append(errs, err, p.checkServed(needs[name]))
		p.crd = withPinnedStorage(p.crd, t.installs)
		dir := path.Join(layout.CRDs, p.in.pin.Package)
		file := definitionFile(dir, name)
		if err := t.add(nil, dir, file, p.crd); err != nil {
			return err
		}
		p.file, t.crdDirs[name] = path.Join(dir, file), dir
		chosen[p.in] = append(chosen[p.in], p)
	}
	for i := range t.installs {
		errs = append(errs, t.checkCRDs(chosen[&t.installs[i]]))
	}
	for _, o := range t.sharedCRDs() {
		if _, provided := providers[o.Name()]; provided {
			continue
		}
		dir := path.Join(layout.CRDs, sharedPackage)
		file := definitionFile(dir, o.Name())
		if err := t.add(nil, dir, file, o); err != nil {
			return err
		}
		t.crdDirs[o.Name()] = dir
	}
	return errors.Join(errs...)
}

// definitionFile returns the file name of a CRD in a directory of the tree.
func definitionFile(dir, name string) string {
	return fitName(maxFileName(dir), fileName("customresourcedefinition-"+name))
}

// sharedCRDs returns the CRDs that quayside itself provides: Installation if the reporter is rendered, and
// OperatorCondition if an operator has one and neither OpenShift nor OLM provides the CRD.
func (t *tree) sharedCRDs() []Object {
	var out []Object
	hasConditions := slices.ContainsFunc(t.installs, func(in operator) bool { return !in.b.Complete })
	if hasConditions && !t.opt.OpenShift && !runsOLM(t.installs) {
		out = append(out, withSharedOwner(operatorConditionCRD(), ""))
	}
	if t.opt.Reporter != nil {
		out = append(out, withSharedOwner(Object(v1alpha1.CRD()), ""))
	}
	return out
}

// provider is an operator, together with one of the CRDs that it provides.
type provider struct {
	in   *operator
	crd  Object
	file string // path of the CRD in the tree
}

// isOwner reports whether the operator's CSV lists the CRD as owned.
func (p provider) isOwner() bool {
	return slices.ContainsFunc(p.in.b.CSV.OwnedCRDs, func(api bundle.API) bool { return api.Name == p.crd.Name() })
}

// newestProvider returns the provider whose CRD is rendered. It prefers operators whose CSV owns the CRD, then
// the newest version, then the first by namespace. If several packages own the CRD, or if no package owns it and
// several ship it, their CRDs must be equal.
func newestProvider(all []provider) (provider, error) {
	best := all[0]
	for _, p := range all[1:] {
		if p.isOwner() != best.isOwner() {
			if p.isOwner() {
				best = p
			}
			continue
		}
		if p.in.pin.Package != best.in.pin.Package {
			if !k8s.Equal(withoutOwner(p.crd), withoutOwner(best.crd)) {
				return best, fmt.Errorf("%s and %s both provide %s, with different content", best.in.name(), p.in.name(), best.crd.Key())
			}
			continue
		}
		if p.in.pin.CompareVersions(best.in.pin) > 0 {
			best = p
		}
	}
	return best, nil
}

// requiredVersion is an API version that an operator owns or requires.
type requiredVersion struct {
	in      *operator
	version string
}

// requiredVersions returns the required versions by the name of the CRD, in the order of installs.
func requiredVersions(installs []operator) map[string][]requiredVersion {
	out := map[string][]requiredVersion{}
	for i := range installs {
		in := &installs[i]
		for _, api := range slices.Concat(in.b.CSV.OwnedCRDs, in.b.CSV.RequiredCRDs) {
			if api.Version != "" {
				out[api.Name] = append(out[api.Name], requiredVersion{in, api.Version})
			}
		}
	}
	return out
}

// checkServed returns an error if the CRD does not serve a version that another operator requires.
// bundle.Validate checks the versions that the provider itself requires.
func (p provider) checkServed(needs []requiredVersion) error {
	served := k8s.ParseCRD(p.crd).Served()
	var errs []error
	for _, n := range needs {
		if n.in != p.in && !slices.Contains(served, n.version) {
			errs = append(errs, fmt.Errorf("%s (%s) needs version %s of CustomResourceDefinition %s, but %s (%s) provides the CRD without this version",
				n.in.name(), n.in.pin.Bundle, n.version, p.crd.Name(), p.in.name(), p.in.pin.Bundle))
		}
	}
	return errors.Join(errs...)
}
