package resolve

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// facts holds the properties of a bundle that resolution uses.
type facts struct {
	pkg        string // package in the olm.package property; empty if a ClusterServiceVersion has no properties annotation
	version    catalog.Version
	hasVersion bool
	release    string // release in the olm.package property, unparsed
	apis       []catalog.GVK
	apiNumbers []int // apiNumbers[i] identifies apis[i] in factReader
	labels     []string
	needs      []*requirement // requirements, without duplicates, in the order of the catalog
	deprecated bool
	broken     string // error of the first malformed requirement, or ""
	properties []catalog.Property
	cel        []any
}

// inRange reports whether the bundle is of package pkg, and its version is in r.
func (f *facts) inRange(pkg string, r catalog.Range) bool {
	return f.pkg == pkg && f.hasVersion && r.Contains(f.version)
}

// isAbove reports whether f has a higher version than b, or the same version and a higher release.
func (f *facts) isAbove(b *catalog.Bundle) bool { return f.compare(b.Version(), b.Release()) > 0 }

// isBelow reports whether f has a lower version than b, or the same version and a lower release.
func (f *facts) isBelow(b *catalog.Bundle) bool { return f.compare(b.Version(), b.Release()) < 0 }

func (f *facts) compare(v catalog.Version, release string) int {
	if c := f.version.Compare(v); c != 0 || f.release == release {
		return c
	}
	a, _ := catalog.ParseRelease(f.release) // ignore the error: catalog.New rejects invalid releases
	b, _ := catalog.ParseRelease(release)
	return a.Compare(b)
}

// isEquivalent reports whether f and g have the same version, APIs, labels and requirements.
// Bundles of the same name may differ between catalogs.
func (f *facts) isEquivalent(g *facts) bool {
	return f.version.Equals(g.version) && f.release == g.release && slices.Equal(f.apis, g.apis) && slices.Equal(f.labels, g.labels) && slices.Equal(f.needs, g.needs)
}

// factReader computes facts. It caches compiled requirements, because most versions of an operator have the
// same requirements.
type factReader struct {
	rules    celRules
	bundles  map[*catalog.Bundle]*facts
	compiled map[string]*requirement
	apis     map[catalog.GVK]int
	last     *facts // the previous result of numberAPIs
}

func newReader() *factReader {
	return &factReader{bundles: map[*catalog.Bundle]*facts{}, compiled: map[string]*requirement{}, apis: map[catalog.GVK]int{}, last: &facts{}}
}

// bundle returns the facts of a bundle of a catalog.
func (r *factReader) bundle(b *catalog.Bundle) *facts {
	if f, ok := r.bundles[b]; ok {
		return f
	}
	f := &facts{
		pkg: b.Package().Name(), version: b.Version(), hasVersion: true, release: b.Release(),
		apis: b.Provides(), labels: b.Labels(),
		deprecated: b.Deprecated(), broken: b.Unusable(), properties: b.Properties(),
	}
	r.numberAPIs(f)
	r.compile(f, b.Requires())
	r.bundles[b] = f
	return f
}

// numberAPIs sets f.apiNumbers. If the APIs are the same as in the previous call, it reuses the numbers. This
// is true for most consecutive bundles.
func (r *factReader) numberAPIs(f *facts) {
	if slices.Equal(f.apis, r.last.apis) {
		f.apiNumbers = r.last.apiNumbers
	} else {
		for _, g := range f.apis {
			if _, ok := r.apis[g]; !ok {
				r.apis[g] = len(r.apis)
			}
			f.apiNumbers = append(f.apiNumbers, r.apis[g])
		}
	}
	r.last = f
}

// compile compiles requirements and adds them to f.
func (r *factReader) compile(f *facts, requires []catalog.Requirement) {
	for _, want := range requires {
		var key strings.Builder
		writeRequirementKey(&key, want)
		req, ok := r.compiled[key.String()]
		if !ok {
			req = compile(want, &r.rules)
			req.note = want.Message
			r.compiled[key.String()] = req
		}
		if !slices.Contains(f.needs, req) {
			f.needs = append(f.needs, req)
		}
	}
}

// unusable returns the error of the first malformed requirement or unusable CEL rule, or "" if
// there is none. A rule is unusable if it does not compile or exceeds the cost limit.
func (f *facts) unusable() string {
	if f.broken != "" {
		return f.broken
	}
	for _, r := range f.needs {
		if err := r.err(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// fromProperties computes facts from the properties of a ClusterServiceVersion or a pin. A
// malformed requirement makes the bundle unusable. Other malformed properties are ignored.
func (r *factReader) fromProperties(ps []catalog.Property) *facts {
	parsed := catalog.Read(ps)
	f := &facts{
		pkg: parsed.Package, apis: parsed.Provides, labels: parsed.Labels,
		deprecated: parsed.Deprecated, broken: parsed.Unusable, properties: ps,
	}
	r.numberAPIs(f)
	if parsed.Release != nil {
		f.release = *parsed.Release
	}
	f.setVersion(parsed.Version)
	r.compile(f, parsed.Requires)
	return f
}

// inPackage returns f with the given package if f has none.
func (f *facts) inPackage(pkg string) *facts {
	next := *f
	next.pkg, next.cel = pkg, nil
	version := ""
	if f.hasVersion {
		version = f.version.String()
	}
	next.properties = append(slices.Clone(f.properties), catalog.PackageProperty(pkg, version))
	return &next
}

func (f *facts) setVersion(s string) {
	if v, err := catalog.ParseVersion(s); err == nil {
		f.version, f.hasVersion = v, true
	}
}
