// Package lockfile reads and writes quayside.lock.
//
// The lock is the contract between resolving and rendering. It holds decisions:
// everything that rendering needs beside the content of bundles and quayside.yaml,
// and nothing that can be derived from declarations, catalogs or content. Its bytes
// are canonical and depend on no machine. Each block has a checksum of its own and
// depends on one pin or on settings alone, so that branches of different operators
// merge. The package never resolves and never renders.
//
// The package is public: docs/library.md has the promise.
//
// Start from [New], [Parse] and [Format].
package lockfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// APIVersion is the API version of a lock.
const APIVersion = "quayside.dev/v1alpha1"

// Schema is the number of the schema that Format writes. Parse reads it and every
// older one.
const Schema = 1

// Kind is the kind of the only document in a lock.
const Kind = "Lock"

// New returns a lock of these pins, sorted, in canonical form: lists sorted where
// their order has no meaning, empty ones nil, JSON with its keys sorted. The argument
// is not modified. JSON that does not parse panics.
func New(pins []Pin) *File { return (&File{}).With(pins) }

// With returns a lock of these pins and of the other blocks of f, in the form of New.
// A nil f is empty; it is not modified.
func (f *File) With(pins []Pin) *File {
	out := f.sorted()
	out.Pins = slices.Clone(pins)
	for i := range out.Pins {
		out.Pins[i] = canonical(out.Pins[i])
	}
	return out.sorted()
}

// sorted returns f, built by hand or not, with all in order. A nil f is empty.
func (f *File) sorted() *File {
	if f == nil {
		return &File{}
	}
	out := &File{ReadSchema: f.ReadSchema, Namespaces: nonEmpty(f.Namespaces), Pins: slices.Clone(f.Pins), Leaving: nonEmpty(f.Leaving)}
	for i := range out.Pins {
		out.Pins[i] = sorted(out.Pins[i])
	}
	for i := range out.Leaving {
		out.Leaving[i].Pin = sorted(canonical(out.Leaving[i].Pin))
		out.Leaving[i].With = slices.Sorted(slices.Values(out.Leaving[i].With))
	}
	slices.SortStableFunc(out.Namespaces, compareNamespaces)
	slices.SortStableFunc(out.Pins, comparePins)
	slices.SortStableFunc(out.Leaving, compareLeaving)
	return out
}

func compareCatalogs(a, b Catalog) int {
	return cmp.Or(a.ID.Compare(b.ID), strings.Compare(a.Source, b.Source), strings.Compare(string(a.Digest), string(b.Digest)), strings.Compare(a.Identity, b.Identity))
}

func compareNamespaces(a, b Namespace) int { return strings.Compare(a.Name, b.Name) }

func comparePins(a, b Pin) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

func compareLeaving(a, b Leaving) int { return comparePins(a.Pin, b.Pin) }

// sorted returns a pin with its lists in order.
func sorted(p Pin) Pin {
	p.WatchNamespaces = sortedUnique(p.WatchNamespaces, strings.Compare)
	p.RequestedBy = sortedUnique(p.RequestedBy, strings.Compare)
	p.Requires = sortedUnique(p.Requires, compareRequirements)
	p.RelatedImages = sortedUnique(p.RelatedImages, compareImages)
	if p.Adopted != nil {
		p.Adopted = &Adopted{
			Condition:    p.Adopted.Condition,
			Certificates: sortedUnique(p.Adopted.Certificates, strings.Compare),
			Annotations:  sortedUnique(p.Adopted.Annotations, compareAnnotations),
		}
	}
	if p.Storage != nil {
		p.Storage = &Storage{State: p.Storage.State, Objects: sortedUnique(p.Storage.Objects, compareStored)}
	}
	return p
}

// canonical returns a pin with empty lists nil, and JSON with its keys sorted.
func canonical(p Pin) Pin {
	p.Skipped = nonEmpty(p.Skipped)
	if p.Approval == automatic {
		p.Approval = ""
	}
	if len(p.Config) > 0 {
		p.Config = mustCanonical(p.Config)
	} else {
		p.Config = nil
	}
	p.Properties = nonEmpty(p.Properties)
	for i := range p.Properties {
		p.Properties[i].Value = mustCanonical(p.Properties[i].Value)
	}
	return p
}

// automatic is the approval that a pin without one has.
const automatic = "Automatic"

func mustCanonical(raw []byte) []byte {
	out, err := yamlnode.Canonical(raw)
	must(err)
	return out
}

func nonEmpty[T any](in []T) []T {
	if len(in) == 0 {
		return nil
	}
	return slices.Clone(in)
}

func sortedUnique[T comparable](in []T, compare func(a, b T) int) []T {
	out := nonEmpty(in)
	slices.SortFunc(out, compare)
	return slices.Compact(out)
}

func compareRequirements(a, b Requirement) int {
	return cmp.Or(strings.Compare(a.Requirement, b.Requirement), strings.Compare(a.Pin, b.Pin))
}

func compareAnnotations(a, b Annotation) int {
	return cmp.Or(strings.Compare(a.Deployment, b.Deployment), strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

func compareStored(a, b StoredVersions) int {
	return cmp.Or(strings.Compare(a.Definition, b.Definition), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
}

func compareImages(a, b catalog.RelatedImage) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Image, b.Image))
}

// Key returns "namespace/package", the identity of an installed operator.
func (p Pin) Key() string { return p.Namespace + "/" + p.Package }

// BundleDigest returns the digest of the bundle: of its image, else of the
// manifests that the catalog embeds; empty for a pin that is not tied to its
// content yet.
func (p Pin) BundleDigest() catalog.Digest {
	return cmp.Or(catalog.Digest(imageref.DigestIn(p.Image)), p.ContentDigest)
}

// Pin returns the pin of a package in a namespace.
func (f *File) Pin(namespace, pkg string) (Pin, bool) {
	i, ok := slices.BinarySearchFunc(f.Pins, Pin{Namespace: namespace, Package: pkg}, comparePins)
	if !ok {
		return Pin{}, false
	}
	return f.Pins[i], true
}

// IsOlder reports whether a lock was read in an older schema than Format writes. A nil
// lock is not.
func (f *File) IsOlder() bool { return f != nil && f.ReadSchema != 0 && f.ReadSchema < Schema }

// Generated reports whether nobody declared the package: it is a dependency.
func (p Pin) Generated() bool { return len(p.RequestedBy) == 0 }

// Subscription returns the name of the declaration that the pin answers, or of the
// Subscription that OLM would generate for a dependency.
func (p Pin) Subscription() string {
	if p.Generated() {
		return GeneratedName(p.Package, p.Channel, p.Catalog.ID)
	}
	_, name, _ := strings.Cut(p.RequestedBy[0], "/")
	return name
}

// GeneratedName returns the name that OLM gives a Subscription that it generates.
func GeneratedName(pkg, channel string, id catalog.ID) string {
	return strings.TrimSuffix(pkg+"-"+channel+"-"+id.Name+"-"+id.Namespace, "-")
}

// Needed returns the operators that an operator requires, directly or over others, all
// by "namespace/package". It contains the operator itself where these require it in turn.
func (f *File) Needed(operator string) map[string]bool {
	requires := map[string][]Requirement{}
	for _, p := range f.Pins {
		requires[p.Key()] = append(requires[p.Key()], p.Requires...)
	}
	found := map[string]bool{}
	for open := []string{operator}; len(open) > 0; open = open[1:] {
		for _, r := range requires[open[0]] {
			if !found[r.Pin] {
				found[r.Pin] = true
				open = append(open, r.Pin)
			}
		}
	}
	return found
}

// RequiredBy returns which pins require the package of p, by namespace and package,
// and what they require.
func (f *File) RequiredBy(p Pin) []Requirement {
	var out []Requirement
	for _, by := range f.Pins {
		for _, r := range by.Requires {
			if r.Pin == p.Key() {
				out = append(out, Requirement{Pin: by.Key(), Requirement: r.Requirement})
			}
		}
	}
	return out
}

// Leaves returns the block of an operator that is leaving, by "namespace/package".
func (f *File) Leaves(operator string) (Leaving, bool) {
	i := slices.IndexFunc(f.Leaving, func(l Leaving) bool { return l.Key() == operator })
	if i < 0 {
		return Leaving{}, false
	}
	return f.Leaving[i], true
}

// Successor returns the pinned operator that replaces one that is leaving, directly or
// over others that are leaving too, by "namespace/package"; empty where there is none.
func (f *File) Successor(l Leaving) string {
	for range len(f.Leaving) {
		ns, pkg, _ := strings.Cut(l.ReplacedBy, "/")
		if _, pinned := f.Pin(ns, pkg); pinned {
			return l.ReplacedBy
		}
		next, leaves := f.Leaves(l.ReplacedBy)
		if !leaves {
			return ""
		}
		l = next
	}
	return ""
}

// Catalogs returns the catalogs that pins, and operators that are leaving, were taken
// from: by name, then source, then digest. One whose digest differs from pin to pin
// stands there once for each.
func (f *File) Catalogs() []Catalog {
	var out []Catalog
	for _, p := range f.Pins {
		out = append(out, p.Catalog)
	}
	for _, l := range f.Leaving {
		out = append(out, l.Catalog)
	}
	out = slices.DeleteFunc(out, func(c Catalog) bool { return c.ID == catalog.ID{} })
	return sortedUnique(out, compareCatalogs)
}

// unique adds a fault for each block that names what the one before it names.
func unique(f *File, errs *diag.List) {
	twice(errs, f.Namespaces, func(n Namespace) diag.Pos { return n.Pos })
	twice(errs, f.Pins, func(p Pin) diag.Pos { return p.Pos })
	twice(errs, f.Leaving, func(l Leaving) diag.Pos { return l.Pos })
	succeeded(errs, f)
}

func twice[T block](errs *diag.List, sorted []T, at func(T) diag.Pos) {
	for i := 1; i < len(sorted); i++ {
		if first, b := sorted[i-1], sorted[i]; b.title() == first.title() {
			errs.Addf(at(b), "%s appears twice, first on line %d: delete one block, or take one side with git checkout --theirs or --ours, and run quayside resolve", b.title(), at(first).Line)
		}
	}
}

// succeeded adds a fault for each operator that is leaving and pinned all the same, or
// whose successor is not pinned.
func succeeded(errs *diag.List, f *File) {
	for _, l := range f.Leaving {
		if _, pinned := f.Pin(l.Namespace, l.Package); pinned {
			errs.Addf(l.Pos, "%s: it is pinned: delete one block and run quayside resolve", l.title())
		}
		if l.ReplacedBy != "" && f.Successor(l) == "" {
			errs.Addf(l.Pos, "%s: its successor %q is not pinned: delete the block and run quayside resolve", l.title(), l.ReplacedBy)
		}
	}
}
