package fbc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/strictjson"
)

// builder collects the objects of a catalog, in whatever order they come.
type builder struct {
	packages     []catalog.PackageData
	channels     []of[catalog.ChannelData]
	bundles      []of[catalog.BundleData]
	deprecations []of[[]catalog.DeprecationData]
	deprecated   map[string]diag.Pos // where a package's olm.deprecations stands
	faults       diag.List
	objects      int
	plodding     bool // without the fast path for YAML; for tests

	document catalog.Span // of the YAML document that is decoded

	texts  map[string]string
	values map[string][]byte

	// Memory that is used again for every file.
	file      *strictjson.Scanner
	inner     *strictjson.Scanner // reads embedded manifests
	documents documents
	walker    blockyaml.Walker
	rewriter  rewriter
	written   strictjson.Scanner // reads what rewriter wrote
	scratch   []byte             // an embedded manifest
	compact   []byte             // a property's value
	unquoted  []byte             // a string without its escapes
}

// of is something that belongs to a package.
type of[T any] struct {
	pkg  string
	data T
}

func newBuilder() *builder {
	return &builder{
		deprecated: map[string]diag.Pos{}, texts: map[string]string{}, values: map[string][]byte{},
		file: &strictjson.Scanner{}, inner: &strictjson.Scanner{},
	}
}

// intern returns text as a string, the same one for short texts that are equal.
func (b *builder) intern(text []byte) string {
	const short = 256
	if len(text) > short {
		return string(text)
	}
	if have, ok := b.texts[string(text)]; ok {
		return have
	}
	s := string(text)
	b.texts[s] = s
	return s
}

// fault adds an error that may have its own position.
func (b *builder) fault(pos diag.Pos, err error) { b.faults.Add(pos, err) }

// full reports whether reading on is of no use.
func (b *builder) full() bool { return len(b.faults) > maxFaults || b.objects > maxObjects }

// add takes a decoded object, or hands it to the selector.
func (b *builder) add(o *object, sel *selector) {
	b.objects++
	if b.objects > maxObjects {
		b.faults.Addf(o.pos, "more than %d objects", maxObjects)
		return
	}
	if sel != nil {
		sel.take(o)
		return
	}
	if o.schema == "" {
		b.faults.Addf(o.pos, "object has no schema")
		return
	}
	if o.pkg == "" && (o.schema == schemaChannel || o.schema == schemaBundle || o.schema == schemaDeprecations) {
		b.faults.Addf(o.pos, "%s %q names no package", o.schema, o.name)
		return
	}
	switch o.schema {
	case schemaPackage:
		b.packages = append(b.packages, catalog.PackageData{
			Name: o.name, DefaultChannel: o.defaultChannel, Description: o.description, Pos: o.pos,
		})
	case schemaChannel:
		b.channels = append(b.channels, of[catalog.ChannelData]{o.pkg, catalog.ChannelData{Name: o.name, Entries: o.entries, Pos: o.pos}})
	case schemaBundle:
		o.bundle.Name, o.bundle.Pos = o.name, o.pos
		if o.bundle.Embedded {
			o.bundle.Span = o.span
		}
		b.bundles = append(b.bundles, of[catalog.BundleData]{o.pkg, o.bundle})
	case schemaDeprecations:
		if first, ok := b.deprecated[o.pkg]; ok {
			b.faults.Addf(o.pos, "second olm.deprecations of package %q: first at %s", o.pkg, first)
		}
		b.deprecated[o.pkg] = o.pos
		b.deprecations = append(b.deprecations, of[[]catalog.DeprecationData]{o.pkg, o.deprecations})
	}
}

// content puts everything in its package, sorted by name.
func (b *builder) content() (catalog.Content, error) {
	if len(b.faults) > maxFaults {
		b.faults = b.faults[:maxFaults:maxFaults]
		b.faults.Addf(diag.Pos{}, "more than %d faults", maxFaults)
	}
	if err := b.faults.Err(); err != nil {
		return catalog.Content{}, err
	}
	byName := func(p, q catalog.PackageData) int {
		return cmp.Or(strings.Compare(p.Name, q.Name), p.Pos.Compare(q.Pos))
	}
	slices.SortFunc(b.packages, byName)
	first := make(map[string]int, len(b.packages))
	for i := range b.packages {
		if _, ok := first[b.packages[i].Name]; !ok {
			first[b.packages[i].Name] = i
		}
	}
	pkg := func(name string) *catalog.PackageData {
		i, ok := first[name]
		if !ok {
			i = len(b.packages)
			first[name] = i
			b.packages = append(b.packages, catalog.PackageData{Name: name, Undeclared: true})
		}
		return &b.packages[i]
	}
	for _, c := range b.channels {
		p := pkg(c.pkg)
		p.Channels = append(p.Channels, c.data)
	}
	for _, x := range b.bundles {
		p := pkg(x.pkg)
		p.Bundles = append(p.Bundles, x.data)
	}
	for _, x := range b.deprecations {
		p := pkg(x.pkg)
		p.Deprecations = append(p.Deprecations, x.data...)
	}
	slices.SortFunc(b.packages, byName)
	for i := range b.packages {
		sortPackage(&b.packages[i])
	}
	return catalog.Content{Packages: b.packages}, nil
}

func sortPackage(p *catalog.PackageData) {
	slices.SortFunc(p.Channels, func(a, b catalog.ChannelData) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	slices.SortFunc(p.Bundles, func(a, b catalog.BundleData) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	slices.SortFunc(p.Deprecations, func(a, b catalog.DeprecationData) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	p.Channels, p.Bundles = slices.Clip(p.Channels), slices.Clip(p.Bundles)
}
