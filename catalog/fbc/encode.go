package fbc

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
)

// Encode writes c as JSON objects in the order in which opm writes them: by
// package, and within one the package, its channels, its bundles and its
// deprecations, each by name. objects returns the manifests to embed for a
// bundle, and may be nil or return none. A bundle without them gets an
// olm.csv.metadata property instead, as far as its Metadata goes; Decode of
// what was written then yields c again, but for positions and for what the
// caller fills in. The same content gives the same bytes.
func Encode(w io.Writer, c catalog.Content, objects func(pkg, bundle string) ([][]byte, error)) error {
	e := &encoder{enc: jsontext.NewEncoder(w, jsontext.WithIndent("    "), jsontext.AllowDuplicateNames(false)), objects: objects}
	packages := slices.SortedFunc(slices.Values(c.Packages), func(a, b catalog.PackageData) int { return strings.Compare(a.Name, b.Name) })
	for i := range packages {
		if err := e.pkg(&packages[i]); err != nil {
			return fmt.Errorf("writing package %q: %w", packages[i].Name, err)
		}
	}
	return nil
}

// encoder writes JSON; the first error stops all that follows.
type encoder struct {
	enc     *jsontext.Encoder
	objects func(pkg, bundle string) ([][]byte, error)
	err     error
}

func (e *encoder) pkg(p *catalog.PackageData) error {
	if !p.Undeclared {
		e.object(func() {
			e.field("schema", schemaPackage)
			e.field("name", p.Name)
			e.field("defaultChannel", p.DefaultChannel)
			e.optional("description", p.Description)
		})
	}
	for _, ch := range slices.SortedFunc(slices.Values(p.Channels), func(a, b catalog.ChannelData) int { return strings.Compare(a.Name, b.Name) }) {
		e.channel(p.Name, ch)
	}
	for _, b := range slices.SortedFunc(slices.Values(p.Bundles), func(a, b catalog.BundleData) int { return strings.Compare(a.Name, b.Name) }) {
		if err := e.bundle(p.Name, b); err != nil {
			return fmt.Errorf("bundle %q: %w", b.Name, err)
		}
	}
	e.deprecations(p)
	return e.err
}

func (e *encoder) channel(pkg string, ch catalog.ChannelData) {
	e.object(func() {
		e.field("schema", schemaChannel)
		e.field("name", ch.Name)
		e.field("package", pkg)
		e.name("entries")
		e.array(func() {
			for _, n := range ch.Entries {
				e.object(func() {
					e.field("name", n.Name)
					e.optional("replaces", n.Replaces)
					e.texts("skips", n.Skips)
					e.optional("skipRange", n.SkipRange)
				})
			}
		})
	})
}

func (e *encoder) bundle(pkg string, b catalog.BundleData) error {
	var manifests [][]byte
	if e.objects != nil {
		var err error
		if manifests, err = e.objects(pkg, b.Name); err != nil {
			return err
		}
	}
	e.object(func() {
		e.field("schema", schemaBundle)
		e.field("name", b.Name)
		e.field("package", pkg)
		e.optional("image", b.Image)
		e.name("properties")
		e.array(func() {
			for _, p := range b.Properties {
				e.property(p.Type, func() { e.value(jsontext.Value(p.Value)) })
			}
			for _, m := range manifests {
				e.property(olm.TypeObject, func() {
					e.object(func() { e.field("data", base64.StdEncoding.EncodeToString(m)) })
				})
			}
			if len(manifests) == 0 && b.Metadata.Known {
				e.property(olm.TypeMetadata, func() { e.metadata(b.Metadata) })
			}
		})
		e.relatedImages(b.RelatedImages)
	})
	return e.err
}

func (e *encoder) relatedImages(images []catalog.RelatedImage) {
	if len(images) == 0 {
		return
	}
	e.name("relatedImages")
	e.array(func() {
		for _, img := range images {
			e.object(func() {
				e.field("name", img.Name)
				e.field("image", img.Image)
			})
		}
	})
}

func (e *encoder) metadata(m catalog.Metadata) {
	e.object(func() {
		if len(m.Annotations) > 0 || m.Description != "" {
			e.name("annotations")
			e.object(func() { e.annotations(m) })
		}
		if len(m.Owned) > 0 {
			e.name("crdDescriptions")
			e.object(func() {
				e.name("owned")
				e.array(func() {
					for _, name := range m.Owned {
						e.object(func() { e.field("name", name) })
					}
				})
			})
		}
		e.optional("displayName", m.DisplayName)
		e.installModes(m.InstallModes)
		e.texts("keywords", m.Keywords)
		e.optional("maturity", m.Maturity)
		e.optional("minKubeVersion", m.MinKubeVersion)
		if m.Provider != "" {
			e.name("provider")
			e.object(func() { e.field("name", m.Provider) })
		}
	})
}

func (e *encoder) annotations(m catalog.Metadata) {
	names := make([]string, 0, len(m.Annotations)+1)
	for name := range m.Annotations {
		if name != "description" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	e.optional("description", m.Description)
	for _, name := range names {
		e.field(name, m.Annotations[name])
	}
}

func (e *encoder) installModes(modes []catalog.InstallMode) {
	if modes == nil {
		return
	}
	e.name("installModes")
	e.array(func() {
		for _, mode := range catalog.InstallModes() {
			e.object(func() {
				e.field("type", string(mode))
				e.name("supported")
				e.token(jsontext.Bool(slices.Contains(modes, mode)))
			})
		}
	})
}

func (e *encoder) deprecations(p *catalog.PackageData) {
	if len(p.Deprecations) == 0 {
		return
	}
	e.object(func() {
		e.field("schema", schemaDeprecations)
		e.field("package", p.Name)
		e.name("entries")
		e.array(func() {
			for _, d := range p.Deprecations {
				e.object(func() {
					e.name("reference")
					e.object(func() {
						e.field("schema", d.Schema)
						e.optional("name", d.Name)
					})
					e.field("message", d.Message)
				})
			}
		})
	})
}

func (e *encoder) property(typ string, value func()) {
	e.object(func() {
		e.field("type", typ)
		e.name("value")
		value()
	})
}

func (e *encoder) object(inside func()) {
	e.token(jsontext.BeginObject)
	inside()
	e.token(jsontext.EndObject)
}

func (e *encoder) array(inside func()) {
	e.token(jsontext.BeginArray)
	inside()
	e.token(jsontext.EndArray)
}

func (e *encoder) name(s string) { e.token(jsontext.String(s)) }

func (e *encoder) field(name, text string) {
	e.name(name)
	e.token(jsontext.String(text))
}

func (e *encoder) optional(name, text string) {
	if text != "" {
		e.field(name, text)
	}
}

func (e *encoder) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	e.name(name)
	e.array(func() {
		for _, s := range list {
			e.token(jsontext.String(s))
		}
	})
}

func (e *encoder) value(v jsontext.Value) {
	if e.err == nil {
		e.err = e.enc.WriteValue(v)
	}
}

func (e *encoder) token(t jsontext.Token) {
	if e.err == nil {
		e.err = e.enc.WriteToken(t)
	}
}
