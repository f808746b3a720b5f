package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/report/v1alpha1"
)

// crds writes each CRD once, from the newest bundle that provides it, and
// returns the files' paths.
func (t *tree) crds() ([]string, error) {
	providers := map[string][]provider{}
	for i := range t.installs {
		for _, o := range t.installs[i].crds {
			providers[o.Name()] = append(providers[o.Name()], provider{&t.installs[i], o})
		}
	}
	var paths []string
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p, err := newest(providers[name])
		errs = append(errs, err, t.serves(p))
		file := fileName("customresourcedefinition-"+name) + ".yaml"
		dir := path.Join("crds", p.in.pin.Package)
		if err := t.add(dir, file, Rendered{Object: p.crd, Package: p.in.pin.Package}); err != nil {
			return nil, err
		}
		paths = append(paths, path.Join(dir, file))
	}
	for _, o := range t.sharedCRDs() {
		if _, provided := providers[o.Name()]; provided {
			continue
		}
		dir, file := path.Join("crds", sharedPackage), fileName("customresourcedefinition-"+o.Name())+".yaml"
		if err := t.add(dir, file, Rendered{Object: o, Package: sharedPackage}); err != nil {
			return nil, err
		}
		paths = append(paths, path.Join(dir, file))
	}
	slices.Sort(paths)
	return paths, errors.Join(errs...)
}

// sharedCRDs returns the CRDs that no operator brings.
func (t *tree) sharedCRDs() []Object {
	var out []Object
	if len(t.installs) > 0 {
		out = append(out, shared(operatorConditionCRD(), ""))
	}
	if t.opt.Reporter != nil {
		out = append(out, shared(Object(v1alpha1.CRD()), ""))
	}
	return out
}

// provider is an install with one of its CRDs.
type provider struct {
	in  *opened
	crd Object
}

// owns reports whether the CSV says that the CRD is the operator's own.
func (p provider) owns() bool {
	for _, api := range p.in.b.CSV.OwnedCRDs {
		if api.Name == p.crd.Name() {
			return true
		}
	}
	return false
}

// newest returns the provider whose CRD the cluster gets: one that owns it
// before one that only ships it, then the newest version, then the first by
// namespace. Two packages that both own a CRD must agree on it.
func newest(all []provider) (provider, error) {
	best := all[0]
	for _, p := range all[1:] {
		if p.owns() != best.owns() {
			if p.owns() {
				best = p
			}
			continue
		}
		if p.in.pin.Package != best.in.pin.Package {
			if !equal(map[string]any(unowned(p.crd)), map[string]any(unowned(best.crd))) {
				return best, fmt.Errorf("%s and %s both provide %s, with different content", best.in.name(), p.in.name(), best.crd.Key())
			}
			continue
		}
		if catalog.CompareVersions(p.in.pin.Version, best.in.pin.Version) > 0 {
			best = p
		}
	}
	return best, nil
}

// serves refuses a CRD that lacks a version that an install needs.
func (t *tree) serves(p provider) error {
	served := map[string]bool{}
	for _, v := range items(sub(p.crd, "spec"), "versions") {
		served[str(v, "name")] = v["served"] == true
	}
	var errs []error
	for i, in := range t.installs {
		if p.in == &t.installs[i] {
			continue // what a bundle says of itself is for its validation
		}
		for _, api := range slices.Concat(in.b.CSV.OwnedCRDs, in.b.CSV.RequiredCRDs) {
			if api.Name == p.crd.Name() && api.Version != "" && !served[api.Version] {
				errs = append(errs, fmt.Errorf("%s (%s) needs version %s of CustomResourceDefinition %s, which %s (%s) provides without it",
					in.name(), in.pin.Bundle, api.Version, api.Name, p.in.name(), p.in.pin.Bundle))
			}
		}
	}
	return errors.Join(errs...)
}

// namespaces writes the install namespaces, but for those that belong to the
// cluster or that the declarations contain, and returns their names.
func (t *tree) namespaces() ([]string, error) {
	byName := map[string][]opened{}
	for _, in := range t.installs {
		byName[in.pin.Namespace] = append(byName[in.pin.Namespace], in)
	}
	var names []string
	var files []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if reservedNamespace(name) || slices.Contains(t.opt.Namespaces, name) || t.ships(name) {
			continue
		}
		o, err := t.namespace(name, byName[name])
		if err != nil {
			return nil, err
		}
		file := fileName("namespace-"+name) + ".yaml"
		r := Rendered{Object: o, Namespace: name}
		if len(byName[name]) == 1 {
			r.Package = byName[name][0].pin.Package
		}
		if err := t.add("namespaces", file, r); err != nil {
			return nil, err
		}
		names, files = append(names, name), append(files, file)
	}
	t.expectNamespaces(byName)
	if len(names) == 0 {
		return nil, nil
	}
	return names, t.kustomization("namespaces", files)
}

// ships reports whether a bundle brings the Namespace itself.
func (t *tree) ships(namespace string) bool {
	return slices.ContainsFunc(t.installs, func(in opened) bool {
		return slices.ContainsFunc(in.objects, func(o Object) bool { return o.Is("", "Namespace") && o.Name() == namespace })
	})
}

// reservedNamespace reports whether the cluster or its vendor makes it.
func reservedNamespace(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift")
}

// namespace returns an install namespace, with the labels and annotations of
// the templates that the operators in it suggest.
func (t *tree) namespace(name string, installs []opened) (Object, error) {
	o := newObject("v1", "Namespace", "", name)
	for _, in := range installs {
		text := in.b.CSV.Annotations["operatorframework.io/suggested-namespace-template"]
		if text == "" {
			continue
		}
		var template struct {
			Metadata struct{ Labels, Annotations map[string]string }
		}
		if err := json.Unmarshal([]byte(text), &template); err != nil {
			return nil, fmt.Errorf("rendering %s: %s: annotation operatorframework.io/suggested-namespace-template: %w", in.name(), in.b.CSV.File, err)
		}
		t.templateConflicts(in, sub(o, "metadata", "labels"), template.Metadata.Labels)
		t.templateConflicts(in, sub(o, "metadata", "annotations"), template.Metadata.Annotations)
		o = annotate(label(o, template.Metadata.Labels), template.Metadata.Annotations)
	}
	if len(installs) > 1 {
		return shared(o, name), nil
	}
	pin := installs[0].pin
	owner := map[string]any{labelNamespace: name, labelPackage: labelValue(pin.Package), labelVersion: labelValue(pin.Version)}
	return owned(o, owner).withVersion(pin.Version), nil
}

func (t *tree) templateConflicts(in opened, have map[string]any, want map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, ok := have[key]; ok && got != want[key] {
			t.warnings = append(t.warnings, diag.Warning{Code: "namespace-template", Msg: fmt.Sprintf(
				"%s suggests %s=%q for its namespace, another operator there has set %q", in.name(), key, want[key], got)})
		}
	}
}

// expectNamespaces says which watched namespaces nobody renders.
func (t *tree) expectNamespaces(rendered map[string][]opened) {
	for _, in := range t.installs {
		for _, ns := range in.pin.WatchNamespaces {
			if _, ok := rendered[ns]; !ok && ns != "" && !slices.Contains(t.opt.Namespaces, ns) {
				t.warnings = append(t.warnings, diag.Warning{Code: "namespace-expected", Msg: fmt.Sprintf(
					"%s watches namespace %q, which is expected to exist", in.name(), ns)})
			}
		}
	}
}
