package fbc

import (
	"bufio"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
)

const (
	windowSize = 256 << 10 // what is read at once of each file of a catalog
	beginSize  = 64 << 10  // and to find out how a file begins
)

// builder collects the objects of a catalog, in whatever order they come.
type builder struct {
	packages
	deprecated map[string]diag.Pos // where a package's olm.deprecations stands
	faults     diag.List
	objects    int
	plodding   bool // without the fast path for YAML; for tests

	// Where there is a sink, packages are no more than one.
	sink    Sink
	current string          // the package of the last object
	before  string          // and of the one before
	taken   map[string]bool // the packages that the sink has
	stays   map[string]bool // those that it has not, or has given back
	held    packages        // these

	document catalog.Span // of the YAML document that is decoded

	texts  map[string]string
	values map[string][]byte

	forms *forms

	// Memory that is used again for every file.
	window    *bufio.Reader
	file      *scanner
	inner     *scanner // reads embedded manifests
	object    object   // that is decoded
	documents documents
	walker    blockyaml.Walker
	rewriter  rewriter
	written   scanner // reads what rewriter wrote
	scratch   []byte  // an embedded manifest
	compact   []byte  // a property's value
	long      []byte  // the last description, as it stands
	short     string  // and what was made of it
}

func newBuilder() *builder {
	f := newForms()
	return &builder{
		forms: f, rewriter: rewriter{root: f.document()},
		deprecated: map[string]diag.Pos{}, texts: map[string]string{}, values: map[string][]byte{},
		window: bufio.NewReaderSize(nil, beginSize), file: &scanner{}, inner: &scanner{},
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
	if o.pkg != "" {
		b.current = o.pkg
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
		b.current = o.name
		b.packages.add(catalog.PackageData{Name: o.name, DefaultChannel: o.defaultChannel, Description: o.description, Pos: o.pos})
	case schemaChannel:
		p := b.of(o.pkg)
		p.Channels = append(p.Channels, catalog.ChannelData{Name: o.name, Entries: o.entries, Pos: o.pos})
	case schemaBundle:
		o.bundle.Name, o.bundle.Pos = o.name, o.pos
		if o.bundle.Embedded {
			o.bundle.Span = o.span
		}
		p := b.of(o.pkg)
		p.Bundles = append(p.Bundles, o.bundle)
	case schemaDeprecations:
		if first, ok := b.deprecated[o.pkg]; ok {
			b.faults.Addf(o.pos, "second olm.deprecations of package %q: first at %s", o.pkg, first)
		}
		b.deprecated[o.pkg] = o.pos
		if len(o.deprecations) > 0 { // else they say nothing, not even that there is a package
			p := b.of(o.pkg)
			p.Deprecations = append(p.Deprecations, o.deprecations...)
		}
	case schemaLifecycles:
		o.lifecycle.Pos = o.pos
		if l := &o.lifecycle; len(l.Versions)+len(l.Faults) == 0 {
			l.Faults = []catalog.LifecycleFault{{Pos: o.pos, Msg: "no versions"}}
		}
		p := b.of(o.pkg)
		p.Lifecycles = append(p.Lifecycles, o.lifecycle)
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
	return catalog.Content{Packages: b.sorted()}, nil
}
