package fbc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
)

// Encode writes c as JSON objects in the order of opm: by package. In each package, the olm.package is
// followed by channels, bundles, deprecations and lifecycles, each sorted by name. objects returns the
// manifests to embed in a bundle. If objects is nil or returns no manifests, the bundle gets an
// olm.csv.metadata property from its Metadata.
//
// If no bundle has embedded manifests, Decode of the output returns c, with three exceptions: positions,
// fields that the caller sets, and lifecycles with a fault. The same input gives the same bytes.
func Encode(w io.Writer, c catalog.Content, objects func(pkg, bundle string) ([][]byte, error)) error {
	e := &encoder{enc: jsontext.NewEncoder(w, jsontext.WithIndent("    "), jsontext.AllowDuplicateNames(false)), objects: objects, codecs: newCodecs()}
	packages := slices.SortedFunc(slices.Values(c.Packages), func(a, b catalog.PackageData) int { return strings.Compare(a.Name, b.Name) })
	for i := range packages {
		if err := e.encodePackage(&packages[i]); err != nil {
			return fmt.Errorf("writing package %q: %w", packages[i].Name, err)
		}
	}
	return nil
}

// encoder writes JSON. After the first error, all calls do nothing.
type encoder struct {
	enc     *jsontext.Encoder
	objects func(pkg, bundle string) ([][]byte, error)
	codecs  *codecs
	err     error
}

func (e *encoder) encodePackage(p *catalog.PackageData) error {
	if !p.Undeclared {
		e.encodeObject(&object{schema: schemaPackage, name: p.Name, defaultChannel: p.DefaultChannel, description: p.Description})
	}
	for _, ch := range slices.SortedFunc(slices.Values(p.Channels), func(a, b catalog.ChannelData) int { return strings.Compare(a.Name, b.Name) }) {
		e.encodeObject(&object{schema: schemaChannel, pkg: p.Name, name: ch.Name, entries: ch.Entries})
	}
	for _, b := range slices.SortedFunc(slices.Values(p.Bundles), func(a, b catalog.BundleData) int { return strings.Compare(a.Name, b.Name) }) {
		if err := e.encodeBundle(p.Name, b); err != nil {
			return fmt.Errorf("bundle %q: %w", b.Name, err)
		}
	}
	if len(p.Deprecations) > 0 {
		e.encodeObject(&object{schema: schemaDeprecations, pkg: p.Name, deprecations: p.Deprecations})
	}
	for _, l := range p.Lifecycles {
		if len(l.Faults) == 0 {
			e.encodeObject(&object{schema: schemaLifecycles, pkg: p.Name, lifecycle: l})
		}
	}
	return e.err
}

func (e *encoder) encodeBundle(pkg string, b catalog.BundleData) error {
	var manifests [][]byte
	if e.objects != nil {
		var err error
		if manifests, err = e.objects(pkg, b.Name); err != nil {
			return err
		}
	}
	b.Properties = slices.Clip(b.Properties)
	for _, m := range manifests {
		data := base64.StdEncoding.EncodeToString(m)
		b.Properties = append(b.Properties, catalog.Property{Type: catalog.TypeObject, Value: []byte(`{"data":"` + data + `"}`)})
	}
	if len(manifests) == 0 && b.Metadata.Known {
		var value bytes.Buffer
		sub := &encoder{enc: jsontext.NewEncoder(&value)}
		e.codecs.metadata.write(sub, newRawMetadata(b.Metadata))
		if sub.err != nil {
			return sub.err
		}
		b.Properties = append(b.Properties, catalog.Property{Type: catalog.TypeMetadata, Value: value.Bytes()})
	}
	e.encodeObject(&object{schema: schemaBundle, pkg: pkg, name: b.Name, bundle: b})
	return e.err
}

func (e *encoder) encodeObject(o *object) { e.codecs.schemas[o.schema].codec().write(e, o) }

func (e *encoder) writeValue(v []byte) {
	if e.err == nil {
		e.err = e.enc.WriteValue(v)
	}
}

func (e *encoder) writeToken(t jsontext.Token) {
	if e.err == nil {
		e.err = e.enc.WriteToken(t)
	}
}
