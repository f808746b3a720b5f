package fbc

import (
	"fmt"

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
func (d *decoder) member(o *object, name string) (err error) {
	switch o.schema {
	case schemaPackage, schemaChannel, schemaBundle, schemaDeprecations:
	default:
		return d.dec.SkipValue()
	}
	switch {
	case name == "name":
		o.name, err = d.text(name, maxName)
	case name == "package" && o.schema != schemaPackage:
		o.pkg, err = d.text(name, maxName)
	case name == "defaultChannel" && o.schema == schemaPackage:
		o.defaultChannel, err = d.text(name, maxName)
	case name == "description" && o.schema == schemaPackage:
		o.description, err = d.text(name, maxText)
	case name == "entries" && o.schema == schemaChannel:
		return d.list(name, maxEntries, func() error { return d.entry(o) })
	case name == "entries" && o.schema == schemaDeprecations:
		return d.list(name, maxEntries, func() error { return d.deprecation(o) })
	case name == "image" && o.schema == schemaBundle:
		o.bundle.Image, err = d.text(name, maxText)
	case name == "properties" && o.schema == schemaBundle:
		return d.list(name, maxProperties, func() error { return d.property(o) })
	case name == "relatedImages" && o.schema == schemaBundle:
		return d.list(name, maxImages, func() error { return d.relatedImage(o) })
	default:
		return d.dec.SkipValue()
	}
	return err
}

// entry reads one entry of an olm.channel.
func (d *decoder) entry(o *object) error {
	e := catalog.EntryData{Pos: d.pos()}
	at := fmt.Sprintf("entries[%d]", len(o.entries))
	err := d.fields(at, func(name string) (err error) {
		switch name {
		case "name":
			e.Name, err = d.text(at+".name", maxName)
		case "replaces":
			e.Replaces, err = d.text(at+".replaces", maxName)
		case "skipRange":
			e.SkipRange, err = d.text(at+".skipRange", maxText)
		case "skips":
			return d.list(at+".skips", maxEntries, func() error {
				s, err := d.text(at+".skips", maxName)
				e.Skips = append(e.Skips, s)
				return err
			})
		default:
			return d.dec.SkipValue()
		}
		return err
	})
	o.entries = append(o.entries, e)
	return err
}

// deprecation reads one entry of an olm.deprecations.
func (d *decoder) deprecation(o *object) error {
	e := catalog.DeprecationData{Pos: d.pos()}
	at := fmt.Sprintf("entries[%d]", len(o.deprecations))
	err := d.fields(at, func(name string) (err error) {
		switch name {
		case "message":
			e.Message, err = d.text(at+".message", maxText)
			return err
		case "reference":
			return d.fields(at+".reference", func(name string) (err error) {
				switch name {
				case "schema":
					e.Schema, err = d.text(at+".reference.schema", maxName)
				case "name":
					e.Name, err = d.text(at+".reference.name", maxName)
				default:
					return d.dec.SkipValue()
				}
				return err
			})
		default:
			return d.dec.SkipValue()
		}
	})
	o.deprecations = append(o.deprecations, e)
	return err
}

func (d *decoder) relatedImage(o *object) error {
	var img catalog.RelatedImage
	err := d.fields("relatedImages", func(name string) (err error) {
		switch name {
		case "name":
			img.Name, err = d.text("relatedImages.name", maxName)
		case "image":
			img.Image, err = d.text("relatedImages.image", maxText)
		default:
			return d.dec.SkipValue()
		}
		return err
	})
	o.bundle.RelatedImages = append(o.bundle.RelatedImages, img)
	return err
}
