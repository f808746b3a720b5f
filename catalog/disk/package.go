package disk

import (
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Each pair of functions writes and reads the same fields in the same order.

func (e *encoder) pos(p diag.Pos) {
	e.text(p.File)
	e.int(p.Line)
	e.int(p.Col)
}

func (d *decoder) pos() diag.Pos {
	return diag.Pos{File: d.text(), Line: d.int(), Col: d.int()}
}

func (e *encoder) pkg(p *catalog.PackageData) {
	e.text(p.Name)
	e.text(p.DefaultChannel)
	e.text(p.Description)
	e.pos(p.Pos)
	e.list(len(p.Channels), p.Channels == nil, func(i int) { e.channel(&p.Channels[i]) })
	e.list(len(p.Bundles), p.Bundles == nil, func(i int) { e.bundle(&p.Bundles[i]) })
	e.list(len(p.Deprecations), p.Deprecations == nil, func(i int) { e.deprecation(&p.Deprecations[i]) })
}

func (d *decoder) pkg() catalog.PackageData {
	return catalog.PackageData{
		Name:           d.text(),
		DefaultChannel: d.text(),
		Description:    d.text(),
		Pos:            d.pos(),
		Channels:       list(d, d.channel),
		Bundles:        list(d, d.bundle),
		Deprecations:   list(d, d.deprecation),
	}
}

func (e *encoder) channel(c *catalog.ChannelData) {
	e.text(c.Name)
	e.pos(c.Pos)
	e.list(len(c.Entries), c.Entries == nil, func(i int) { e.entry(&c.Entries[i]) })
}

func (d *decoder) channel() catalog.ChannelData {
	return catalog.ChannelData{Name: d.text(), Pos: d.pos(), Entries: list(d, d.entry)}
}

func (e *encoder) entry(x *catalog.EntryData) {
	e.text(x.Name)
	e.text(x.Replaces)
	e.texts(x.Skips)
	e.text(x.SkipRange)
	e.pos(x.Pos)
}

func (d *decoder) entry() catalog.EntryData {
	return catalog.EntryData{Name: d.text(), Replaces: d.text(), Skips: d.texts(), SkipRange: d.text(), Pos: d.pos()}
}

func (e *encoder) deprecation(x *catalog.DeprecationData) {
	e.text(x.Schema)
	e.text(x.Name)
	e.text(x.Message)
	e.pos(x.Pos)
}

func (d *decoder) deprecation() catalog.DeprecationData {
	return catalog.DeprecationData{Schema: d.text(), Name: d.text(), Message: d.text(), Pos: d.pos()}
}

func (e *encoder) bundle(b *catalog.BundleData) {
	e.text(b.Name)
	e.text(b.Image)
	e.bool(b.Embedded)
	e.pos(b.Pos)
	e.span(b.Span)
	e.list(len(b.Properties), b.Properties == nil, func(i int) {
		e.text(b.Properties[i].Type)
		e.text(string(b.Properties[i].Value))
	})
	e.list(len(b.RelatedImages), b.RelatedImages == nil, func(i int) {
		e.text(b.RelatedImages[i].Name)
		e.text(b.RelatedImages[i].Image)
	})
	e.metadata(&b.Metadata)
}

func (d *decoder) bundle() catalog.BundleData {
	return catalog.BundleData{
		Name:     d.text(),
		Image:    d.text(),
		Embedded: d.bool(),
		Pos:      d.pos(),
		Span:     d.fileSpan(),
		Properties: list(d, func() catalog.Property {
			return catalog.Property{Type: d.text(), Value: d.bytes()}
		}),
		RelatedImages: list(d, func() catalog.RelatedImage {
			return catalog.RelatedImage{Name: d.text(), Image: d.text()}
		}),
		Metadata: d.metadata(),
	}
}

func (e *encoder) span(s catalog.Span) {
	e.uint(uint64(s.Offset))
	e.uint(uint64(s.Size))
}

func (d *decoder) fileSpan() catalog.Span {
	return catalog.Span{Offset: int64(d.uint()), Size: int64(d.uint())}
}

func (e *encoder) metadata(m *catalog.Metadata) {
	e.bool(m.Known)
	e.text(m.DisplayName)
	e.text(m.Description)
	e.text(m.Provider)
	e.text(m.MinKubeVersion)
	e.list(len(m.InstallModes), m.InstallModes == nil, func(i int) { e.text(string(m.InstallModes[i])) })
	e.texts(m.Keywords)
	e.text(m.Maturity)
	keys := slices.Sorted(maps.Keys(m.Annotations))
	e.list(len(keys), m.Annotations == nil, func(i int) {
		e.text(keys[i])
		e.text(m.Annotations[keys[i]])
	})
	e.texts(m.Owned)
}

func (d *decoder) metadata() catalog.Metadata {
	return catalog.Metadata{
		Known:          d.bool(),
		DisplayName:    d.text(),
		Description:    d.text(),
		Provider:       d.text(),
		MinKubeVersion: d.text(),
		InstallModes:   list(d, func() catalog.InstallMode { return catalog.InstallMode(d.text()) }),
		Keywords:       d.texts(),
		Maturity:       d.text(),
		Annotations:    d.annotations(),
		Owned:          d.texts(),
	}
}

func (d *decoder) annotations() map[string]string {
	pairs := list(d, func() [2]string { return [2]string{d.text(), d.text()} })
	if pairs == nil {
		return nil
	}
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		m[p[0]] = p[1]
	}
	return m
}

func (e *encoder) gvk(g catalog.GVK) {
	e.text(g.Group)
	e.text(g.Version)
	e.text(g.Kind)
}

func (d *decoder) gvk() catalog.GVK {
	return catalog.GVK{Group: d.text(), Version: d.text(), Kind: d.text()}
}

func (e *encoder) needs(n catalog.Needs) {
	e.bool(n.Anything)
	e.texts(n.Packages)
	e.list(len(n.APIs), n.APIs == nil, func(i int) { e.gvk(n.APIs[i]) })
	e.texts(n.Labels)
}

func (d *decoder) needs() catalog.Needs {
	return catalog.Needs{Anything: d.bool(), Packages: d.texts(), APIs: list(d, d.gvk), Labels: d.texts()}
}

func (e *encoder) summary(s catalog.Summary) {
	e.text(s.DefaultChannel)
	e.text(s.Version)
	e.text(s.DisplayName)
	e.text(s.Description)
	e.text(s.Deprecation)
}

func (d *decoder) summary(name string) catalog.Summary {
	return catalog.Summary{
		Name: name, DefaultChannel: d.text(), Version: d.text(), DisplayName: d.text(), Description: d.text(), Deprecation: d.text(),
	}
}

func (e *encoder) warning(w diag.Warning) {
	e.pos(w.Pos)
	e.text(w.Code)
	e.text(w.Msg)
}

func (d *decoder) warning() diag.Warning {
	return diag.Warning{Pos: d.pos(), Code: d.text(), Msg: d.text()}
}
