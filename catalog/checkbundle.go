package catalog

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// newBundle validates data and returns it as a Bundle of p. known is a cache of decoded properties. A bundle
// with an invalid requirement, or with a name that IsBundleName rejects, becomes unusable. This is not a fault.
func newBundle(p *Package, data *BundleData, known *Reader, faults *diag.List) *Bundle {
	b := &Bundle{pkg: p, data: data}
	if data.Name == "" {
		faults.Addf(data.Pos, "bundle of package %q has no name", p.Name())
	}
	if data.Image == "" && !data.Embedded {
		faults.Addf(data.Pos, "bundle %q of package %q has neither an image nor embedded manifests", data.Name, p.Name())
	}
	own := 0
	for i := range data.Properties {
		prop := data.Properties[i]
		if prop.Type == "" || len(prop.Value) == 0 {
			faults.Addf(data.Pos, "property %d of bundle %q of package %q has no type or no value", i+1, data.Name, p.Name())
			continue
		}
		err := known.Add(&b.facts, prop)
		if err != nil {
			faults.Addf(data.Pos, "bundle %q of package %q: %w", data.Name, p.Name(), err)
		}
		if prop.Type == TypePackage {
			if own++; err == nil {
				b.setVersion(faults)
			}
		}
	}
	if own != 1 {
		faults.Addf(data.Pos, "bundle %q of package %q has %d olm.package properties: expected exactly one", data.Name, p.Name(), own)
	}
	b.facts.Sort()
	if data.Name != "" && !IsBundleName(data.Name) {
		b.facts.Unusable = fmt.Sprintf("its name is %q: must be letters, digits, \"-\", \"_\", \".\" and \"+\", at most 253", data.Name)
	}
	if b.facts.Unusable != "" {
		b.facts.Requires = nil
	}
	return b
}

// setVersion sets b.version and b.release from the bundle's last olm.package property, and adds
// faults for invalid values.
func (b *Bundle) setVersion(faults *diag.List) {
	if b.facts.Package != b.pkg.Name() {
		faults.Addf(b.data.Pos, "bundle %q of package %q: property olm.package has package %q", b.Name(), b.pkg.Name(), b.facts.Package)
	}
	version, err := ParseVersion(b.facts.Version)
	if err != nil {
		faults.Addf(b.data.Pos, "bundle %q of package %q: %w", b.Name(), b.pkg.Name(), err)
		return
	}
	if b.release, err = ParseRelease(b.Release()); err != nil {
		faults.Addf(b.data.Pos, "bundle %q of package %q: %w", b.Name(), b.pkg.Name(), err)
		return
	}
	b.version, b.versioned = version, true
}

// IsBundleName reports whether s is a valid bundle name. A bundle name is the name of a
// ClusterServiceVersion, so the characters of a DNS-1123 subdomain are valid. Upper case letters,
// "_" and "+" are valid, too: they are common in versions, and OLM's resolver accepts them.
func IsBundleName(s string) bool {
	isInvalid := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._+", r)
	}
	return s != "" && len(s) <= 253 && !strings.ContainsAny(s[:1], "-._+") && !strings.ContainsFunc(s, isInvalid)
}

// checkRelease checks a bundle with a release. It adds the same faults as operator-registry.
func (b *Bundle) checkRelease(faults *diag.List) {
	if len(b.release) == 0 {
		return
	}
	if want := b.pkg.Name() + "-v" + b.version.String() + "-" + b.Release(); b.Name() != want {
		faults.Addf(b.data.Pos, "bundle %q of package %q: release %s requires the name %q", b.Name(), b.pkg.Name(), b.Release(), want)
	}
	if len(b.version.Build) > 0 {
		faults.Addf(b.data.Pos, "bundle %q of package %q: version %s has build metadata and release %s", b.Name(), b.pkg.Name(), b.version, b.Release())
	}
}
