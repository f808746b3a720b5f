package resolve

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// Property types that resolution reads where there is no catalog.Bundle to ask.
const (
	typePackage         = "olm.package"
	typeGVK             = "olm.gvk"
	typeLabel           = "olm.label"
	typeDeprecated      = "olm.deprecated"
	typeGVKRequired     = "olm.gvk.required"
	typePackageRequired = "olm.package.required"
	typeLabelRequired   = "olm.label.required"
	typeConstraint      = "olm.constraint"
)

// facts is what resolution wants to know of one bundle, read once.
type facts struct {
	pkg        string // of olm.package; empty for an unannotated ClusterServiceVersion
	version    catalog.Version
	hasVersion bool
	apis       []catalog.GVK
	labels     []string
	needs      []*requirement // without repeats, in file order
	deprecated bool
	unusable   string // why no one can install it; empty where one can
	properties []catalog.Property
	cel        []any
}

// inRange reports whether the bundle is of the package, in a version that lies
// in r.
func (f *facts) inRange(pkg string, r catalog.Range) bool {
	return f.pkg == pkg && f.hasVersion && r.Contains(f.version)
}

// reader reads facts and remembers what it has compiled: most versions of an
// operator require the same.
type reader struct {
	rules    celRules
	bundles  map[*catalog.Bundle]*facts
	compiled map[string]compiled
}

type compiled struct {
	req *requirement
	err error
}

func newReader() *reader {
	return &reader{bundles: map[*catalog.Bundle]*facts{}, compiled: map[string]compiled{}}
}

// bundle returns the facts of a catalog's bundle.
func (r *reader) bundle(b *catalog.Bundle) *facts {
	if f, ok := r.bundles[b]; ok {
		return f
	}
	f := &facts{
		pkg: b.Package().Name(), version: b.Version(), hasVersion: true,
		apis: b.Provides(), labels: b.Labels(),
		deprecated: b.Deprecated(), unusable: b.Unusable(), properties: b.Properties(),
	}
	r.compile(f, b.Requires())
	r.bundles[b] = f
	return f
}

// compile fills in what f needs. A rule that does not compile makes the bundle
// unusable.
func (r *reader) compile(f *facts, requires []catalog.Requirement) {
	for _, want := range requires {
		var key strings.Builder
		requirementKey(&key, want)
		got, ok := r.compiled[key.String()]
		if !ok {
			got.req, got.err = compile(want, &r.rules)
			if got.req != nil {
				got.req.note = want.Message
			}
			r.compiled[key.String()] = got
		}
		switch {
		case got.err != nil && f.unusable == "":
			f.unusable = got.err.Error()
		case got.err == nil && !slices.Contains(f.needs, got.req):
			f.needs = append(f.needs, got.req)
		}
	}
}

// bare reads facts from properties alone: those of a ClusterServiceVersion, or
// those that a lock recorded. What cannot be read is passed over; a requirement
// that cannot be read makes the bundle unusable.
func (r *reader) bare(ps []catalog.Property) *facts {
	f := &facts{properties: ps}
	var requires []catalog.Requirement
	for _, p := range ps {
		switch p.Type {
		case typePackage:
			var v struct{ PackageName, Version string }
			if json.Unmarshal(p.Value, &v) == nil {
				f.pkg = v.PackageName
				f.setVersion(v.Version)
			}
		case typeGVK:
			if g, err := readGVK(p.Value); err == nil {
				f.apis = append(f.apis, g)
			}
		case typeLabel:
			var v struct{ Label string }
			if json.Unmarshal(p.Value, &v) == nil {
				f.labels = append(f.labels, v.Label)
			}
		case typeDeprecated:
			f.deprecated = true
		default:
			want, err := readRequirement(p)
			if err != nil {
				f.unusable = p.Type + ": " + err.Error()
			} else if want != nil {
				requires = append(requires, *want)
			}
		}
	}
	r.compile(f, requires)
	return f
}

// inPackage returns f as a bundle of the package, which it does not name itself.
func (f *facts) inPackage(pkg string) *facts {
	next := *f
	next.pkg, next.cel = pkg, nil
	version := ""
	if f.hasVersion {
		version = f.version.String()
	}
	if value, err := json.Marshal(map[string]string{"packageName": pkg, "version": version}); err == nil {
		next.properties = append(slices.Clone(f.properties), catalog.Property{Type: typePackage, Value: value})
	}
	return &next
}

func (f *facts) setVersion(s string) {
	if v, err := catalog.ParseVersion(s); err == nil {
		f.version, f.hasVersion = v, true
	}
}

// readRequirement returns nil for a property that requires nothing.
func readRequirement(p catalog.Property) (*catalog.Requirement, error) {
	switch p.Type {
	case typeGVKRequired:
		g, err := readGVK(p.Value)
		return &catalog.Requirement{Kind: catalog.RequireGVK, GVK: g}, err
	case typePackageRequired:
		var v struct{ PackageName, VersionRange string }
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, err
		}
		in, err := catalog.ParseRange(v.VersionRange)
		return &catalog.Requirement{Kind: catalog.RequirePackage, Package: v.PackageName, Range: in}, err
	case typeLabelRequired:
		var v struct{ Label string }
		err := json.Unmarshal(p.Value, &v)
		return &catalog.Requirement{Kind: catalog.RequireLabel, Label: v.Label}, err
	case typeConstraint:
		return catalog.ParseConstraint(p.Value)
	}
	return nil, nil
}

func readGVK(raw json.RawMessage) (catalog.GVK, error) {
	var v struct{ Group, Version, Kind string }
	err := json.Unmarshal(raw, &v)
	return catalog.GVK{Group: v.Group, Version: v.Version, Kind: v.Kind}, err
}
