// Package lockfile reads and writes quayside.lock.
//
// The resolver writes the lock, and rendering reads it. Rendering needs only the lock, quayside.yaml and the
// content of bundles. The lock contains the decisions of the resolver. It contains no data that rendering can
// derive from quayside.yaml or from the content of bundles. The same decisions result in the same bytes on
// every machine. Each block has its own checksum, and depends on only one pin and on settings. So Git can
// merge branches that change different operators. The package neither resolves nor renders.
//
// The package is public: docs/library.md has its compatibility promise.
//
// Start from [New], [Parse] and [Format].
package lockfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// APIVersion is the API version of a lock.
const APIVersion = "quayside.dev/v1alpha1"

// Schema is the schema number that Format writes and Parse reads.
const Schema = 1

// Kind is the kind of the document in a lock.
const Kind = "Lock"

// New returns a lock with the given pins in canonical form: pins are sorted, lists whose order has no meaning
// are sorted, empty lists are nil, and JSON has sorted keys. It does not modify pins. It panics if a pin
// contains invalid JSON.
func New(pins []Pin) *File { return (&File{}).With(pins) }

// With returns a lock with the given pins and the other blocks of f, in the canonical form of [New]. It does
// not modify f. A nil f counts as empty.
func (f *File) With(pins []Pin) *File {
	out := f.sorted()
	out.Pins = slices.Clone(pins)
	for i := range out.Pins {
		out.Pins[i] = canonicalPin(out.Pins[i])
	}
	return out.sorted()
}

// sorted returns a sorted copy of f. A nil f counts as empty.
func (f *File) sorted() *File {
	if f == nil {
		return &File{}
	}
	out := &File{Namespaces: nonEmpty(f.Namespaces), Pins: slices.Clone(f.Pins), Leaving: nonEmpty(f.Leaving)}
	for i := range out.Pins {
		out.Pins[i] = sortPin(out.Pins[i])
	}
	for i := range out.Leaving {
		out.Leaving[i].Pin = sortPin(canonicalPin(out.Leaving[i].Pin))
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

// sortPin returns a copy of a pin with sorted lists.
func sortPin(p Pin) Pin {
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
	if p.Template != nil {
		t := *p.Template
		t.APIVersions = sortedUnique(t.APIVersions, strings.Compare)
		p.Template = &t
	}
	if p.Storage != nil {
		p.Storage = &Storage{Stage: p.Storage.Stage, Objects: sortedUnique(p.Storage.Objects, compareStored)}
	}
	return p
}

// canonicalPin returns a copy of a pin in which empty lists are nil, the default approval is empty,
// and JSON has sorted keys.
func canonicalPin(p Pin) Pin {
	p.Skipped = nonEmpty(p.Skipped)
	if p.Approval == automatic {
		p.Approval = ""
	}
	if len(p.Config) > 0 {
		p.Config = mustCanonical(p.Config)
	} else {
		p.Config = nil
	}
	if t := p.Template; t != nil {
		of := *t
		if of.APIVersions, of.Values = nonEmpty(t.APIVersions), nil; len(t.Values) > 0 {
			of.Values = mustCanonical(t.Values)
		}
		p.Template = &of
	}
	p.Properties = nonEmpty(p.Properties)
	for i := range p.Properties {
		p.Properties[i].Value = mustCanonical(p.Properties[i].Value)
	}
	return p
}

// automatic is the default value of Pin.Approval. It is not written to the file.
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

func compareImages(a, b RelatedImage) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Image, b.Image))
}

// Key returns "namespace/package", which identifies an installed operator.
func (p Pin) Key() string { return p.Namespace + "/" + p.Package }

// BundleDigest returns the digest of the bundle image or, if the catalog embeds the bundle, the digest of the
// manifests. It returns "" if the pin has no digest yet.
func (p Pin) BundleDigest() Digest {
	return cmp.Or(Digest(imageref.DigestIn(p.Image)), p.ContentDigest)
}

// Pin returns the pin of a package in a namespace, and whether there is one.
func (f *File) Pin(namespace, pkg string) (Pin, bool) {
	i, ok := slices.BinarySearchFunc(f.Pins, Pin{Namespace: namespace, Package: pkg}, comparePins)
	if !ok {
		return Pin{}, false
	}
	return f.Pins[i], true
}

// Operator returns the pin of an operator (namespace/package), and whether there is one. f may be nil.
func (f *File) Operator(key string) (Pin, bool) {
	namespace, pkg, _ := strings.Cut(key, "/")
	if f == nil {
		return Pin{}, false
	}
	return f.Pin(namespace, pkg)
}

// Generated reports whether the pin is a dependency that no declaration requests.
func (p Pin) Generated() bool { return len(p.RequestedBy) == 0 }

// Subscription returns the name of the first declaration that requests the pin. For a dependency, it returns
// the name that OLM would give to the Subscription.
func (p Pin) Subscription() string {
	if p.Generated() {
		return GeneratedName(p.Package, p.Channel, p.Catalog.ID)
	}
	_, name, _ := strings.Cut(p.RequestedBy[0], "/")
	return name
}

// GeneratedName returns the name that OLM gives to the Subscription that it generates for a
// dependency.
func GeneratedName(pkg, channel string, id ID) string {
	return strings.TrimSuffix(pkg+"-"+channel+"-"+id.Name+"-"+id.Namespace, "-")
}

// Needed returns the operators that an operator requires, directly or transitively, as a set of
// "namespace/package". If the operator is part of a cycle, the set contains the operator itself.
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

// RequiredBy returns the pins that require p, sorted by namespace and package. Each element contains the key of
// such a pin, and its requirement that p meets.
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

// LeavingOperator returns the leaving operator with this "namespace/package", and whether there is
// one.
func (f *File) LeavingOperator(operator string) (Leaving, bool) {
	i := slices.IndexFunc(f.Leaving, func(l Leaving) bool { return l.Key() == operator })
	if i < 0 {
		return Leaving{}, false
	}
	return f.Leaving[i], true
}

// Successor returns the pinned operator ("namespace/package") that replaces l. It follows a chain
// of leaving operators. It returns "" if no pinned operator replaces l.
func (f *File) Successor(l Leaving) string {
	for range len(f.Leaving) {
		if _, pinned := f.Operator(l.ReplacedBy); pinned {
			return l.ReplacedBy
		}
		next, leaves := f.LeavingOperator(l.ReplacedBy)
		if !leaves {
			return ""
		}
		l = next
	}
	return ""
}

// Catalogs returns the catalogs of all pins and leaving operators, sorted by name, source and
// digest. A catalog that was used with several digests appears once for each digest.
func (f *File) Catalogs() []Catalog {
	var out []Catalog
	for _, p := range f.Pins {
		out = append(out, p.Catalog)
	}
	for _, l := range f.Leaving {
		out = append(out, l.Catalog)
	}
	out = slices.DeleteFunc(out, func(c Catalog) bool { return c.ID == ID{} })
	return sortedUnique(out, compareCatalogs)
}

// checkUnique adds a fault for each duplicate block, and the faults of checkSuccessors.
func checkUnique(f *File, errs *diag.List) {
	checkDuplicates(errs, f.Namespaces, func(n Namespace) diag.Pos { return n.Pos })
	checkDuplicates(errs, f.Pins, func(p Pin) diag.Pos { return p.Pos })
	checkDuplicates(errs, f.Leaving, func(l Leaving) diag.Pos { return l.Pos })
	checkSuccessors(errs, f)
}

func checkDuplicates[T block](errs *diag.List, sorted []T, at func(T) diag.Pos) {
	for i := 1; i < len(sorted); i++ {
		if first, b := sorted[i-1], sorted[i]; b.title() == first.title() {
			errs.Addf(at(b), "%s appears twice, first on line %d: delete one block, or take one side with 'git checkout --theirs' or '--ours', and run 'quayside resolve'", b.title(), at(first).Line)
		}
	}
}

// checkSuccessors adds a fault for each leaving operator that is also pinned, or whose successor is not pinned.
func checkSuccessors(errs *diag.List, f *File) {
	for _, l := range f.Leaving {
		if _, pinned := f.Pin(l.Namespace, l.Package); pinned {
			errs.Addf(l.Pos, "%s: the operator is also pinned: delete one block and run 'quayside resolve'", l.title())
		}
		if l.ReplacedBy != "" && f.Successor(l) == "" {
			errs.Addf(l.Pos, "%s: its successor %q is not pinned: delete the block and run 'quayside resolve'", l.title(), l.ReplacedBy)
		}
	}
}
