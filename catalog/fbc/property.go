package fbc

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
)

// The properties whose values are looked at and let go, for their size.
const (
	propertyObject   = "olm.bundle.object"
	propertyMetadata = "olm.csv.metadata"
)

// property reads one {type, value} of a bundle.
func (d *decoder) property(o *object) error {
	var typ string
	var held jsontext.Value // a value that came before its type
	var valued bool
	pos := d.pos()
	err := d.fields("properties", func(name string) (err error) {
		switch {
		case name == "type":
			typ, err = d.text("properties.type", maxName)
		case name == "value" && typ == "":
			raw, err := d.dec.ReadValue()
			held, valued = bytes.Clone(raw), true
			return err
		case name == "value":
			valued = true
			return d.value(o, typ)
		default:
			return d.dec.SkipValue()
		}
		return err
	})
	if err != nil || held == nil {
		if err == nil && !valued {
			d.b.faults.Addf(pos, "property %q of bundle %q has no value", typ, o.name)
		}
		return err
	}
	return d.b.text(d.file, pos, held, d.sel).value(o, typ)
}

// value reads the value of a property of type typ.
func (d *decoder) value(o *object, typ string) error {
	switch typ {
	case propertyObject:
		return d.bundleObject(o)
	case propertyMetadata:
		m, err := d.metadata(csvMetadata)
		if err == nil {
			o.csv, o.bundle.Metadata = true, m
		}
		return err
	}
	pos := d.pos()
	raw, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	if len(raw) > maxValue {
		d.b.faults.Addf(pos, "property %q of bundle %q has %d bytes: want at most %d", typ, o.name, len(raw), maxValue)
		return nil
	}
	kept, err := d.b.keep(raw)
	if err != nil {
		return err
	}
	o.bundle.Properties = append(o.bundle.Properties, catalog.Property{Type: typ, Value: kept})
	return nil
}

// bundleObject reads an embedded manifest: {data: base64}, or {ref: file}.
func (d *decoder) bundleObject(o *object) error {
	o.bundle.Embedded = true
	pos := d.pos()
	return d.fields(propertyObject, func(name string) error {
		switch {
		case name == "data" && d.dec.PeekKind() == '"':
			raw, err := d.dec.ReadValue()
			if err != nil {
				return err
			}
			if err := d.embedded(o, raw); err != nil {
				d.b.faults.Addf(pos, "bundle %q: %s: %w", o.name, propertyObject, err)
			}
			return nil
		case name == "ref":
			ref, err := d.text(propertyObject+".ref", maxName)
			if d.sel != nil && ref != "" {
				o.manifests = append(o.manifests, manifest{ref: ref})
			}
			return err
		default:
			return d.dec.SkipValue()
		}
	})
}

// embedded takes the manifest in a quoted base64 string: all of it where it is
// asked for, else what a ClusterServiceVersion says of itself.
func (d *decoder) embedded(o *object, quoted []byte) error {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		var err error
		if text, err = jsontext.AppendUnquote(nil, quoted); err != nil {
			return err
		}
	}
	if d.sel != nil {
		if !d.sel.mayBe(o) {
			return nil
		}
		data, err := base64.StdEncoding.AppendDecode(nil, text)
		o.manifests = append(o.manifests, manifest{data: data})
		return err
	}
	if o.csv || o.bundle.Metadata.Known {
		return nil
	}
	return d.embeddedCSV(o, text)
}

// embeddedCSV fills the bundle's metadata if the manifest is its CSV. Whether
// it may be is seen from the beginning, so that CRDs are not decoded whole.
func (d *decoder) embeddedCSV(o *object, text []byte) error {
	const look = 4096 // a multiple of four, where base64 can be cut
	head, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], text[:min(len(text), look)])
	if err != nil {
		return err
	}
	d.b.scratch = head
	if !bytes.Contains(head, []byte("ClusterServiceVersion")) && (len(text) <= look || hasKind(head)) {
		return nil
	}
	data, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], text)
	if err != nil {
		return err
	}
	d.b.scratch = data
	if !bytes.Contains(data, []byte("ClusterServiceVersion")) {
		return nil
	}
	m, ok := manifestMetadata(d.b, data)
	if ok {
		o.bundle.Metadata = m
	}
	return nil
}

// hasKind reports whether a manifest's beginning names the object's kind
// already. A false answer costs time only.
func hasKind(head []byte) bool {
	return bytes.Contains(head, []byte(`"kind":"CustomResourceDefinition"`)) || bytes.Contains(head, []byte("\nkind: CustomResourceDefinition"))
}

// keep returns a compact copy of raw, shared with equal ones.
func (b *builder) keep(raw jsontext.Value) ([]byte, error) {
	b.compact = append(b.compact[:0], raw...)
	if err := (*jsontext.Value)(&b.compact).Compact(); err != nil {
		return nil, fmt.Errorf("compacting a property: %w", err)
	}
	if kept, ok := b.values[string(b.compact)]; ok {
		return kept, nil
	}
	kept := bytes.Clone(b.compact)
	b.values[string(kept)] = kept
	return kept, nil
}
