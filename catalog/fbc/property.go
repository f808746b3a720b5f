package fbc

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
)

// property reads one {type, value} of a bundle.
func (d *decoder) property(o *object) {
	var typ string
	var held []byte // a value that came before its type
	valued := false
	pos := d.here()
	if d.fields(field{name: "properties"}) {
		for d.in.more() {
			switch name := d.in.name(); {
			case string(name) == "type":
				typ = d.text(field{name: "properties.type"}, maxName)
			case string(name) != "value":
				d.in.skip()
			case typ == "":
				valued, held = true, bytes.Clone(d.in.raw())
			default:
				valued = true
				d.value(o, typ)
			}
		}
	}
	switch {
	case d.in.failed() != nil:
	case held != nil:
		sub := d.b.text(d.file, pos, held, d.sel)
		if sub.value(o, typ); sub.in.failed() != nil {
			d.in.fail(sub.in.failed())
		}
	case !valued:
		d.b.faults.Addf(pos, "property %q of bundle %q has no value", typ, o.name)
	}
}

// value reads the value of a property of type typ.
func (d *decoder) value(o *object, typ string) {
	switch typ {
	case olm.TypeObject:
		d.bundleObject(o)
		return
	case olm.TypeMetadata:
		o.csv, o.bundle.Metadata = true, d.metadata()
		return
	}
	d.in.kind()
	at := d.in.at()
	raw := d.in.raw()
	switch {
	case d.in.failed() != nil:
	case len(raw) > maxValue:
		d.b.faults.Addf(d.at(at), "property %q of bundle %q has %d bytes: want at most %d", typ, o.name, len(raw), maxValue)
	default:
		o.bundle.Properties = append(o.bundle.Properties, catalog.Property{Type: typ, Value: d.b.keep(raw)})
	}
}

// bundleObject reads an embedded manifest: {data: base64}, or {ref: file}.
func (d *decoder) bundleObject(o *object) {
	o.bundle.Embedded = true
	d.in.kind()
	pos := d.here()
	if !d.fields(field{name: olm.TypeObject}) {
		return
	}
	for d.in.more() {
		switch string(d.in.name()) {
		case "data":
			if d.in.kind() != '"' {
				d.in.skip()
			} else if err := d.embedded(o); err != nil {
				d.b.faults.Addf(pos, "bundle %q: %s: %w", o.name, olm.TypeObject, err)
			}
		case "ref":
			ref := d.text(field{name: olm.TypeObject + ".ref"}, maxName)
			if d.sel != nil && ref != "" {
				o.manifests = append(o.manifests, manifest{ref: ref})
			}
		default:
			d.in.skip()
		}
	}
}

// embedded takes the manifest in the base64 string that is next: all of it
// where it is asked for, else what a ClusterServiceVersion says of itself.
func (d *decoder) embedded(o *object) error {
	switch {
	case d.sel != nil && d.sel.mayBe(o):
		data, err := base64.StdEncoding.AppendDecode(nil, d.in.text())
		o.manifests = append(o.manifests, manifest{data: data})
		return err
	case d.sel != nil || o.csv || o.bundle.Metadata.Known:
		d.in.skip()
		return nil
	default:
		return d.embeddedCSV(o)
	}
}

// embeddedCSV fills the bundle's metadata if the manifest is its CSV. Whether
// it may be is seen from the beginning, so that CRDs are not decoded whole.
func (d *decoder) embeddedCSV(o *object) error {
	const look = 4096 // a multiple of four, where base64 can be cut
	text := d.in.text()
	if len(text) > look {
		head, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], text[:look])
		if err != nil {
			return err
		}
		d.b.scratch = head
		if !bytes.Contains(head, []byte("ClusterServiceVersion")) && hasKind(head) {
			return nil
		}
	}
	data, err := base64.StdEncoding.AppendDecode(d.b.scratch[:0], text)
	if err != nil || d.in.failed() != nil {
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
	compact, err := jsontext.AppendFormat(b.compact[:0], raw, jsontext.PreserveRawStrings(true))
	if err != nil {
		panic(fmt.Sprintf("fbc: %.20q was read, and is no JSON: %v", raw, err))
	}
	b.compact = compact
	if kept, ok := b.values[string(b.compact)]; ok {
		return kept
	}
	kept := bytes.Clone(b.compact)
	b.values[string(kept)] = kept
	return kept
}
