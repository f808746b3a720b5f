package fbc

import (
	"bytes"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

const kindCSV = "ClusterServiceVersion"

const (
	maxAnnotation  = 1 << 10
	maxAnnotations = 200
	maxKeywords    = 1000
	maxOwned       = 10_000
)

// metadata reads what an olm.csv.metadata says of the bundle. It is for
// searching and for checks that can do without: fields of a wrong type count as
// absent.
func (d *decoder) metadata() catalog.Metadata {
	r := &metadataReader{in: d.in, b: d.b, m: &catalog.Metadata{Known: true}}
	if r.enter('{') {
		r.spec()
	}
	r.finish()
	return *r.m
}

// metadataReader reads what a bundle says of itself, leniently: each method skips a value of a wrong type.
type metadataReader struct {
	in    *scanner
	b     *builder
	m     *catalog.Metadata
	kind  string // of a ClusterServiceVersion, once it was read
	modes map[catalog.InstallMode]bool
	short bool // Description comes from the annotation
}

func (r *metadataReader) csv() {
	if !r.enter('{') {
		return
	}
	for r.in.more() {
		switch string(r.in.name()) {
		case "kind":
			r.text(&r.kind, maxName)
			if r.kind != kindCSV {
				return
			}
		case "metadata":
			if r.enter('{') {
				for r.in.more() {
					if string(r.in.name()) == "annotations" {
						r.annotations()
					} else {
						r.in.skip()
					}
				}
			}
		case "spec":
			if r.enter('{') {
				r.spec()
			}
		default:
			r.in.skip()
		}
	}
}

// spec reads the fields of a CSV's spec, or of olm.csv.metadata, which has the
// same ones but for two names.
func (r *metadataReader) spec() {
	for r.in.more() {
		switch string(r.in.name()) {
		case "annotations":
			r.annotations()
		case "displayName":
			r.text(&r.m.DisplayName, maxText)
		case "description":
			r.longDescription()
		case "minKubeVersion":
			r.text(&r.m.MinKubeVersion, maxName)
		case "maturity":
			r.text(&r.m.Maturity, maxName)
		case "provider":
			r.provider()
		case "keywords":
			if r.enter('[') {
				for r.in.more() {
					r.appendText(&r.m.Keywords, maxKeywords)
				}
			}
		case "installModes":
			r.installModes()
		case "crdDescriptions", "customresourcedefinitions":
			r.definitions()
		default:
			r.in.skip()
		}
	}
}

func (r *metadataReader) provider() {
	if !r.enter('{') {
		return
	}
	for r.in.more() {
		if string(r.in.name()) == "name" {
			r.text(&r.m.Provider, maxName)
		} else {
			r.in.skip()
		}
	}
}

func (r *metadataReader) installModes() {
	r.modes = map[catalog.InstallMode]bool{}
	if !r.enter('[') {
		return
	}
	for r.in.more() {
		if !r.enter('{') {
			continue
		}
		var mode string
		supported := false
		for r.in.more() {
			switch name := r.in.name(); {
			case string(name) == "type":
				r.text(&mode, maxName)
			case string(name) == "supported" && r.in.kind() == 't':
				supported = true
				r.in.skip()
			default:
				r.in.skip()
			}
		}
		if supported {
			r.modes[catalog.InstallMode(mode)] = true
		}
	}
}

// definitions reads the names of the owned CRDs.
func (r *metadataReader) definitions() {
	if !r.enter('{') {
		return
	}
	for r.in.more() {
		if string(r.in.name()) != "owned" {
			r.in.skip()
			continue
		}
		if !r.enter('[') {
			continue
		}
		for r.in.more() {
			if !r.enter('{') {
				continue
			}
			for r.in.more() {
				if string(r.in.name()) == "name" {
					r.appendText(&r.m.Owned, maxOwned)
				} else {
					r.in.skip()
				}
			}
		}
	}
}

// annotations keeps those that catalog.KeepsAnnotation names.
func (r *metadataReader) annotations() {
	if !r.enter('{') {
		return
	}
	for r.in.more() {
		name := r.b.intern(r.in.name())
		if name != "description" && !catalog.KeepsAnnotation(name) {
			r.in.skip()
			continue
		}
		var s string
		r.text(&s, maxText)
		switch {
		case name == "description":
			if s = catalog.ShortDescription(s); s != "" {
				r.m.Description, r.short = s, true
			}
		case len(s) < maxAnnotation && len(r.m.Annotations) < maxAnnotations:
			if r.m.Annotations == nil {
				r.m.Annotations = map[string]string{}
			}
			r.m.Annotations[name] = s
		}
	}
}

// longDescription takes the first line of a CSV's description, which may be
// very long, unless an annotation gave a short one. Most versions of a package
// say what the one before said.
func (r *metadataReader) longDescription() {
	if r.in.kind() != '"' || r.short {
		r.in.skip()
		return
	}
	raw, b := r.in.raw(), r.b
	if r.in.failed() == nil && !bytes.Equal(raw, b.long) {
		b.long = append(b.long[:0], raw...)
		r.in.plain = unquoted(r.in.plain[:0], raw)
		b.short = catalog.ShortDescription(string(clip(r.in.plain, longEnough)))
	}
	r.m.Description = b.short
}

func (r *metadataReader) text(into *string, limit int) {
	if r.in.kind() != '"' {
		r.in.skip()
		return
	}
	if s := r.in.text(); len(s) <= limit {
		*into = r.b.intern(s)
	}
}

func (r *metadataReader) appendText(into *[]string, most int) {
	var s string
	r.text(&s, maxName)
	if s != "" && len(*into) < most {
		*into = append(*into, s)
	}
}

// enter goes into the next value if it is of that kind.
func (r *metadataReader) enter(open byte) bool {
	if r.in.kind() != open {
		r.in.skip()
		return false
	}
	r.in.enter()
	return true
}

func (r *metadataReader) finish() {
	if r.modes != nil {
		r.m.InstallModes = []catalog.InstallMode{}
		for _, mode := range catalog.InstallModes() {
			if r.modes[mode] {
				r.m.InstallModes = append(r.m.InstallModes, mode)
			}
		}
	}
	slices.Sort(r.m.Owned)
	r.m.Owned = slices.Compact(r.m.Owned)
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
	r := &metadataReader{in: b.inner, b: b, m: &catalog.Metadata{Known: true}}
	r.csv()
	r.finish()
	return *r.m, r.kind == kindCSV && r.in.failed() == nil
}
