package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// Catalog is one validated catalog. It is immutable.
type Catalog struct {
	id          ID
	priority    int
	labels      map[string]string
	source      string
	digest      Digest
	packages    []*Package // by name
	byName      map[string]*Package
	names       []string   // names of all packages, including those in Content.Unread; sorted
	channels    []*Channel // default channels first, then by package name, then by channel name
	provides    map[GVK][]*Entry
	warnings    []diag.Warning
	strayFaults diag.List // lifecycle documents of packages that do not exist, and schemas that look like those of OLM
}

// StrictFaults returns the faults that New accepts, but that a catalog author should fix, as a diag.List.
// Operator Framework's programs reject some of them: an invalid skipRange, a bundle name that does not contain
// the release, and a release together with build metadata (operator-registry, alpha/model). The programs ignore
// the others: an invalid lifecycle document, and objects of a schema that is misspelt or belongs to a catalog
// template.
func (c *Catalog) StrictFaults() error {
	faults := slices.Clone(c.strayFaults)
	for _, p := range c.packages {
		faults = append(faults, p.lifecycleFaults...)
	}
	for _, ch := range c.channels {
		for _, e := range ch.entries {
			if e.badRange != nil {
				faults.Addf(cmp.Or(e.data.Pos, ch.data.Pos), "skipRange of entry %q of channel %q of package %q: %w", e.Name(), ch.Name(), ch.pkg.Name(), e.badRange)
			}
		}
	}
	for _, p := range c.packages {
		for _, b := range p.bundles {
			b.checkRelease(&faults)
		}
	}
	return faults.Err()
}

// New validates c and returns it as a Catalog. The error is a diag.List of all faults, sorted by
// position. An invalid requirement is not a fault: it only makes its bundle unusable (see
// Bundle.Unusable). The Catalog keeps the slices of c: do not modify them afterwards.
func New(c Content) (*Catalog, error) {
	cat := &Catalog{
		id: c.ID, priority: c.Priority, labels: maps.Clone(c.Labels), source: c.Source, digest: c.Digest,
		byName: make(map[string]*Package, len(c.Packages)), warnings: diag.SortWarnings(slices.Clone(c.Warnings)),
	}
	var faults diag.List
	known := NewReader()
	names := make([]string, 0, len(c.Packages)+len(c.Unread))
	for i := range c.Packages {
		if !c.Packages[i].isStray() {
			names = append(names, c.Packages[i].Name)
		}
	}
	names = append(names, c.Unread...)
	cat.addOthers(c.Others)
	for i := range c.Packages {
		data := &c.Packages[i]
		if data.isStray() {
			cat.addStray(data, names)
			continue
		}
		p := newPackage(cat, data, names, known, &faults)
		if first, ok := cat.byName[data.Name]; ok {
			faults.Addf(data.Pos, "duplicate package %q%s", data.Name, otherPosition(first.data.Pos))
			continue
		}
		cat.byName[data.Name] = p
		cat.packages = append(cat.packages, p)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(cat.packages, func(a, b *Package) int { return strings.Compare(a.Name(), b.Name()) })
	slices.Sort(names)
	cat.names = slices.Compact(names)
	cat.sortChannels()
	return cat, nil
}

// sortChannels sets c.channels and c.provides, in the order that Channels and Providers document.
func (c *Catalog) sortChannels() {
	for _, p := range c.packages {
		c.channels = append(c.channels, p.channels...)
	}
	slices.SortFunc(c.channels, func(a, b *Channel) int {
		return cmp.Or(
			-compareBool(a.IsDefault(), b.IsDefault()),
			strings.Compare(a.pkg.Name(), b.pkg.Name()),
			strings.Compare(a.Name(), b.Name()),
		)
	})
	c.provides = map[GVK][]*Entry{}
	for _, ch := range c.channels {
		for _, e := range ch.walk {
			for _, g := range e.bundle.facts.Provides {
				c.provides[g] = append(c.provides[g], e)
			}
		}
	}
}

// ID returns the catalog's namespace and name.
func (c *Catalog) ID() ID { return c.id }

// Priority returns the catalog's priority. Resolution prefers catalogs with a higher priority.
func (c *Catalog) Priority() int { return c.priority }

// Labels returns the labels of the ClusterCatalog, or nil if there are none.
func (c *Catalog) Labels() map[string]string { return maps.Clone(c.labels) }

// Source returns the canonical reference of the catalog, as recorded in quayside.lock.
func (c *Catalog) Source() string { return c.source }

// Digest returns the digest that Source referred to when the catalog was loaded.
func (c *Catalog) Digest() Digest { return c.digest }

// Warnings returns the warnings from decoding the catalog, sorted.
func (c *Catalog) Warnings() []diag.Warning { return slices.Clone(c.warnings) }

// Names returns the names of all packages, sorted, including those in Content.Unread.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Packages returns the decoded packages, sorted by name. Packages that are only named in
// Content.Unread are missing.
func (c *Catalog) Packages() []*Package { return slices.Clone(c.packages) }

// Package returns the package with this name, and whether it exists.
func (c *Catalog) Package(name string) (*Package, bool) {
	p, ok := c.byName[name]
	return p, ok
}

// Channels returns every channel in the order in which resolution prefers them: default channels
// first, then by package name, then by channel name.
func (c *Catalog) Channels() []*Channel { return slices.Clone(c.channels) }

// Providers returns the channel entries whose bundles provide g. The entries are in the order of Channels
// and, within a channel, of Channel.Walk. Skipped entries are omitted. A bundle in several channels appears
// once for each channel.
func (c *Catalog) Providers(g GVK) []*Entry { return slices.Clone(c.provides[g]) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// otherPosition returns a suffix for a message about a duplicate: the position p of the first
// occurrence. It returns "" if p is unknown.
func otherPosition(p diag.Pos) string {
	if p.IsZero() {
		return ""
	}
	return ": first at " + p.String()
}
