package fbc

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// form says which of two objects holds the metadata.
type form int

const (
	csvMetadata form = iota // the value of olm.csv.metadata
	wholeCSV                // a ClusterServiceVersion
)

const (
	maxAnnotation  = 1 << 10
	maxAnnotations = 200
	maxKeywords    = 1000
	maxOwned       = 10_000
)

// metadata reads what an olm.csv.metadata, or a ClusterServiceVersion, says of
// the bundle. It is for searching and for checks that can do without: fields of
// a wrong type count as absent.
func (d *decoder) metadata(f form) (catalog.Metadata, error) {
	m := catalog.Metadata{Known: true}
	r := &metadataReader{d: d, m: &m}
	var err error
	if f == wholeCSV {
		err = r.csv()
	} else {
		err = r.fields(r.specField)
	}
	r.finish()
	return m, err
}

// metadataReader reads leniently: each method skips a value of a wrong type.
type metadataReader struct {
	d     *decoder
	m     *catalog.Metadata
	modes map[catalog.InstallMode]bool
	short bool // Description comes from the annotation
}

func (r *metadataReader) csv() error {
	return r.fields(func(name string) error {
		switch name {
		case "metadata":
			return r.fields(func(name string) error {
				if name == "annotations" {
					return r.fields(r.annotation)
				}
				return r.d.skip()
			})
		case "spec":
			return r.fields(r.specField)
		default:
			return r.d.skip()
		}
	})
}

// specField reads one field of a CSV's spec, or of olm.csv.metadata, which has
// the same fields but for two names.
func (r *metadataReader) specField(name string) error {
	switch name {
	case "annotations":
		return r.fields(r.annotation)
	case "displayName":
		return r.text(&r.m.DisplayName, maxText)
	case "description":
		return r.longDescription()
	case "minKubeVersion":
		return r.text(&r.m.MinKubeVersion, maxName)
	case "maturity":
		return r.text(&r.m.Maturity, maxName)
	case "provider":
		return r.fields(func(name string) error {
			if name == "name" {
				return r.text(&r.m.Provider, maxName)
			}
			return r.d.skip()
		})
	case "keywords":
		return r.list(func() error { return r.appendText(&r.m.Keywords, maxKeywords) })
	case "installModes":
		r.modes = map[catalog.InstallMode]bool{}
		return r.list(r.installMode)
	case "crdDescriptions", "customresourcedefinitions":
		return r.fields(func(name string) error {
			if name == "owned" {
				return r.list(r.ownedCRD)
			}
			return r.d.skip()
		})
	default:
		return r.d.skip()
	}
}

func (r *metadataReader) installMode() error {
	var mode string
	supported := false
	err := r.fields(func(name string) error {
		switch {
		case name == "type":
			return r.text(&mode, maxName)
		case name == "supported" && r.d.dec.PeekKind() == 't':
			supported = true
		}
		return r.d.skip()
	})
	if supported {
		r.modes[catalog.InstallMode(mode)] = true
	}
	return err
}

func (r *metadataReader) ownedCRD() error {
	return r.fields(func(name string) error {
		if name == "name" {
			return r.appendText(&r.m.Owned, maxOwned)
		}
		return r.d.skip()
	})
}

// annotation keeps what catalog.KeepsAnnotation names.
func (r *metadataReader) annotation(name string) error {
	if name != "description" && !catalog.KeepsAnnotation(name) {
		return r.d.skip()
	}
	var s string
	if err := r.text(&s, maxText); err != nil {
		return err
	}
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
	return nil
}

// longDescription takes the first line of a CSV's description, which may be
// very long, unless an annotation gave a short one.
func (r *metadataReader) longDescription() error {
	if r.d.dec.PeekKind() != '"' {
		return r.d.skip()
	}
	raw, err := r.d.dec.ReadValue()
	if err != nil || r.short {
		return err
	}
	// Cut at a place where the string may end: not inside an escape.
	const look = 4096
	part := raw
	if len(raw) > look {
		cut := raw[:look]
		if i := bytes.LastIndexByte(cut, ' '); i > 0 {
			cut = cut[:i]
		}
		part = append(slices.Clone(cut), '"')
	}
	text, err := jsontext.AppendUnquote(nil, part)
	if err == nil {
		r.m.Description = r.d.b.intern([]byte(catalog.ShortDescription(string(text))))
	}
	return nil
}

func (r *metadataReader) text(into *string, limit int) error {
	if r.d.dec.PeekKind() != '"' {
		return r.d.skip()
	}
	s, err := r.d.quoted()
	if len(s) <= limit {
		*into = s
	}
	return err
}

func (r *metadataReader) appendText(into *[]string, most int) error {
	var s string
	err := r.text(&s, maxName)
	if s != "" && len(*into) < most {
		*into = append(*into, s)
	}
	return err
}

func (r *metadataReader) fields(each func(name string) error) error {
	if r.d.dec.PeekKind() != '{' {
		return r.d.skip()
	}
	return r.d.fields("", each)
}

func (r *metadataReader) list(each func() error) error {
	if r.d.dec.PeekKind() != '[' {
		return r.d.skip()
	}
	if _, err := r.d.dec.ReadToken(); err != nil {
		return err
	}
	for r.d.dec.PeekKind() != ']' {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := r.d.dec.ReadToken()
	return err
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
	if !isCSV(text) {
		return catalog.Metadata{}, false
	}
	m, err := b.text("", diag.Pos{}, text, nil).metadata(wholeCSV)
	return m, err == nil
}

// isCSV reports whether the object's own kind is ClusterServiceVersion.
func isCSV(text []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return false
	}
	for dec.PeekKind() == '"' {
		tok, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if tok.String() == "kind" {
			tok, err := dec.ReadToken()
			return (err == nil || errors.Is(err, io.EOF)) && tok.Kind() == '"' && tok.String() == "ClusterServiceVersion"
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}
