package fbc

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// The schemas that are read. Objects of any other schema are left alone.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
)

// object is one object of a catalog while it is decoded.
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
}

// manifest is one olm.bundle.object: its bytes, or the file that has them.
type manifest struct {
	data []byte
	ref  string
}

// member reads the value of one field of o.
func (d *decoder) member(o *object, name []byte) {
	switch o.schema {
	case schemaPackage:
		d.packageField(o, name)
	case schemaChannel:
		d.channelField(o, name)
	case schemaBundle:
		d.bundleField(o, name)
	case schemaDeprecations:
		d.deprecationsField(o, name)
	default:
		d.in.skip()
	}
}

func (d *decoder) packageField(o *object, name []byte) {
	switch string(name) {
	case "name":
		o.name = d.text(field{name: "name"}, maxName)
	case "defaultChannel":
		o.defaultChannel = d.text(field{name: "defaultChannel"}, maxName)
	case "description":
		o.description = d.text(field{name: "description"}, maxText)
	default:
		d.in.skip()
	}
}

// commonField reads what belongs to a package has.
func (d *decoder) commonField(o *object, name []byte) {
	switch string(name) {
	case "name":
		o.name = d.text(field{name: "name"}, maxName)
	case "package":
		o.pkg = d.text(field{name: "package"}, maxName)
	default:
		d.in.skip()
	}
}

func (d *decoder) channelField(o *object, name []byte) {
	if string(name) != "entries" {
		d.commonField(o, name)
		return
	}
	f := field{name: "entries"}
	if d.list(f) {
		for n := 0; d.element(f, n, maxEntries); n++ {
			o.entries = append(o.entries, d.entry(len(o.entries)))
		}
	}
}

func (d *decoder) deprecationsField(o *object, name []byte) {
	if string(name) != "entries" {
		d.commonField(o, name)
		return
	}
	f := field{name: "entries"}
	if d.list(f) {
		for n := 0; d.element(f, n, maxEntries); n++ {
			o.deprecations = append(o.deprecations, d.deprecation(len(o.deprecations)))
		}
	}
}

func (d *decoder) bundleField(o *object, name []byte) {
	switch string(name) {
	case "image":
		o.bundle.Image = d.text(field{name: "image"}, maxText)
	case "properties":
		f := field{name: "properties"}
		if d.list(f) {
			for n := 0; d.element(f, n, maxProperties); n++ {
				d.property(o)
			}
		}
	case "relatedImages":
		f := field{name: "relatedImages"}
		if d.list(f) {
			for n := 0; d.element(f, n, maxImages); n++ {
				o.bundle.RelatedImages = append(o.bundle.RelatedImages, d.relatedImage())
			}
		}
	default:
		d.commonField(o, name)
	}
}

// entry reads the nth entry of an olm.channel.
func (d *decoder) entry(n int) catalog.EntryData {
	e := catalog.EntryData{Pos: d.here()}
	f := field{list: "entries", n: n}
	if !d.fields(f) {
		return e
	}
	for d.in.more() {
		switch string(d.in.name()) {
		case "name":
			f.name = "name"
			e.Name = d.text(f, maxName)
		case "replaces":
			f.name = "replaces"
			e.Replaces = d.text(f, maxName)
		case "skipRange":
			f.name = "skipRange"
			e.SkipRange = d.text(f, maxText)
		case "skips":
			f.name = "skips"
			e.Skips = d.texts(f, e.Skips)
		default:
			d.in.skip()
		}
	}
	return e
}

// texts appends the strings of a list.
func (d *decoder) texts(f field, out []string) []string {
	if d.list(f) {
		for n := 0; d.element(f, n, maxEntries); n++ {
			out = append(out, d.text(f, maxName))
		}
	}
	return out
}

// deprecation reads the nth entry of an olm.deprecations.
func (d *decoder) deprecation(n int) catalog.DeprecationData {
	e := catalog.DeprecationData{Pos: d.here()}
	f := field{list: "entries", n: n}
	if !d.fields(f) {
		return e
	}
	for d.in.more() {
		switch string(d.in.name()) {
		case "message":
			f.name = "message"
			e.Message = d.text(f, maxText)
		case "reference":
			f.name = "reference"
			d.reference(f, &e)
		default:
			d.in.skip()
		}
	}
	return e
}

func (d *decoder) reference(f field, e *catalog.DeprecationData) {
	if !d.fields(f) {
		return
	}
	for d.in.more() {
		switch string(d.in.name()) {
		case "schema":
			f.name = "reference.schema"
			e.Schema = d.text(f, maxName)
		case "name":
			f.name = "reference.name"
			e.Name = d.text(f, maxName)
		default:
			d.in.skip()
		}
	}
}

func (d *decoder) relatedImage() catalog.RelatedImage {
	var img catalog.RelatedImage
	if !d.fields(field{name: "relatedImages"}) {
		return img
	}
	for d.in.more() {
		switch string(d.in.name()) {
		case "name":
			img.Name = d.text(field{name: "relatedImages.name"}, maxName)
		case "image":
			img.Image = d.text(field{name: "relatedImages.image"}, maxText)
		default:
			d.in.skip()
		}
	}
	return img
}
