package resolve

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
)

// facts is what resolution wants to know of one bundle, read once.
type facts struct {
	pkg        string // of olm.package; empty for an unannotated ClusterServiceVersion
	version    catalog.Version
	hasVersion bool
	release    string // of olm.package, as it is written
	apis       []catalog.GVK
	numbers    []int // of apis: the reader gives one to each
	labels     []string
	needs      []*requirement // without repeats, in file order
	deprecated bool
	broken     string // the first property that cannot be read; or empty
	properties []catalog.Property
	cel        []any
}

// inRange reports whether the bundle is of the package, in a version that lies
// in r.
func (f *facts) inRange(pkg string, r catalog.Range) bool {
	return f.pkg == pkg && f.hasVersion && r.Contains(f.version)
}

// isAbove reports whether f is of a higher version than b, or of a higher release
// of the same one.
func (f *facts) isAbove(b *catalog.Bundle) bool { return f.compare(b.Version(), b.Release()) > 0 }

// isBelow reports the opposite, which neither is of the same one.
func (f *facts) isBelow(b *catalog.Bundle) bool { return f.compare(b.Version(), b.Release()) < 0 }

func (f *facts) compare(v catalog.Version, release string) int {
	if c := f.version.Compare(v); c != 0 || f.release == release {
		return c
	}
	a, _ := olm.ParseRelease(f.release) // New refuses what is none
	b, _ := olm.ParseRelease(release)
	return a.Compare(b)
}

// answersLike reports whether f is the same version as g, offers the same and
// needs the same. A bundle of one name may differ from catalog to catalog.
func (f *facts) answersLike(g *facts) bool {
	return f.version.Equals(g.version) && f.release == g.release && slices.Equal(f.apis, g.apis) && slices.Equal(f.labels, g.labels) && slices.Equal(f.needs, g.needs)
}

// reader reads facts and remembers what it has compiled: most versions of an
// operator require the same.
type reader struct {
	rules    celRules
	bundles  map[*catalog.Bundle]*facts
	compiled map[string]*requirement
	apis     map[catalog.GVK]int
	last     *facts // whose apis were numbered last
}

func newReader() *reader {
	return &reader{bundles: map[*catalog.Bundle]*facts{}, compiled: map[string]*requirement{}, apis: map[catalog.GVK]int{}, last: &facts{}}
}

// bundle returns the facts of a catalog's bundle.
func (r *reader) bundle(b *catalog.Bundle) *facts {
	if f, ok := r.bundles[b]; ok {
		return f
	}
	f := &facts{
		pkg: b.Package().Name(), version: b.Version(), hasVersion: true, release: b.Release(),
		apis: b.Provides(), labels: b.Labels(),
		deprecated: b.Deprecated(), broken: b.Unusable(), properties: b.Properties(),
	}
	r.number(f)
	r.compile(f, b.Requires())
	r.bundles[b] = f
	return f
}

// number fills in the numbers of the APIs of f: mostly those of the version that
// was read before.
func (r *reader) number(f *facts) {
	if slices.Equal(f.apis, r.last.apis) {
		f.numbers = r.last.numbers
	} else {
		for _, g := range f.apis {
			if _, ok := r.apis[g]; !ok {
				r.apis[g] = len(r.apis)
			}
			f.numbers = append(f.numbers, r.apis[g])
		}
	}
	r.last = f
}

// compile fills in what f needs.
func (r *reader) compile(f *facts, requires []catalog.Requirement) {
	for _, want := range requires {
		var key strings.Builder
		requirementKey(&key, want)
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

// unusable returns why no one can install the bundle, or nothing: a property that
// cannot be read, or a rule that does not compile or costs too much.
func (f *facts) unusable() string {
	if f.broken != "" {
		return f.broken
	}
	for _, r := range f.needs {
		if err := r.unknown(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// bare reads facts from properties alone: those of a ClusterServiceVersion, or
// those that a lock recorded. What cannot be read is passed over; a requirement
// that cannot be read makes the bundle unusable.
func (r *reader) bare(ps []catalog.Property) *facts {
	said := olm.Read(ps)
	f := &facts{
		pkg: said.Package, apis: said.Provides, labels: said.Labels,
		deprecated: said.Deprecated, broken: said.Unusable, properties: ps,
	}
	r.number(f)
	if said.Release != nil {
		f.release = *said.Release
	}
	f.setVersion(said.Version)
	r.compile(f, said.Requires)
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
	next.properties = append(slices.Clone(f.properties), olm.Named(pkg, version))
	return &next
}

func (f *facts) setVersion(s string) {
	if v, err := olm.ParseVersion(s); err == nil {
		f.version, f.hasVersion = v, true
	}
}
