package fbc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// decodeProperty decodes one property of a bundle, an object {type, value}, and adds it to o.
func (d *decoder) decodeProperty(o *object) {
	var typ string
	var early []byte // the value, if it precedes the type
	valued := false
	pos := d.nextPos()
	d.fields(func(name []byte) {
		d.path = append(d.path, step{name: "value"})
		switch {
		case string(name) == "type":
			d.path[len(d.path)-1].name = "type"
			typ = d.text(maxName)
		case string(name) != "value":
			d.in.skip()
		case typ == "":
			valued, early = true, bytes.Clone(d.in.raw())
		default:
			valued = true
			d.decodeValue(o, typ)
		}
		d.path = d.path[:len(d.path)-1]
	})
	switch {
	case d.in.failed() != nil:
	case early != nil:
		sub := d.b.newTextDecoder(d.file, pos, early, d.sel)
		sub.path = append(slices.Clone(d.path), step{name: "value"})
		if sub.decodeValue(o, typ); sub.in.failed() != nil {
			d.in.fail(sub.in.failed())
		}
	case !valued:
		d.b.faults.Addf(pos, "property %q of bundle %q has no value", typ, o.name)
	}
}

// decodeValue decodes the value of a property of type typ and adds it to o.
func (d *decoder) decodeValue(o *object, typ string) {
	switch typ {
	case catalog.TypeObject:
		o.bundle.Embedded = true
		d.in.kind()
		pos := d.nextPos()
		d.fields(func(name []byte) { d.decodeBundleObject(o, pos, name) })
		return
	case catalog.TypeMetadata:
		o.csv, o.bundle.Metadata = true, d.decodeMetadata(d.b.codecs.metadata, &rawMetadata{})
		return
	}
	raw := d.in.raw()
	switch {
	case d.in.failed() != nil:
	case len(raw) > maxValue:
		d.b.faults.Addf(d.posAt(d.in.lastOffset()), "property %q of bundle %q: %d bytes exceed the limit of %d", typ, o.name, len(raw), maxValue)
	default:
		o.bundle.Properties = append(o.bundle.Properties, catalog.Property{Type: typ, Value: d.b.copyCompact(raw)})
	}
}

// decodeBundleObject decodes one field of an olm.bundle.object at pos: "data", a base64 manifest,
// or "ref", the path of a file.
func (d *decoder) decodeBundleObject(o *object, pos diag.Pos, name []byte) {
	switch string(name) {
	case "data":
		if d.in.kind() != '"' {
			d.in.skip()
		} else if err := d.decodeEmbedded(o); err != nil {
			d.b.faults.Addf(pos, "bundle %q: %s: %w", o.name, catalog.TypeObject, err)
		}
	case "ref":
		d.path = append(d.path, step{name: "ref"})
		ref := d.text(maxName)
		d.path = d.path[:len(d.path)-1]
		if d.sel != nil && ref != "" {
			o.manifests = append(o.manifests, manifest{ref: ref})
		}
	default:
		d.in.skip()
	}
}

// decodeEmbedded decodes the manifest in the next base64 string. For the selected bundle it keeps
// the manifest. Otherwise it decodes only a ClusterServiceVersion, for its metadata.
func (d *decoder) decodeEmbedded(o *object) error {
	switch {
	case d.sel != nil && d.sel.canMatch(o):
		data, err := base64.StdEncoding.AppendDecode(nil, d.in.text())
		o.manifests = append(o.manifests, manifest{data: data})
		return err
	case d.sel != nil || o.csv || o.bundle.Metadata.Known:
		d.in.skip()
		return nil
	default:
		return d.decodeEmbeddedCSV(o)
	}
}

// decodeEmbeddedCSV sets the metadata of the bundle if the manifest is its CSV. It decodes the
// beginning of the manifest first, to skip large CRDs.
func (d *decoder) decodeEmbeddedCSV(o *object) error {
	const look = 4096 // a multiple of four, so that base64 can be split there
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

// hasKind reports whether head, the beginning of a manifest, shows that the object is a CRD. If it misses a
// CRD, the decoder only takes longer.
func hasKind(head []byte) bool {
	return bytes.Contains(head, []byte(`"kind":"CustomResourceDefinition"`)) || bytes.Contains(head, []byte("\nkind: CustomResourceDefinition"))
}

// copyCompact returns a compact copy of raw, which must be valid JSON. Equal values share one copy.
func (b *builder) copyCompact(raw []byte) []byte {
	compact, err := jsontext.AppendFormat(b.compact[:0], raw, jsontext.PreserveRawStrings(true))
	if err != nil {
		panic(fmt.Sprintf("fbc: %.20q was read as invalid JSON: %v", raw, err))
	}
	b.compact = compact
	if kept, ok := b.values[string(b.compact)]; ok {
		return kept
	}
	kept := bytes.Clone(b.compact)
	b.values[string(kept)] = kept
	return kept
}
