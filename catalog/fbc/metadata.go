package fbc

import (
	"bytes"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

const kindCSV = "ClusterServiceVersion"

const (
	maxAnnotations = 200
	maxKeywords    = 1000
	maxOwned       = 10_000
	maxModes       = 1000
	longEnough     = 4 << 10 // bytes of a long description that are decoded to find its first line
)

// rawMetadata is the encoded form of a bundle's metadata. Fields of a wrong type are ignored, because only
// searches and optional checks use the metadata.
type rawMetadata struct {
	catalog.Metadata
	kind  string // kind of an embedded manifest
	owned []string
	modes []mode // nil if the field is missing
	short bool   // Description comes from the annotation "description"
}

// mode is an entry of spec.installModes: an install mode, and whether the bundle supports it.
type mode struct {
	name      string
	supported bool
}

// metadataCodecs returns the codecs of an olm.csv.metadata property and of a ClusterServiceVersion.
// The spec of the ClusterServiceVersion has the same fields as the property, two of them with other
// names.
func metadataCodecs() (metadata, csv codec[rawMetadata]) {
	definitions := members[rawMetadata]{
		fieldAt("owned", func(t *rawMetadata) *[]string { return &t.owned }, listCodec(maxOwned, members[string]{fieldAt("name", sameValue, textCodec(maxName))}.codec())),
	}.codec()
	modes := listCodec(maxModes, members[mode]{
		fieldAt("type", func(m *mode) *string { return &m.name }, textCodec(maxName)),
		fieldAt("supported", func(m *mode) *bool { return &m.supported }, codec[bool]{
			read: func(d *decoder, into *bool) {
				*into = d.in.kind() == 't'
				d.in.skip()
			},
			write: func(e *encoder, from *bool) { e.writeToken(jsontext.Bool(*from)) },
		}),
	}.codec())
	annotations := codec[rawMetadata]{
		read: (*decoder).decodeAnnotations, write: (*encoder).encodeAnnotations,
		empty: func(t *rawMetadata) bool { return len(t.Annotations) == 0 && t.Description == "" },
		shape: &yamlnode.Filter{Field: func(name []byte) (*yamlnode.Filter, bool) {
			return nil, string(name) == "description" || catalog.KeepsAnnotation(string(name))
		}},
	}
	metadata = members[rawMetadata]{
		optionalField("annotations", sameValue, annotations),
		optionalField("crdDescriptions", sameValue, definitions),
		readOnlyField("customresourcedefinitions", sameValue, definitions),
		readOnlyField("description", sameValue, codec[rawMetadata]{read: (*decoder).decodeLongDescription, shape: &yamlnode.Filter{Text: func(s []byte) []byte { return truncateText(s, longEnough) }}}),
		optionalField("displayName", func(t *rawMetadata) *string { return &t.DisplayName }, textCodec(maxText)),
		optionalField("installModes", func(t *rawMetadata) *[]mode { return &t.modes }, codec[[]mode]{
			read: func(d *decoder, into *[]mode) {
				*into = []mode{}
				modes.read(d, into)
			},
			write: modes.write, empty: func(from *[]mode) bool { return *from == nil },
		}),
		optionalField("keywords", func(t *rawMetadata) *[]string { return &t.Keywords }, listCodec(maxKeywords, textCodec(maxName))),
		optionalField("maturity", func(t *rawMetadata) *string { return &t.Maturity }, textCodec(maxName)),
		optionalField("minKubeVersion", func(t *rawMetadata) *string { return &t.MinKubeVersion }, textCodec(maxName)),
		optionalField("provider", sameValue, members[rawMetadata]{fieldAt("name", func(t *rawMetadata) *string { return &t.Provider }, textCodec(maxName))}.codec()),
	}.codec()
	return metadata, members[rawMetadata]{
		fieldAt("kind", func(t *rawMetadata) *string { return &t.kind }, textCodec(maxName)),
		fieldAt("metadata", sameValue, members[rawMetadata]{fieldAt("annotations", sameValue, annotations)}.codec()),
		fieldAt("spec", sameValue, metadata),
	}.codec()
}

// decodeAnnotations decodes the annotations that catalog.KeepsAnnotation selects.
func (d *decoder) decodeAnnotations(t *rawMetadata) {
	d.fields(func(text []byte) {
		name := d.b.intern(text)
		if name != "description" && !catalog.KeepsAnnotation(name) {
			d.in.skip()
			return
		}
		s := d.text(maxText)
		switch {
		case name == "description":
			if s = catalog.ShortDescription(s); s != "" {
				t.Description, t.short = s, true
			}
		case catalog.AnnotationFits(name, s) && len(t.Annotations) < maxAnnotations:
			if t.Annotations == nil {
				t.Annotations = map[string]string{}
			}
			t.Annotations[name] = s
		}
	})
}

// encodeAnnotations encodes the non-empty annotations, the annotation "description" first.
func (e *encoder) encodeAnnotations(t *rawMetadata) {
	e.writeToken(jsontext.BeginObject)
	if t.Description != "" {
		e.writeToken(jsontext.String("description"))
		e.writeToken(jsontext.String(t.Description))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Annotations)) {
		e.writeToken(jsontext.String(name))
		e.writeToken(jsontext.String(t.Annotations[name]))
	}
	e.writeToken(jsontext.EndObject)
}

// decodeLongDescription decodes the first line of spec.description, unless an annotation contains a
// short description. The last result is cached, because a description may be very long, and most
// versions of an operator have the same description.
func (d *decoder) decodeLongDescription(t *rawMetadata) {
	if d.in.kind() != '"' || t.short {
		d.in.skip()
		return
	}
	raw, b := d.in.raw(), d.b
	if d.in.failed() == nil && !bytes.Equal(raw, b.long) {
		b.long = append(b.long[:0], raw...)
		d.in.plain = appendUnquoted(d.in.plain[:0], raw)
		b.short = catalog.ShortDescription(string(truncateText(d.in.plain, longEnough)))
	}
	t.Description = b.short
}

// decodeMetadata decodes the metadata of a bundle with codec f.
func (d *decoder) decodeMetadata(f codec[rawMetadata], t *rawMetadata) catalog.Metadata {
	d.lenient = true
	f.read(d, t)
	d.lenient = false
	m := t.Metadata
	m.Known = true
	if t.modes != nil {
		m.InstallModes = []catalog.InstallMode{}
		for _, name := range catalog.InstallModes() {
			if slices.Contains(t.modes, mode{string(name), true}) {
				m.InstallModes = append(m.InstallModes, name)
			}
		}
	}
	m.Keywords, m.Owned = nonEmptyTexts(m.Keywords), nonEmptyTexts(t.owned)
	slices.Sort(m.Owned)
	m.Owned = slices.Compact(m.Owned)
	return m
}

// nonEmptyTexts returns the non-empty elements of texts. It returns nil if there are none.
func nonEmptyTexts(texts []string) []string {
	if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" }); len(texts) == 0 {
		return nil
	}
	return texts
}

// newRawMetadata returns the encoded form of m.
func newRawMetadata(m catalog.Metadata) *rawMetadata {
	t := &rawMetadata{Metadata: m, owned: m.Owned}
	for _, name := range catalog.InstallModes() {
		if m.InstallModes != nil {
			t.modes = append(t.modes, mode{string(name), slices.Contains(m.InstallModes, name)})
		}
	}
	return t
}

// manifestMetadata returns the metadata in an embedded ClusterServiceVersion. It returns false if data is not a
// valid ClusterServiceVersion.
func manifestMetadata(b *builder, data []byte) (catalog.Metadata, bool) {
	text := bytes.TrimLeft(data, " \t\r\n")
	if len(text) == 0 {
		return catalog.Metadata{}, false
	}
	if text[0] != '{' {
		docs, err := b.manifests.Read("", 1, text, yamlnode.Limits{}, b.codecs.csv.shape)
		if err != nil || len(docs) == 0 {
			return catalog.Metadata{}, false
		}
		text = docs[0].JSON
	}
	b.inner.resetBytes(text)
	var t rawMetadata
	m := (&decoder{in: b.inner, whole: true, b: b}).decodeMetadata(b.codecs.csv, &t)
	return m, t.kind == kindCSV && b.inner.failed() == nil
}

// truncateText truncates s to at most limit bytes, without splitting a character.
func truncateText(s []byte, limit int) []byte {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
