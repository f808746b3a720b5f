package fbc

import (
	"bytes"
	"maps"
	"slices"

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
	longEnough     = 4 << 10 // bytes that are read of a long description
)

// told is what a bundle says of itself, as it is written. It is for searching
// and for checks that can do without: fields of a wrong type count as absent.
type told struct {
	catalog.Metadata
	kind  string // of a ClusterServiceVersion
	owned []string
	modes []mode // nil where there is no such field
	short bool   // Description comes from the annotation
}

// mode is an install mode, and whether the bundle supports it.
type mode struct {
	name      string
	supported bool
}

// metadataForms returns the forms of an olm.csv.metadata and of a
// ClusterServiceVersion, whose spec has the same fields but for two names.
func metadataForms() (metadata, csv form[told]) {
	definitions := members[told]{
		at("owned", func(t *told) *[]string { return &t.owned }, list(maxOwned, members[string]{at("name", itself, text(maxName))}.form())),
	}.form()
	modes := list(maxModes, members[mode]{
		at("type", func(m *mode) *string { return &m.name }, text(maxName)),
		at("supported", func(m *mode) *bool { return &m.supported }, form[bool]{
			read: func(d *decoder, into *bool) {
				*into = d.in.kind() == 't'
				d.in.skip()
			},
			write: func(e *encoder, from *bool) { e.token(jsontext.Bool(*from)) },
		}),
	}.form())
	annotations := form[told]{
		read: (*decoder).annotations, write: (*encoder).annotations,
		empty: func(t *told) bool { return len(t.Annotations) == 0 && t.Description == "" },
		shape: &shape{fields: func(name []byte) (*shape, bool) {
			return nil, string(name) == "description" || catalog.KeepsAnnotation(string(name))
		}},
	}
	metadata = members[told]{
		optional("annotations", itself, annotations),
		optional("crdDescriptions", itself, definitions),
		readOnly("customresourcedefinitions", itself, definitions),
		readOnly("description", itself, form[told]{read: (*decoder).longDescription, shape: &shape{role: longText}}),
		optional("displayName", func(t *told) *string { return &t.DisplayName }, text(maxText)),
		optional("installModes", func(t *told) *[]mode { return &t.modes }, form[[]mode]{
			read: func(d *decoder, into *[]mode) {
				*into = []mode{}
				modes.read(d, into)
			},
			write: modes.write, empty: func(from *[]mode) bool { return *from == nil },
		}),
		optional("keywords", func(t *told) *[]string { return &t.Keywords }, list(maxKeywords, text(maxName))),
		optional("maturity", func(t *told) *string { return &t.Maturity }, text(maxName)),
		optional("minKubeVersion", func(t *told) *string { return &t.MinKubeVersion }, text(maxName)),
		optional("provider", itself, members[told]{at("name", func(t *told) *string { return &t.Provider }, text(maxName))}.form()),
	}.form()
	return metadata, members[told]{
		at("kind", func(t *told) *string { return &t.kind }, text(maxName)),
		at("metadata", itself, members[told]{at("annotations", itself, annotations)}.form()),
		at("spec", itself, metadata),
	}.form()
}

// annotations keeps those that catalog.KeepsAnnotation names.
func (d *decoder) annotations(t *told) {
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

// annotations writes those that there are, the description first.
func (e *encoder) annotations(t *told) {
	e.token(jsontext.BeginObject)
	if t.Description != "" {
		e.token(jsontext.String("description"))
		e.token(jsontext.String(t.Description))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Annotations)) {
		e.token(jsontext.String(name))
		e.token(jsontext.String(t.Annotations[name]))
	}
	e.token(jsontext.EndObject)
}

// longDescription takes the first line of a CSV's description, which may be
// very long, unless an annotation gave a short one. Most versions of a package
// say what the one before said.
func (d *decoder) longDescription(t *told) {
	if d.in.kind() != '"' || t.short {
		d.in.skip()
		return
	}
	raw, b := d.in.raw(), d.b
	if d.in.failed() == nil && !bytes.Equal(raw, b.long) {
		b.long = append(b.long[:0], raw...)
		d.in.plain = unquoted(d.in.plain[:0], raw)
		b.short = catalog.ShortDescription(string(clip(d.in.plain, longEnough)))
	}
	t.Description = b.short
}

// metadata reads what a form of bundles says.
func (d *decoder) metadata(f form[told], t *told) catalog.Metadata {
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
	m.Keywords, m.Owned = given(m.Keywords), given(t.owned)
	slices.Sort(m.Owned)
	m.Owned = slices.Compact(m.Owned)
	return m
}

// given returns the texts that say something, nil where there are none.
func given(texts []string) []string {
	if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" }); len(texts) == 0 {
		return nil
	}
	return texts
}

// tell returns m as it is written.
func tell(m catalog.Metadata) *told {
	t := &told{Metadata: m, owned: m.Owned}
	for _, name := range catalog.InstallModes() {
		if m.InstallModes != nil {
			t.modes = append(t.modes, mode{string(name), slices.Contains(m.InstallModes, name)})
		}
	}
	return t
}

// manifestMetadata returns the metadata of an embedded ClusterServiceVersion,
// and whether data is one that can be read.
func manifestMetadata(b *builder, data []byte) (catalog.Metadata, bool) {
	text := bytes.TrimLeft(data, " \t\r\n")
	if len(text) == 0 {
		return catalog.Metadata{}, false
	}
	if text[0] != '{' {
		docs, err := yamlnode.Documents("", text, yamlnode.Limits{})
		if err != nil || len(docs) == 0 {
			return catalog.Metadata{}, false
		}
		if text, err = yamlnode.JSON(docs[0]); err != nil {
			return catalog.Metadata{}, false
		}
	}
	b.inner.resetBytes(text)
	var t told
	m := (&decoder{in: b.inner, whole: true, b: b}).metadata(b.forms.csv, &t)
	return m, t.kind == kindCSV && b.inner.failed() == nil
}
