// Package lockfile is the file that quayside writes: quayside.lock.
//
// The lock is the whole contract between resolving and rendering, so it holds
// everything rendering needs and nothing that differs from machine to machine.
// Its bytes are canonical and it is made of blocks, each with a checksum of its
// own, so that pull requests read well, branches merge and a hand edit shows.
// The package never resolves and never renders.
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

// APIVersion is the schema this package reads and writes.
const APIVersion = "quayside.dev/v1alpha1"

// Kind is the kind of the only document in a lock.
const Kind = "Lock"

// New returns a lock of these catalogs and pins, sorted, in canonical form:
// lists sorted where their order says nothing, empty ones nil, JSON with its
// keys sorted. The arguments are not modified. JSON that does not parse panics.
func New(cats []Catalog, pins []Pin) *File { return (&File{}).With(cats, pins) }

// With returns a lock of these catalogs and pins and of what else f holds, as
// New does. A nil f is empty; it is not modified.
func (f *File) With(cats []Catalog, pins []Pin) *File {
	out := f.sorted()
	out.Catalogs, out.Pins = slices.Clone(cats), slices.Clone(pins)
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
	out := &File{Catalogs: slices.Clone(f.Catalogs), Namespaces: nonEmpty(f.Namespaces), Pins: slices.Clone(f.Pins), Leaving: nonEmpty(f.Leaving)}
	for i := range out.Pins {
		out.Pins[i] = sorted(out.Pins[i])
	}
	for i := range out.Leaving {
		out.Leaving[i].Pin = sorted(canonical(out.Leaving[i].Pin))
	}
	slices.SortStableFunc(out.Catalogs, compareCatalogs)
	slices.SortStableFunc(out.Namespaces, compareNamespaces)
	slices.SortStableFunc(out.Pins, comparePins)
	slices.SortStableFunc(out.Leaving, compareLeaving)
	return out
}

func compareID(a, b catalog.ID) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func compareCatalogs(a, b Catalog) int { return compareID(a.ID, b.ID) }

func compareNamespaces(a, b Namespace) int { return strings.Compare(a.Name, b.Name) }

func comparePins(a, b Pin) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

func compareLeaving(a, b Leaving) int { return comparePins(a.Pin, b.Pin) }

// sorted returns a pin with its lists in order.
func sorted(p Pin) Pin {
	p.WatchNamespaces = sortedUnique(p.WatchNamespaces, strings.Compare)
	p.RequestedBy = sortedUnique(p.RequestedBy, compareRequests)
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
	p.Skipped, p.RemainingHops = nonEmpty(p.Skipped), nonEmpty(p.RemainingHops)
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

func compareRequests(a, b Request) int {
	return cmp.Or(strings.Compare(a.Subscription, b.Subscription), strings.Compare(a.Pin, b.Pin), strings.Compare(a.Requirement, b.Requirement))
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

// Leaves returns what the lock says of an operator that is leaving, by
// "namespace/package".
func (f *File) Leaves(operator string) (Leaving, bool) {
	i := slices.IndexFunc(f.Leaving, func(l Leaving) bool { return l.Key() == operator })
	if i < 0 {
		return Leaving{}, false
	}
	return f.Leaving[i], true
}

// Follower returns the pin that follows what is leaving, or that follows what
// follows it, by "namespace/package"; empty where none does.
func (f *File) Follower(l Leaving) string {
	for range len(f.Leaving) {
		ns, pkg, _ := strings.Cut(l.FollowedBy, "/")
		if _, pinned := f.Pin(ns, pkg); pinned {
			return l.FollowedBy
		}
		next, leaves := f.Leaves(l.FollowedBy)
		if !leaves {
			return ""
		}
		l = next
	}
	return ""
}

// Catalog returns the catalog with this identity.
func (f *File) Catalog(id catalog.ID) (Catalog, bool) {
	i, ok := slices.BinarySearchFunc(f.Catalogs, id, func(c Catalog, id catalog.ID) int { return compareID(c.ID, id) })
	if !ok {
		return Catalog{}, false
	}
	return f.Catalogs[i], true
}

// unique adds a fault for each block that names what the one before it names.
func unique(f *File, errs *diag.List) {
	const again = ", or take one side with git checkout --theirs or --ours, and run quayside resolve"
	twice(errs, f.Catalogs, func(c Catalog) diag.Pos { return c.Pos }, again)
	twice(errs, f.Namespaces, func(n Namespace) diag.Pos { return n.Pos }, again)
	twice(errs, f.Pins, func(p Pin) diag.Pos { return p.Pos }, again)
	twice(errs, f.Leaving, func(l Leaving) diag.Pos { return l.Pos }, again)
	follows(errs, f)
}

func twice[T block](errs *diag.List, sorted []T, at func(T) diag.Pos, remedy string) {
	for i := 1; i < len(sorted); i++ {
		if first, b := sorted[i-1], sorted[i]; b.title() == first.title() {
			errs.Addf(at(b), "%s appears twice, first on line %d: delete one block%s", b.title(), at(first).Line, remedy)
		}
	}
}

// follows adds a fault for each operator that is leaving and pinned all the same,
// or that no pin follows.
func follows(errs *diag.List, f *File) {
	for _, l := range f.Leaving {
		if _, pinned := f.Pin(l.Namespace, l.Package); pinned {
			errs.Addf(l.Pos, "%s: it is pinned: delete one block and run quayside resolve", l.title())
		}
		if f.Follower(l) == "" {
			errs.Addf(l.Pos, "%s: %q, which follows it, is not pinned: delete the block and run quayside resolve", l.title(), l.FollowedBy)
		}
	}
}
