package fbc

import (
	"bufio"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

const (
	windowSize = 256 << 10 // buffer size for reading a file
	beginSize  = 64 << 10  // buffer size for detecting the format of a file
)

// builder collects the objects of a catalog, in any order.
type builder struct {
	packages
	deprecated map[string]diag.Pos // position of the olm.deprecations of each package
	others     []catalog.OtherSchema
	faults     diag.List
	objects    int

	document catalog.Span // byte range of the YAML document being decoded

	texts  map[string]string
	values map[string][]byte

	codecs *codecs

	// Buffers and readers that are reused for every file.
	window    *bufio.Reader
	file      *scanner
	inner     *scanner // for embedded manifests
	object    object   // object being decoded
	documents yamlnode.Stream
	yaml      yamlnode.Reader // reader for YAML documents of the catalog
	manifests yamlnode.Reader // reader for embedded manifests in YAML
	written   scanner         // scanner of the JSON into which yaml converts documents
	scratch   []byte          // an embedded manifest
	compact   []byte          // a property's value
	long      []byte          // last long description that was shortened
	short     string          // the result of shortening long
}

func newBuilder() *builder {
	return &builder{
		codecs:     newCodecs(),
		deprecated: map[string]diag.Pos{}, texts: map[string]string{}, values: map[string][]byte{},
		window: bufio.NewReaderSize(nil, beginSize), file: &scanner{}, inner: &scanner{},
	}
}

// intern returns text as a string. Equal short texts share one string to save memory.
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

// fault adds err, with the position in err or, if err has no position, with pos.
func (b *builder) fault(pos diag.Pos, err error) { b.faults.Add(pos, err) }

// isFull reports whether there are too many faults or objects to continue.
func (b *builder) isFull() bool { return len(b.faults) > maxFaults || b.objects > maxObjects }

// add adds a decoded object to the catalog. If sel is not nil, it passes the object to sel instead.
func (b *builder) add(o *object, sel *selector) {
	b.objects++
	if b.objects > maxObjects {
		b.faults.Addf(o.pos, "more than %d objects", maxObjects)
		return
	}
	if sel != nil {
		sel.record(o)
		return
	}
	if o.schema == "" {
		b.faults.Addf(o.pos, "object has no schema")
		return
	}
	if o.pkg == "" && (o.schema == schemaChannel || o.schema == schemaBundle || o.schema == schemaDeprecations) {
		b.faults.Addf(o.pos, "%s %q has no field package", o.schema, o.name)
		return
	}
	switch o.schema {
	case schemaPackage:
		b.declare(catalog.PackageData{Name: o.name, DefaultChannel: o.defaultChannel, Description: o.description, Pos: o.pos})
	case schemaChannel:
		p := b.getOrAdd(o.pkg)
		p.Channels = append(p.Channels, catalog.ChannelData{Name: o.name, Entries: o.entries, Pos: o.pos})
	case schemaBundle:
		o.bundle.Name, o.bundle.Pos = o.name, o.pos
		if o.bundle.Embedded {
			o.bundle.Span = o.span
		}
		p := b.getOrAdd(o.pkg)
		p.Bundles = append(p.Bundles, o.bundle)
	case schemaDeprecations:
		if first, ok := b.deprecated[o.pkg]; ok {
			b.faults.Addf(o.pos, "duplicate olm.deprecations of package %q: first at %s", o.pkg, first)
		}
		b.deprecated[o.pkg] = o.pos
		if len(o.deprecations) > 0 { // ignore an empty olm.deprecations
			p := b.getOrAdd(o.pkg)
			p.Deprecations = append(p.Deprecations, o.deprecations...)
		}
	case schemaLifecycles:
		o.lifecycle.Pos = o.pos
		if l := &o.lifecycle; len(l.Versions)+len(l.Faults) == 0 {
			l.Faults = []catalog.LifecycleFault{{Pos: o.pos, Msg: "no versions"}}
		}
		p := b.getOrAdd(o.pkg)
		p.Lifecycles = append(p.Lifecycles, o.lifecycle)
	default:
		if len(b.others) < maxFaults && !slices.ContainsFunc(b.others, func(s catalog.OtherSchema) bool { return s.Schema == o.schema }) {
			b.others = append(b.others, catalog.OtherSchema{Schema: o.schema, Pos: o.pos})
		}
	}
}

// content returns all packages with their objects, sorted by name.
func (b *builder) content() (catalog.Content, error) {
	if len(b.faults) > maxFaults {
		b.faults = b.faults[:maxFaults:maxFaults]
		b.faults.Addf(diag.Pos{}, "more than %d faults", maxFaults)
	}
	if err := b.faults.Err(); err != nil {
		return catalog.Content{}, err
	}
	return catalog.Content{Packages: b.sorted(), Others: b.others}, nil
}
