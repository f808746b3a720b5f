package fbc

import (
	"bytes"
	"encoding/base64"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/strictjson"
)

// The properties whose values are looked at and let go, for their size.
const (
	propertyObject   = "olm.bundle.object"
	propertyMetadata = "olm.csv.metadata"
)

// property reads one {type, value} of a bundle.
func (d *decoder) property(o *object) {
	var typ string
	var held []byte // a value that came before its type
	valued := false
	pos := d.here()
	if d.fields(field{name: "properties"}) {
		for d.in.More() {
			switch name := d.in.Name(); {
			case string(name) == "type":
				typ = d.text(field{name: "properties.type"}, maxName)
			case string(name) != "value":
				d.in.Skip()
			case typ == "":
				valued, held = true, bytes.Clone(d.in.Raw())
			default:
				valued = true
				d.value(o, typ)
			}
		}
	}
	switch {
	case d.in.Err() != nil:
	case held != nil:
		sub := d.b.text(d.file, pos, held, d.sel)
		if sub.value(o, typ); sub.in.Err() != nil {
			d.in.Fail(sub.in.Err())
		}
	case !valued:
		d.b.faults.Addf(pos, "property %q of bundle %q has no value", typ, o.name)
	}
}

// value reads the value of a property of type typ.
func (d *decoder) value(o *object, typ string) {
	switch typ {
	case propertyObject:
		d.bundleObject(o)
		return
	case propertyMetadata:
		o.csv, o.bundle.Metadata = true, d.metadata()
		return
	}
	d.in.Kind()
	at := d.in.Offset()
	raw := d.in.Raw()
	switch {
	case d.in.Err() != nil:
	case len(raw) > maxValue:
		d.b.faults.Addf(d.at(at), "property %q of bundle %q has %d bytes: want at most %d", typ, o.name, len(raw), maxValue)
	default:
		o.bundle.Properties = append(o.bundle.Properties, catalog.Property{Type: typ, Value: d.b.keep(raw)})
	}
}

// bundleObject reads an embedded manifest: {data: base64}, or {ref: file}.
func (d *decoder) bundleObject(o *object) {
	o.bundle.Embedded = true
	d.in.Kind()
	pos := d.here()
	if !d.fields(field{name: propertyObject}) {
		return
	}
	for d.in.More() {
		switch string(d.in.Name()) {
		case "data":
			if d.in.Kind() != '"' {
				d.in.Skip()
			} else if err := d.embedded(o); err != nil {
				d.b.faults.Addf(pos, "bundle %q: %s: %w", o.name, propertyObject, err)
			}
		case "ref":
			ref := d.text(field{name: propertyObject + ".ref"}, maxName)
			if d.sel != nil && ref != "" {
				o.manifests = append(o.manifests, manifest{ref: ref})
			}
		default:
			d.in.Skip()
		}
	}
}

// embedded takes the manifest in the base64 string that is next: all of it
// where it is asked for, else what a ClusterServiceVersion says of itself.
func (d *decoder) embedded(o *object) error {
	switch {
	case d.sel != nil && d.sel.mayBe(o):
		data, err := base64.StdEncoding.AppendDecode(nil, d.in.Text())
		o.manifests = append(o.manifests, manifest{data: data})
		return err
	case d.sel != nil || o.csv || o.bundle.Metadata.Known:
		d.in.Skip()
		return nil
	default:
		return d.embeddedCSV(o)
	}
}

// embeddedCSV fills the bundle's metadata if the manifest is its CSV. Whether
// it may be is seen from the beginning, so that CRDs are not decoded whole.
func (d *decoder) embeddedCSV(o *object) error {
	const look = 4096 // a multiple of four, where base64 can be cut
	if begin := d.in.Ahead(1 + look); len(begin) == 1+look && !bytes.ContainsAny(begin[1:], `"\`) {
		head, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], begin[1:])
		if err != nil {
			d.in.Skip()
			return err
		}
		d.b.scratch = head
		if !bytes.Contains(head, []byte("ClusterServiceVersion")) && hasKind(head) {
			d.in.Skip()
			return nil
		}
	}
	data, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], d.in.Text())
	if err != nil || d.in.Err() != nil {
		return err
	}
	d.b.scratch = data
	if bytes.Contains(data, []byte("ClusterServiceVersion")) {
		if m, ok := manifestMetadata(d.b, data); ok {
			o.bundle.Metadata = m
		}
	}
	return nil
}

// hasKind reports whether a manifest's beginning names the object's kind
// already. A false answer costs time only.
func hasKind(head []byte) bool {
	return bytes.Contains(head, []byte(`"kind":"CustomResourceDefinition"`)) || bytes.Contains(head, []byte("\nkind: CustomResourceDefinition"))
}

// keep returns a compact copy of raw, a valid JSON value, shared with equal
// ones.
func (b *builder) keep(raw []byte) []byte {
	b.compact = strictjson.AppendCompact(b.compact[:0], raw)
	if kept, ok := b.values[string(b.compact)]; ok {
		return kept
	}
	kept := bytes.Clone(b.compact)
	b.values[string(kept)] = kept
	return kept
}
