package fbc

import (
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/model"
)

// The supported schemas. Objects of other schemas are ignored.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
	schemaLifecycles   = model.LifecycleSchema
)

// object is one object of a catalog.
type object struct {
	pos    diag.Pos
	span   model.Span
	schema string

	name, pkg      string
	defaultChannel string
	description    string
	entries        []model.EntryData
	deprecations   []model.DeprecationData
	bundle         model.BundleData
	csv            bool // bundle.Metadata is from olm.csv.metadata, which takes precedence over an embedded CSV
	manifests      []manifest
	lifecycle      model.LifecycleData
}

// manifest is one olm.bundle.object: inline data, or a reference to a file.
type manifest struct {
	data []byte
	ref  string
}

// forms holds the forms of all objects.
type forms struct {
	schemas       map[string]members[object]
	metadata, csv form[rawMetadata]

	schema     []byte // schema of the current YAML document; empty if it is not text
	isMetadata bool   // the current property is an olm.csv.metadata
}

func newForms() *forms {
	f := &forms{}
	schema := fieldAt("schema", func(o *object) *string { return &o.schema }, form[string]{
		read: textForm(maxName).read, write: textForm(maxName).write, shape: &yamlnode.Filter{Text: func(s []byte) []byte {
			f.schema = append(f.schema, s...)
			return s
		}},
	})
	name := fieldAt("name", func(o *object) *string { return &o.name }, textForm(maxName))
	pkg := fieldAt("package", func(o *object) *string { return &o.pkg }, textForm(maxName))
	f.metadata, f.csv = metadataForms()
	f.schemas = map[string]members[object]{
		schemaPackage: {
			schema, name,
			fieldAt("defaultChannel", func(o *object) *string { return &o.defaultChannel }, textForm(maxName)),
			optionalField("description", func(o *object) *string { return &o.description }, textForm(maxText)),
		},
		schemaChannel: {
			schema, name, pkg,
			fieldAt("entries", func(o *object) *[]model.EntryData { return &o.entries }, listForm(maxEntries, entryForm())),
		},
		schemaBundle: {
			schema, name, pkg,
			optionalField("image", func(o *object) *string { return &o.bundle.Image }, textForm(maxText)),
			fieldAt("properties", sameValue, f.properties()),
			optionalField("relatedImages", func(o *object) *[]model.RelatedImage { return &o.bundle.RelatedImages }, listForm(maxImages, members[model.RelatedImage]{
				fieldAt("name", func(r *model.RelatedImage) *string { return &r.Name }, textForm(maxName)),
				fieldAt("image", func(r *model.RelatedImage) *string { return &r.Image }, textForm(maxText)),
			}.form())),
		},
		schemaDeprecations: {
			schema, pkg,
			readOnlyField("name", func(o *object) *string { return &o.name }, textForm(maxName)),
			fieldAt("entries", func(o *object) *[]model.DeprecationData { return &o.deprecations }, listForm(maxEntries, deprecationForm())),
		},
		schemaLifecycles: lifecycleFields(schema, pkg),
	}
	return f
}

// document returns the filter for a YAML document, whose schema may come last. It omits fields
// of lifecycles.
func (f *forms) document() *yamlnode.Filter {
	return &yamlnode.Filter{Open: func() { f.schema = f.schema[:0] }, Field: func(name []byte) (*yamlnode.Filter, bool) {
		for _, schema := range []string{schemaBundle, schemaChannel, schemaPackage} { // olm.deprecations has no other fields
			if s, ok := f.schemas[schema].shape(name); ok {
				return s, true
			}
		}
		return nil, false
	}}
}

// entryForm returns the form of an entry of an olm.channel.
func entryForm() form[model.EntryData] {
	return positionedForm(func(e *model.EntryData) *diag.Pos { return &e.Pos }, members[model.EntryData]{
		fieldAt("name", func(e *model.EntryData) *string { return &e.Name }, textForm(maxName)),
		optionalField("replaces", func(e *model.EntryData) *string { return &e.Replaces }, textForm(maxName)),
		optionalField("skips", func(e *model.EntryData) *[]string { return &e.Skips }, listForm(maxEntries, textForm(maxName))),
		optionalField("skipRange", func(e *model.EntryData) *string { return &e.SkipRange }, textForm(maxText)),
	}.form())
}

// deprecationForm returns the form of an entry in an olm.deprecations.
func deprecationForm() form[model.DeprecationData] {
	return positionedForm(func(e *model.DeprecationData) *diag.Pos { return &e.Pos }, members[model.DeprecationData]{
		fieldAt("reference", sameValue, members[model.DeprecationData]{
			fieldAt("schema", func(e *model.DeprecationData) *string { return &e.Schema }, textForm(maxName)),
			optionalField("name", func(e *model.DeprecationData) *string { return &e.Name }, textForm(maxName)),
		}.form()),
		fieldAt("message", func(e *model.DeprecationData) *string { return &e.Message }, textForm(maxText)),
	}.form())
}

// positionedForm returns the form of an entry that stores its position. The entry has no filter,
// because its fields depend on the enclosing object.
func positionedForm[T any](pos func(*T) *diag.Pos, f form[T]) form[T] {
	read := f.read
	f.shape = nil
	f.read = func(d *decoder, into *T) {
		*pos(into) = d.nextPos()
		read(d, into)
	}
	return f
}

// properties returns the form of the properties of a bundle.
func (f *forms) properties() form[object] {
	each := members[model.Property]{
		fieldAt("type", func(p *model.Property) *string { return &p.Type }, textForm(maxName)),
		fieldAt("value", sameValue, form[model.Property]{write: func(e *encoder, p *model.Property) { e.value(p.Value) }}),
	}
	all := listForm(maxProperties, each.form())
	typ := &yamlnode.Filter{Text: func(s []byte) []byte {
		f.isMetadata = string(s) == model.TypeMetadata
		return s
	}}
	value := &yamlnode.Filter{Field: func(name []byte) (*yamlnode.Filter, bool) {
		if !f.isMetadata {
			return nil, true
		}
		return f.metadata.shape.Field(name)
	}}
	return form[object]{
		read:  func(d *decoder, o *object) { d.items(maxProperties, func(int) { d.property(o) }) },
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
