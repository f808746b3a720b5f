package fbc

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Supported schemas. Objects of other schemas are ignored.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
	schemaLifecycles   = catalog.LifecycleSchema
)

// object is one object of a catalog.
type object struct {
	pos    diag.Pos
	span   catalog.Span
	schema string

	name, pkg      string
	defaultChannel string
	description    string
	entries        []catalog.EntryData
	deprecations   []catalog.DeprecationData
	bundle         catalog.BundleData
	csv            bool // the object has an olm.csv.metadata property, which takes precedence over an embedded CSV
	manifests      []manifest
	lifecycle      catalog.LifecycleData
}

// manifest is one olm.bundle.object property: a manifest, or a reference to a file with a manifest.
type manifest struct {
	data []byte
	ref  string
}

// codecs holds the codecs of all schemas, and the state of the YAML filter.
type codecs struct {
	schemas       map[string]members[object]
	metadata, csv codec[rawMetadata]

	schema     []byte // schema of the current YAML document; empty if it is not a string
	isMetadata bool   // the current property is an olm.csv.metadata
}

func newCodecs() *codecs {
	f := &codecs{}
	schema := fieldAt("schema", func(o *object) *string { return &o.schema }, codec[string]{
		read: textCodec(maxName).read, write: textCodec(maxName).write, shape: &yamlnode.Filter{Text: func(s []byte) []byte {
			f.schema = append(f.schema, s...)
			return s
		}},
	})
	name := fieldAt("name", func(o *object) *string { return &o.name }, textCodec(maxName))
	pkg := fieldAt("package", func(o *object) *string { return &o.pkg }, textCodec(maxName))
	f.metadata, f.csv = metadataCodecs()
	f.schemas = map[string]members[object]{
		schemaPackage: {
			schema, name,
			fieldAt("defaultChannel", func(o *object) *string { return &o.defaultChannel }, textCodec(maxName)),
			optionalField("description", func(o *object) *string { return &o.description }, textCodec(maxText)),
		},
		schemaChannel: {
			schema, name, pkg,
			fieldAt("entries", func(o *object) *[]catalog.EntryData { return &o.entries }, listCodec(maxEntries, entryCodec())),
		},
		schemaBundle: {
			schema, name, pkg,
			optionalField("image", func(o *object) *string { return &o.bundle.Image }, textCodec(maxText)),
			fieldAt("properties", sameValue, f.properties()),
			optionalField("relatedImages", func(o *object) *[]catalog.RelatedImage { return &o.bundle.RelatedImages }, listCodec(maxImages, members[catalog.RelatedImage]{
				fieldAt("name", func(r *catalog.RelatedImage) *string { return &r.Name }, textCodec(maxName)),
				fieldAt("image", func(r *catalog.RelatedImage) *string { return &r.Image }, textCodec(maxText)),
			}.codec())),
		},
		schemaDeprecations: {
			schema, pkg,
			readOnlyField("name", func(o *object) *string { return &o.name }, textCodec(maxName)),
			fieldAt("entries", func(o *object) *[]catalog.DeprecationData { return &o.deprecations }, listCodec(maxEntries, deprecationCodec())),
		},
		schemaLifecycles: lifecycleFields(schema, pkg),
	}
	return f
}

// document returns the filter for a YAML document. The schema may be unknown while fields are read, because the
// field "schema" may come last. So the filter selects the fields of all schemas, except lifecycle documents.
func (f *codecs) document() *yamlnode.Filter {
	return &yamlnode.Filter{Open: func() { f.schema = f.schema[:0] }, Field: func(name []byte) (*yamlnode.Filter, bool) {
		for _, schema := range []string{schemaBundle, schemaChannel, schemaPackage} { // these have all fields of olm.deprecations, too
			if s, ok := f.schemas[schema].fieldFilter(name); ok {
				return s, true
			}
		}
		return nil, false
	}}
}

// entryCodec returns the codec of an entry of an olm.channel.
func entryCodec() codec[catalog.EntryData] {
	return positionedCodec(func(e *catalog.EntryData) *diag.Pos { return &e.Pos }, members[catalog.EntryData]{
		fieldAt("name", func(e *catalog.EntryData) *string { return &e.Name }, textCodec(maxName)),
		optionalField("replaces", func(e *catalog.EntryData) *string { return &e.Replaces }, textCodec(maxName)),
		optionalField("skips", func(e *catalog.EntryData) *[]string { return &e.Skips }, listCodec(maxEntries, textCodec(maxName))),
		optionalField("skipRange", func(e *catalog.EntryData) *string { return &e.SkipRange }, textCodec(maxText)),
	}.codec())
}

// deprecationCodec returns the codec of an entry in an olm.deprecations.
func deprecationCodec() codec[catalog.DeprecationData] {
	return positionedCodec(func(e *catalog.DeprecationData) *diag.Pos { return &e.Pos }, members[catalog.DeprecationData]{
		fieldAt("reference", sameValue, members[catalog.DeprecationData]{
			fieldAt("schema", func(e *catalog.DeprecationData) *string { return &e.Schema }, textCodec(maxName)),
			optionalField("name", func(e *catalog.DeprecationData) *string { return &e.Name }, textCodec(maxName)),
		}.codec()),
		fieldAt("message", func(e *catalog.DeprecationData) *string { return &e.Message }, textCodec(maxText)),
	}.codec())
}

// positionedCodec returns a codec like f that also stores the position of the decoded value in *pos. It
// has no YAML filter, because the fields of the value depend on the enclosing object.
func positionedCodec[T any](pos func(*T) *diag.Pos, f codec[T]) codec[T] {
	read := f.read
	f.shape = nil
	f.read = func(d *decoder, into *T) {
		*pos(into) = d.nextPos()
		read(d, into)
	}
	return f
}

// properties returns the codec of the properties of a bundle.
func (f *codecs) properties() codec[object] {
	each := members[catalog.Property]{
		fieldAt("type", func(p *catalog.Property) *string { return &p.Type }, textCodec(maxName)),
		fieldAt("value", sameValue, codec[catalog.Property]{write: func(e *encoder, p *catalog.Property) { e.writeValue(p.Value) }}),
	}
	all := listCodec(maxProperties, each.codec())
	typ := &yamlnode.Filter{Text: func(s []byte) []byte {
		f.isMetadata = string(s) == catalog.TypeMetadata
		return s
	}}
	value := &yamlnode.Filter{Field: func(name []byte) (*yamlnode.Filter, bool) {
		if !f.isMetadata {
			return nil, true
		}
		return f.metadata.shape.Field(name)
	}}
	return codec[object]{
		read:  func(d *decoder, o *object) { d.items(maxProperties, func(int) { d.decodeProperty(o) }) },
		write: func(e *encoder, o *object) { all.write(e, &o.bundle.Properties) },
		shape: &yamlnode.Filter{Items: &yamlnode.Filter{Open: func() { f.isMetadata = false }, Field: func(name []byte) (*yamlnode.Filter, bool) {
			switch string(name) {
			case "type":
				return typ, true
			case "value":
				return value, true
			}
			return nil, false
		}}},
	}
}
