package fbc

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/internal/diag"
)

// The schemas that are read. Objects of any other schema are left alone.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
	schemaLifecycles   = lifecycle.Schema
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
	csv            bool // bundle.Metadata comes from olm.csv.metadata, which wins over an embedded one
	manifests      []manifest
	lifecycle      catalog.LifecycleData
}

// manifest is one olm.bundle.object: its bytes, or the file that has them.
type manifest struct {
	data []byte
	ref  string
}

// forms is what objects hold: which fields matter, and how each is read and
// written.
type forms struct {
	schemas       map[string]members[object]
	metadata, csv form[told]
}

func newForms() *forms {
	schema := at("schema", func(o *object) *string { return &o.schema }, form[string]{
		read: text(maxName).read, write: text(maxName).write, shape: &shape{role: aSchema},
	})
	name := at("name", func(o *object) *string { return &o.name }, text(maxName))
	pkg := at("package", func(o *object) *string { return &o.pkg }, text(maxName))
	metadata, csv := metadataForms()
	return &forms{metadata: metadata, csv: csv, schemas: map[string]members[object]{
		schemaPackage: {
			schema, name,
			at("defaultChannel", func(o *object) *string { return &o.defaultChannel }, text(maxName)),
			optional("description", func(o *object) *string { return &o.description }, text(maxText)),
		},
		schemaChannel: {
			schema, name, pkg,
			at("entries", func(o *object) *[]catalog.EntryData { return &o.entries }, list(maxEntries, entry())),
		},
		schemaBundle: {
			schema, name, pkg,
			optional("image", func(o *object) *string { return &o.bundle.Image }, text(maxText)),
			at("properties", itself, properties(metadata.shape)),
			optional("relatedImages", func(o *object) *[]catalog.RelatedImage { return &o.bundle.RelatedImages }, list(maxImages, members[catalog.RelatedImage]{
				at("name", func(r *catalog.RelatedImage) *string { return &r.Name }, text(maxName)),
				at("image", func(r *catalog.RelatedImage) *string { return &r.Image }, text(maxText)),
			}.form())),
		},
		schemaDeprecations: {
			schema, pkg,
			readOnly("name", func(o *object) *string { return &o.name }, text(maxName)),
			at("entries", func(o *object) *[]catalog.DeprecationData { return &o.deprecations }, list(maxEntries, deprecation())),
		},
		schemaLifecycles: lifecycles(schema, pkg),
	}}
}

// document returns the shape of an object whose schema is not known yet.
func (f *forms) document() *shape {
	return &shape{fields: func(name []byte) (*shape, bool) {
		for _, schema := range []string{schemaBundle, schemaChannel, schemaPackage} { // whose fields an olm.deprecations has, too
			if s, ok := f.schemas[schema].shape(name); ok {
				return s, true
			}
		}
		return nil, false
	}}
}

// entry is an entry of an olm.channel.
func entry() form[catalog.EntryData] {
	return placed(func(e *catalog.EntryData) *diag.Pos { return &e.Pos }, members[catalog.EntryData]{
		at("name", func(e *catalog.EntryData) *string { return &e.Name }, text(maxName)),
		optional("replaces", func(e *catalog.EntryData) *string { return &e.Replaces }, text(maxName)),
		optional("skips", func(e *catalog.EntryData) *[]string { return &e.Skips }, list(maxEntries, text(maxName))),
		optional("skipRange", func(e *catalog.EntryData) *string { return &e.SkipRange }, text(maxText)),
	}.form())
}

// deprecation is an entry of an olm.deprecations.
func deprecation() form[catalog.DeprecationData] {
	return placed(func(e *catalog.DeprecationData) *diag.Pos { return &e.Pos }, members[catalog.DeprecationData]{
		at("reference", itself, members[catalog.DeprecationData]{
			at("schema", func(e *catalog.DeprecationData) *string { return &e.Schema }, text(maxName)),
			optional("name", func(e *catalog.DeprecationData) *string { return &e.Name }, text(maxName)),
		}.form()),
		at("message", func(e *catalog.DeprecationData) *string { return &e.Message }, text(maxText)),
	}.form())
}

// placed is an entry that knows where it stands. Its fields depend on what it is
// an entry of.
func placed[T any](pos func(*T) *diag.Pos, f form[T]) form[T] {
	read := f.read
	f.shape = &shape{role: anEntry}
	f.read = func(d *decoder, into *T) {
		*pos(into) = d.here()
		read(d, into)
	}
	return f
}

// properties is the array of a bundle's properties.
func properties(metadata *shape) form[object] {
	each := members[catalog.Property]{
		at("type", func(p *catalog.Property) *string { return &p.Type }, text(maxName)),
		at("value", itself, form[catalog.Property]{write: func(e *encoder, p *catalog.Property) { e.value(p.Value) }}),
	}
	all := list(maxProperties, each.form())
	value := *metadata
	value.role = someMetadata
	return form[object]{
		read:  func(d *decoder, o *object) { d.items(maxProperties, func(int) { d.property(o) }) },
		write: func(e *encoder, o *object) { all.write(e, &o.bundle.Properties) },
		shape: &shape{items: &shape{role: aProperty, fields: func(name []byte) (*shape, bool) {
			switch string(name) {
			case "type":
				return &shape{role: aPropertyType}, true
			case "value":
				return &value, true
			}
			return nil, false
		}}},
	}
}
